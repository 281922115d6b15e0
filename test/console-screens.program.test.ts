/** The console on screens of every width: no amount is cut, and what is frozen or failed says so. In a browser, in a sandbox. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { magicAddress } from '../src/chains/simulated/magic-addresses.ts'
import {
  HAS_CHROMIUM,
  openPage,
  seriousFaults,
  shoot,
  startBrowserTest,
  type BrowserTest,
} from './browser.ts'
import { DESTINATION, remoteCaller, runBursar, spawnBursar } from './support.ts'

const WIDTHS = [320, 390, 768, 1280]
/** With 18 decimals: nothing that people send is longer. */
const LONG = '123456.123456789012345678'

/**
 * What a reader of the page cannot see: text that leaves the window or the part of the page that scrolls, or that an element cuts.
 * A block of code may scroll.
 */
const UNSEEN = `(() => {
  const found = []
  const walker = document.createTreeWalker(document.getElementById('main'), NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement
    if (walker.currentNode.data.trim() === '' || element.closest('pre, .curl, svg, select') || !element.checkVisibility({ visibilityProperty: true })) continue
    const range = document.createRange()
    range.selectNodeContents(walker.currentNode)
    let right = innerWidth, left = 0
    for (let box = element; box !== null; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== 'visible' && box !== document.documentElement) {
        const { left: start } = box.getBoundingClientRect()
        left = Math.max(left, start)
        right = Math.min(right, start + box.clientLeft + box.clientWidth)
      }
    for (const rect of range.getClientRects())
      if (rect.right > right + 0.5 || rect.left < left - 0.5) found.push(element.className + ': ' + walker.currentNode.data)
  }
  return found
})()`

/** The amounts on the page as the API writes them, with their assets. */
const amountsOn = async (page: Page): Promise<string[]> =>
  (await page.locator('main .amount').allInnerTexts()).map((text) =>
    text
      .replaceAll(/[\u202f\n]/g, '')
      .replace('−', '-')
      .replace(/\s+/, ' '),
  )

