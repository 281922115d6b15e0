/** The console on screens of every width: no amount is cut, and what is frozen says so. In a browser, in a sandbox. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../../src/program/demo/credentials.ts'
import { magicAddress } from '../../src/networks/simulated/magic-addresses.ts'
import { sumOf } from '../src/format.ts'
import {
  HAS_CHROMIUM,
  openPage,
  seriousFaults,
  shoot,
  startBrowserTest,
  type BrowserTest,
} from '../../test/browser.ts'
import { partOf } from '../../test/seed.ts'
import { DESTINATION, remoteCaller, runBursar, spawnBursar } from '../../test/support.ts'

/** Widths of windows, with the size of text: one for each layout of the style, and text half as large again. */
const SCREENS = [
  { width: 320, text: '87.5%' },
  { width: 768, text: '131%' },
  { width: 1280, text: '87.5%' },
]
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

/** A number that may be a count, which a page makes itself, where no amount is. */
const COUNT = /^\d{1,2}$/

interface ShownNumber {
  text: string
  isAmount: boolean
  isCut: boolean
}

/** The numbers on the page, and whether one is wider than its cell or leaves the window. */
const SHOWN = `[...document.querySelectorAll('main .amount, main td.number')]
  .filter((element) => element.checkVisibility({ visibilityProperty: true }))
  .map((element) => {
    const isAmount = element.querySelector('.amount') !== null || element.matches('.amount')
    const cell = element.closest('td') ?? element
    const { left, right } = element.getBoundingClientRect()
    const isCut = cell.scrollWidth > cell.clientWidth + 1 || left < 0 || right > innerWidth + 0.5
    // A value in USD is computed by the page from an amount and a price.
    const isComputed = element.querySelector('.usd') !== null || element.matches('.usd')
    return { text: isComputed ? '' : element.innerText, isAmount, isCut }
  })`

/** The names of people that take more than two lines, or have no tooltip. */
const TALL = `[...document.querySelectorAll('main .ref')]
  .filter((element) => {
    const lines = element.getBoundingClientRect().height / parseFloat(getComputedStyle(element).lineHeight)
    return lines > 2.2 || element.title.length < element.innerText.trim().length
  })
  .map(({ innerText }) => innerText)`

/** A text of the page as the API writes amounts. */
const plain = (text: string) =>
  text.replaceAll('\u202f', '').replaceAll('−', '-').replaceAll(/\s+/g, ' ').trim()

/** The amounts on the page as the API writes them, with their assets. */
const amountsOn = async (page: Page): Promise<string[]> =>
  (await page.locator('main .amount').allInnerTexts()).map(plain)

/** The numbers of a text, without their signs. Percentages are made from numbers of the API. */
const numbersOf = (text: string): string[] =>
  [...plain(text).matchAll(/\d+(?:\.\d+)?(?![\d.]|\s*%)/g)].map(([number]) => number)

/** The numbers in answers of the API, as it has written them. */
const numbersIn = (answers: readonly string[]): string[] =>
  answers.flatMap((answer) =>
    [...answer.matchAll(/"-?(\d+(?:\.\d+)?)"|[:,[]-?(\d+)(?=[,}\]])/g)].map(
      ([, text, number]) => text ?? number!,
    ),
  )

interface TransferShown {
  id: string
  direction: string
  status: string
  amount: string
  total: string
  asset: string
  balance_asset?: string
}

interface Volume {
  asset: string
  status: string
  direction: string
  amount: string
}

/** The sums that a page may make of volumes: of what has come in, gone out and is under way, by asset. */
const sumsOf = (volumes: readonly Volume[]): string[] =>
  volumes.map(({ asset, status, direction }) =>
    sumOf(
      volumes
        .filter((one) => one.asset === asset && one.status === status && one.direction === direction)
        .map(({ amount }) => amount),
    ),
  )

/** The amounts of a transfer's line: its own, and the change of a balance, which one that failed has not changed. */
const lineOf = ({ direction, status, amount, total, asset, balance_asset = asset }: TransferShown) => {
  const change = `${direction === 'DEBIT' ? '-' : '+'}${total}`
  return [`${amount} ${asset}`, `${change}${status === 'FAILED' ? ' 0' : ''} ${balance_asset}`]
}

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let demo: SandboxCredentials
  let call: Awaited<ReturnType<typeof remoteCaller>>
  let address: string
  /** The answers of the API to the page that was opened last. */
  let answers: string[] = []
  const opened = async (path: string) => {
    answers = []
    const { page } = await openPage(started.context, `${address}/console/${path}`)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    return page
  }

  beforeAll(async () => {
    started = await startBrowserTest({ BURSAR_SIMULATED_PRICE_DAYS: '2' })
    demo = JSON.parse(await readFile(credentialsFile(started.folder), 'utf8')) as SandboxCredentials
    address = started.bursar.address.replace('127.0.0.1', 'localhost')
    call = await remoteCaller(started.bursar.address, demo)
    started.context.on('response', (response) => {
      if (!response.url().includes('/console/api/v2/') || response.url().includes('/stream')) return
      const asked = answers
      void response.text().then(
        (text) => asked.push(text),
        () => {},
      )
    })
    const profile = `/v2/sandbox/profiles/${demo.profile_id}/deposit`
    expect(
      await call('POST', profile, { asset: 'ETH', amount: LONG, crypto_network: 'ETHEREUM' }),
    ).toMatchObject({ status: 200 })
    const paid = await call('POST', '/v2/transfer/crypto-withdrawals', {
      ref_id:
        'a name of a payment that is as long as people make them, and longer than that, and then still longer',
      profile_id: demo.profile_id,
      asset: 'ETH',
      amount: '1.000000000000000001',
      destination_address: DESTINATION,
      crypto_network: 'ETHEREUM',
    })
    expect(paid.status).toBe(200)
  })
  afterAll(() => started.close())

  test('each amount is that of the API, and no text is cut or out of sight', async () => {
    const failing = await call('POST', '/v2/transfer/crypto-withdrawals', {
      ref_id: 'fails',
      profile_id: demo.profile_id,
      asset: 'USDP',
      balance_asset: 'USD',
      amount: '33.01',
      destination_address: magicAddress('ETHEREUM', 'INVALID_DESTINATION_ADDRESS'),
      crypto_network: 'ETHEREUM',
    })
    await expect
      .poll(
        async () => (await call('GET', `/v2/transfer/transfers/${String(failing.body.id)}`)).body.status,
        {
          timeout: 60_000,
        },
      )
      .toBe('FAILED')
    const { body } = await call('GET', '/v2/transfer/transfers?limit=50')
    const transfers = body.items as TransferShown[]
    const lines = transfers.map(lineOf)
    const amounts = lines.flat().map((amount) => amount.replace(/^\S+ 0 /, '0 '))
    const { body: held } = await call('GET', `/v2/profiles/${demo.profile_id}/balances`)
    const balances = (held.items as { asset: string; available: string }[]).map(
      ({ asset, available }) => `${available} ${asset}`,
    )
    const withdrawal = transfers.find(({ asset, direction }) => asset === 'ETH' && direction === 'DEBIT')!
    const failed = transfers.find(({ status }) => status === 'FAILED')!
    const { body: statements } = await call('GET', `/v2/statements?customer_id=${demo.customer_id}`)
    const [statement] = statements.statements as { id: string }[]
    const pages: [path: string, amounts: string[]][] = [
      ['transfers', amounts],
      ['', [...amounts.slice(0, 20), ...balances]],
      ['profiles', []],
      [`profiles/${demo.profile_id}`, balances],
      [`transfers/${withdrawal.id}`, ['-1.000000000000000001 ETH']],
      [`transfers/${failed.id}`, ['0 USD']],
      ...[
        'transfers?asset=ETH',
        'statements',
        `statements/${statement!.id}`,
        'markets',
        'markets/BTCUSD',
        'networks',
        'orchestrations',
        'events',
        'audit-log',
        'clients',
        'search?q=demo-wire',
        'search?q=33.01',
        ...['sandbox', 'approvals', 'policy', 'identities', 'customers'],
      ].map((path): [string, string[]] => [path, []]),
    ]
    const sums = new Set([...sumsOf((await call('GET', '/v2/transfer/volumes')).body.items as Volume[]), '0'])
    for (const one of ['total_amount_owed', 'amount_paid'])
      sums.add(
        sumOf(
          [...JSON.stringify(statements).matchAll(new RegExp(`"${one}":"([^"]+)"`, 'g'))].map(
            ([, sum]) => sum!,
          ),
        ),
      )
    for (const [path, expected] of [...pages.slice(0, 4), ...partOf(pages.slice(4), 4)]) {
      const page = await opened(path)
      await page.locator('main .scroll, main .of-record, main .buttons, main .quiet').first().waitFor()
      for (const { width, text } of SCREENS) {
        const at = { message: `${path} at ${width}, text at ${text}` }
        await page.setViewportSize({ width, height: 800 })
        await page.evaluate(`document.documentElement.style.fontSize = '${text}'`)
        await expect.poll(() => amountsOn(page), at).toEqual(expect.arrayContaining(expected))
        await expect.poll(() => page.evaluate(UNSEEN), at).toEqual([])
        // A long name takes two lines, and its tooltip has all of it.
        expect(await page.evaluate(TALL), at.message).toEqual([])
        // Whatever number is shown is one that the API has answered, whole.
        await expect
          .poll(async () => {
            const shown = await page.evaluate<ShownNumber[]>(SHOWN)
            const known = new Set([...sums, ...numbersIn(answers)])
            const isWrong = (one: string, isAmount: boolean) =>
              !known.has(one) && (isAmount || !COUNT.test(one))
            return shown.filter(
              ({ text, isAmount, isCut }) => isCut || numbersOf(text).some((one) => isWrong(one, isAmount)),
            )
          }, at)
          .toEqual([])
        if (path === 'transfers') {
          const rows = page.getByRole('region', { name: 'Transfers' }).locator('tbody tr')
          const cells = await rows.evaluateAll((all) =>
            (all as unknown as { cells: { innerText: string }[] }[]).map(({ cells }) =>
              [2, 3].map((place) => cells[place]!.innerText),
            ),
          )
          expect(cells.map((row) => row.map(plain))).toEqual(lines)
        }
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
    process.kill(started.bursar.pid, 'SIGSTOP')
    // The page may read still, and then a click would wait for it.
    await page.getByRole('link', { name: 'Statements' }).dispatchEvent('click')
    await page.getByText('The service has not answered for some seconds.').waitFor()
    process.kill(started.bursar.pid, 'SIGCONT')
    await page.getByText('The service has not answered').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Home' }).click()
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