interface TransferShown {
  id: string
  direction: string
  total: string
  asset: string
  balance_asset?: string
  status: string
}

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let demo: SandboxCredentials
  let call: Awaited<ReturnType<typeof remoteCaller>>
  let address: string
  const opened = async (path: string) => {
    const { page } = await openPage(started.context, `${address}/console/${path}`)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    return page
  }

  beforeAll(async () => {
    started = await startBrowserTest({ BURSAR_SIMULATED_PRICE_DAYS: '2' })
    demo = JSON.parse(await readFile(credentialsFile(started.folder), 'utf8')) as SandboxCredentials
    address = started.bursar.address.replace('127.0.0.1', 'localhost')
    call = await remoteCaller(started.bursar.address, demo)
    const profile = `/v2/sandbox/profiles/${demo.profile_id}/deposit`
    expect(
      await call('POST', profile, { asset: 'ETH', amount: LONG, crypto_network: 'ETHEREUM' }),
    ).toMatchObject({ status: 200 })
    const paid = await call('POST', '/v2/transfer/crypto-withdrawals', {
      ref_id: 'a name of a payment that is as long as people make them',
      profile_id: demo.profile_id,
      asset: 'ETH',
      amount: '1.000000000000000001',
      destination_address: DESTINATION,
      crypto_network: 'ETHEREUM',
    })
    expect(paid.status).toBe(200)
    const rejected = await call('POST', '/v2/transfer/crypto-withdrawals', {
      ref_id: 'rejected',
      profile_id: demo.profile_id,
      asset: 'ETH',
      amount: LONG.replace('123456', '12'),
      destination_address: magicAddress('ETHEREUM', 'TRAVEL_RULE_REJECTED'),
      crypto_network: 'ETHEREUM',
    })
    await vi.waitFor(
      async () => {
        const { body } = await call('GET', `/v2/transfer/transfers/${String(rejected.body.id)}`)
        expect(body.status).toBe('FAILED')
      },
      { timeout: 60_000, interval: 200 },
    )
  })
  afterAll(() => started.close())

  test('each amount is that of the API, and no text is cut or out of sight', async () => {
    const { body } = await call('GET', '/v2/transfer/transfers?limit=50')
    const transfers = body.items as TransferShown[]
    // What failed has changed nothing. What it would have changed is struck through beside that.
    const changeOf = ({ direction, total, asset, balance_asset = asset, status }: TransferShown) =>
      status === 'FAILED'
        ? `0 ${balance_asset}`
        : `${direction === 'DEBIT' ? '-' : '+'}${total} ${balance_asset}`
    const changes = transfers.map(changeOf)
    const { body: held } = await call('GET', `/v2/profiles/${demo.profile_id}/balances`)
    const balances = (held.items as { asset: string; available: string }[]).map(
      ({ asset, available }) => `${available} ${asset}`,
    )
    const failed = transfers.find(({ status }) => status === 'FAILED')!
    const withdrawal = transfers.find(
      ({ asset, direction, id }) => asset === 'ETH' && direction === 'DEBIT' && id !== failed.id,
    )!
    const { body: statements } = await call('GET', `/v2/statements?customer_id=${demo.customer_id}`)
    const [statement] = statements.statements as { id: string }[]
    const pages: [path: string, amounts: string[]][] = [
      ['transfers', changes],
      ['', [...changes.slice(0, 10), ...balances]],
      [`profiles/${demo.profile_id}`, balances],
      [`transfers/${withdrawal.id}`, ['-1.000000000000000001 ETH']],
      [`transfers/${failed.id}`, [changeOf(failed)]],
      ...[
        'statements',
        `statements/${statement!.id}`,
        'markets',
        'networks',
        'orchestrations',
        'events',
        'audit-log',
        'clients',
        'search?q=demo-wire',
        'sandbox',
      ].map((path): [string, string[]] => [path, []]),
    ]
    for (const [path, amounts] of pages) {
      const page = await opened(path)
      await page.locator('main .scroll, main .of-record, main .buttons').first().waitFor()
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 })
        await expect
          .poll(() => amountsOn(page), { message: `${path} at ${width}` })
          .toEqual(expect.arrayContaining(amounts))
        await expect.poll(() => page.evaluate(UNSEEN), { message: `${path} at ${width}` }).toEqual([])
        await shoot(page, `console-${path.replaceAll(/[^a-z]+.*/g, '') || 'home'}-${width}`)
      }
      await page.close()
    }
  })

  test('a cancel is offered only while nothing is signed', async () => {
    const { body } = await call('POST', '/v2/transfer/crypto-withdrawals', {
      ref_id: 'never confirms',
      profile_id: demo.profile_id,
      asset: 'USDP',
      balance_asset: 'USD',
      amount: '10',
      destination_address: magicAddress('ETHEREUM', 'NEVER_CONFIRMS'),
      crypto_network: 'ETHEREUM',
    })
    const page = await opened(`transfers/${String(body.id)}`)
    await page.getByText('Waiting for the network').waitFor()
    await expect
      .poll(() => page.locator('.state').innerText())
      .toMatch(/^Sent .* ago; Ethereum has not confirmed it yet\. .*It is completed when it is final\.$/)
    await page.getByText('It is signed and may be paid already, so it cannot be cancelled.').waitFor()
    expect(await page.getByRole('button', { name: 'Cancel and refund' }).count()).toBe(0)
  })

  test('while the service is down, the page says since when, and goes on by itself', async () => {
    const page = await opened('')
    await page.getByText('● live').waitFor()
    await started.bursar.end('SIGKILL')
    await page.getByText(/^No connection to the service since \d+ \w+ 20\d\d [\d:]+ UTC/).waitFor()
    expect(await page.getByText('● live').count()).toBe(0)
    expect(await page.locator('main[inert]').count()).toBe(1)
    expect(await page.locator('main').innerText()).not.toContain('Failed to fetch')
    await shoot(page, 'console-down', { whole: false })
    let asked = 0
    const proxy = createServer((_request, response) => {
      asked++
      response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>503 Service Unavailable</h1>')
    }).listen(Number(new URL(address).port), '127.0.0.1')
    await expect.poll(() => asked).toBeGreaterThan(1)
    expect(await page.getByText(/^No connection to the service since/).count()).toBe(1)
    expect(await page.locator('main[inert]').count()).toBe(1)
    proxy.closeAllConnections()
    await new Promise((closed) => proxy.close(closed))
    started.bursar = await spawnBursar({ ...started.environment, PORT: new URL(address).port })
    await page.getByText('No connection to the service').waitFor({ state: 'detached' })
    await page.getByText('● live').waitFor()
    expect(await page.locator('main[inert]').count()).toBe(0)
  })

  test('a frozen profile says so on its page, in the list and on Home', async () => {
    const reason = 'a report of the police'
    const frozen = await runBursar(
      ['freeze', 'profile', demo.profile_id, '--reason', reason],
      started.environment,
    )
    expect(frozen.code).toBe(0)
    for (const path of [`profiles/${demo.profile_id}`, '', 'profiles']) {
      const page = await opened(path)
      await page.locator('main .status', { hasText: 'FROZEN' }).waitFor()
      const named = path === '' ? 'Profile Default ' : ''
      const says = new RegExp(
        `${named}Frozen since \\d+ \\w+ 20\\d\\d [\\d:]+ UTC \\(by an operator\\): ${reason}`,
      )
      if (path !== 'profiles') await expect.poll(() => page.locator('main').innerText()).toMatch(says)
      expect(await seriousFaults(page)).toEqual([])
      await page.close()
    }
    expect((await runBursar(['unfreeze', 'profile', demo.profile_id], started.environment)).code).toBe(0)
    // Frozen on its page, it is no longer called active there.
    const page = await opened(`profiles/${demo.profile_id}`)
    const active = page.getByText('Active', { exact: true })
    await active.waitFor()
    await page.getByText('Freeze this profile').click()
    await page.getByLabel('Reason, for other operators').fill(reason)
    await page.getByRole('button', { name: 'Freeze', exact: true }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await active.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Unfreeze' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await active.waitFor()
  })
})
