/** The console as a person uses it: in a browser, in a sandbox that was just started and in live mode. */
import { readdirSync, statSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../../src/program/demo/credentials.ts'
import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import { daysOf, sumOf } from '../src/format.ts'
import { OUTCOMES, PENDING_DEPOSITS } from '../src/outcomes.ts'
import { magicAddress, MAGIC_OUTCOMES, magicOutcome } from '../../src/networks/simulated/magic-addresses.ts'
import { magicDeposit } from '../../src/networks/simulated/magic-amounts.ts'
import { PAGE_POLICY } from '../../src/http/page-policy.ts'
import {
  DESKTOP,
  HAS_CHROMIUM,
  isWithinWindow,
  openPage,
  PHONE,
  seriousFaults,
  shoot as shootAs,
  startBrowserTest,
  untilStill,
  type BrowserTest,
} from '../../test/browser.ts'
import { freePort } from '../../test/free-port.ts'
import { MASTER_KEY, remoteCaller, runBursar, startTestService } from '../../test/support.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** What the browser loads, compressed. */
const BYTES_MAX = 200 * 1024

test('the page, its policy and its files, which browsers keep', async () => {
  const service = await startTestService({ BURSAR_MODE: 'live' })
  const { app } = service
  try {
    expect((await app.inject('/console')).headers.location).toBe('/console/')
    for (const path of ['/console/', '/console/transfers/any', '/console/sign-in']) {
      const page = await app.inject(path)
      expect(page.statusCode, path).toBe(200)
      expect(page.headers['content-security-policy']).toBe(PAGE_POLICY)
      expect(page.headers['cache-control']).toBe('no-cache')
    }
    expect(PAGE_POLICY).not.toMatch(/unsafe|https?:|\*/)
    const { body } = await app.inject('/console/')
    const files = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address!)
    expect(files.length).toBe(3)
    expect(body).not.toMatch(/<script>|<style|style="/)
    for (const file of files) {
      expect(file).toMatch(/^\/console\/assets\//)
      const plain = await app.inject(file)
      for (const [encoding, accepted] of [
        ['br', 'gzip, br'],
        ['gzip', 'gzip, br;q=0'],
      ]) {
        const packed = await app.inject({ url: file, headers: { 'accept-encoding': accepted } })
        expect(packed.headers['content-encoding']).toBe(encoding)
        expect(packed.headers['cache-control']).toBe('public, max-age=31536000, immutable')
        expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length)
      }
    }
    expect((await app.inject('/console/assets/other.js')).statusCode).toBe(404)
    expect((await app.inject('/console/assets/..%2f..%2fmain.js')).statusCode).toBe(404)
    expect((await app.inject({ method: 'POST', url: '/console/' })).statusCode).toBe(405)
  } finally {
    await service.close()
  }
})

test('all files together are small', () => {
  const folder = join(ROOT, 'dist/console/assets')
  const packed = readdirSync(folder).filter((name) => name.endsWith('.br'))
  const bytes = packed.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  expect(packed.length).toBeGreaterThan(2)
  expect(bytes).toBeLessThan(BYTES_MAX)
})

test('the buttons of a sandbox cover each outcome that a simulated network has', () => {
  for (const { name, network, destination } of OUTCOMES)
    expect(magicOutcome(network as CryptoNetwork, destination) ?? 'COMPLETED', name).toBe(name)
  expect(OUTCOMES.map(({ name }) => name).sort()).toEqual(['COMPLETED', ...MAGIC_OUTCOMES].sort())
  expect(PENDING_DEPOSITS.map(({ amount }) => magicDeposit(amount))).not.toContain(undefined)
})

/** An amount without its sign, groups and asset. */
const digitsOf = (text: string) => text.replaceAll(/[^\d.]/g, '')
const shoot = (page: Page, name: string) => shootAs(page, `console-${name}`)

/** The lines under Home's figures that are about the last day. */
const DAY_LINES = ['In flight', 'Waiting for a person', 'In', 'Out'].map(
  (name) => `${name}, the last 24 hours`,
)

/** The page, in the light, and on a phone in the dark: without a serious fault, and no wider than the screen. */
async function holdsEverywhere(page: Page, name: string) {
  expect(await seriousFaults(page)).toEqual([])
  await shoot(page, name)
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.setViewportSize(PHONE)
  // A chart is drawn again for its new width.
  await expect.poll(() => isWithinWindow(page)).toBe(true)
  expect(await seriousFaults(page)).toEqual([])
  await shoot(page, `${name}-dark-phone`)
  await page.setViewportSize(DESKTOP)
  await page.emulateMedia({ colorScheme: 'light' })
}

describe.skipIf(!HAS_CHROMIUM)("in a sandbox, in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let bursar: BrowserTest['bursar']
  let database: BrowserTest['database']
  let demo: SandboxCredentials
  let address: string

  beforeAll(async () => {
    // What is held must still be held when a person has looked at it.
    started = await startBrowserTest({ BURSAR_SIMULATED_PRICE_DAYS: '2', BURSAR_SIMULATED_HOLD_MS: '60000' })
    ;({ bursar, database } = started)
    demo = JSON.parse(await readFile(credentialsFile(started.folder), 'utf8')) as SandboxCredentials
    address = started.bursar.address.replace('127.0.0.1', 'localhost')
  })
  afterAll(() => started.close())

  test('it opens with the demo, and a sign-out asks who comes next', async () => {
    const { page, complaints } = await openPage(started.context, `${address}/console`)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    expect(await page.locator('.banner').innerText()).toBe('SANDBOX')
    expect(await page.locator('.customer').innerText()).toBe('Demo')
    expect(demo.customer_id).not.toBe('')
    const [cookie] = await started.context.cookies(`${address}/console/`)
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/console' })
    expect(await page.evaluate('document.cookie')).toBe('')
    await shoot(page, 'home')
    expect(complaints).toEqual([])
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    await shoot(page, 'sign-in')
    await page.getByRole('button', { name: "Open the demo's records" }).click()
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    // The page may have been reading when the session ended.
    expect(complaints.filter((one) => !one.includes('401 (Unauthorized)'))).toEqual([])
  })

  /** A page of the console, after its first answer. */
  async function at(path: string, options?: Parameters<typeof openPage>[2]) {
    const opened = await openPage(started.context, `${address}/console/${path}`, options)
    await opened.page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await untilStill(opened.page)
    return opened
  }

  test('a withdrawal becomes a story, which goes on by itself and derives again', async () => {
    const home = await at('')
    await home.page.getByText('● live').waitFor()
    const { page, complaints } = await at('sandbox')
    await page.getByRole('button', { name: 'A wire of 100 USD' }).click()
    await page.getByText('Made transfer').waitFor()
    expect(await page.locator('.curl').count()).toBe(0)
    await page.getByRole('button', { name: 'Completed', exact: true }).click()
    await page.getByRole('link', { name: /^transfer / }).click()
    await page.getByRole('heading', { name: 'Crypto withdrawal' }).waitFor()
    // No reload: the simulated network confirms after two seconds, and the page shows it. So does Home.
    await page.getByText('The ledger settled it').waitFor()
    const made = new URL(page.url()).pathname
    await home.page.locator(`a[href="${made}"]`).first().waitFor()
    const state =
      /^Paid on \d+ \w+ 20\d\d, [\d:]+ UTC, [\d.]+ m?s after the request, in transaction 0x\w+…\w+ on Ethereum\.$/
    expect(await page.locator('.state').innerText()).toMatch(state)
    await started.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy for the customer' }).click()
    await page.getByText('Copied.').waitFor()
    const copied = await page.evaluate<string>('navigator.clipboard.readText()')
    expect(copied).toMatch(
      /^Crypto withdrawal of 10 USDP\nTo: 0x5290\w+\nNetwork: Ethereum\nState: completed on .*\nTransaction: 0x\w{64}\nReference: console-\w+$/,
    )
    // A sandbox's transactions are in no explorer. The profile has its name.
    expect(await page.getByRole('link', { name: /^Look / }).count()).toBe(0)
    await page.locator('.facts').getByRole('link', { name: 'Default' }).waitFor()
    expect(await page.locator('.facts').innerText()).toMatch(/Value when made\s+11\.00 USD/)
    await page.getByText(/^worth 1\.00 USD$/).waitFor()
    const story = await page.locator('.story').innerText()
    for (const part of [
      'Requested by operator',
      'Completed by worker settlement',
      'The ledger moved the money',
      'Signed',
      'Broadcast: the network accepted it',
      'transfer.crypto_withdrawal.completed',
    ])
      expect(story).toContain(part)
    const own = page.locator('.entries .own td.number')
    const [change, before, after] = (await own.allInnerTexts()).map((text) =>
      text.replaceAll(/[^\d.−+-]/g, ''),
    )
    expect(change).toBe('−11')
    expect(Number(before) - 11).toBe(Number(after))
    await page.getByRole('button', { name: 'Verify these entries again' }).click()
    await page.locator('.checks').waitFor()
    expect(await page.locator('.checks .status').allInnerTexts()).toEqual(Array(4).fill('Holds'))
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'story')
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'story-dark')
    await page.setViewportSize(PHONE)
    expect(await isWithinWindow(page)).toBe(true)
    await shoot(page, 'story-phone')
    expect([...complaints, ...home.complaints]).toEqual([])
  })

  test('calls as curl are shown by the switch alone, which the device remembers', async () => {
    const { page, complaints } = await at('')
    await page.locator('tbody tr').first().waitFor()
    for (const path of ['', 'transfers', 'networks', 'clients', `profiles/${demo.profile_id}`]) {
      await page.goto(`${address}/console/${path}`)
      await page.locator('main tbody tr').first().waitFor()
      expect(await page.getByText('curl', { exact: true }).count(), path).toBe(0)
    }
    await page.getByRole('switch', { name: 'Developer' }).check()
    const shown = page.locator('.curl').filter({ visible: true }).first()
    await shown.locator('summary').click()
    expect(await shown.locator('pre').innerText()).toContain('/v2/profiles/')
    await page.reload()
    await shown.waitFor()
    await page.getByRole('switch', { name: 'Developer' }).uncheck()
    await expect.poll(() => page.locator('.curl').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('the box on top opens a page or searches, from the keyboard alone', async () => {
    const { page, complaints } = await at('')
    const box = page.getByRole('combobox', { name: /^Search/ })
    const options = page.getByRole('option')
    const chosen = page.getByRole('option', { selected: true })
    await page.keyboard.press('ControlOrMeta+k')
    await expect.poll(() => options.count()).toBeGreaterThan(10)
    expect(await page.locator(':focus').getAttribute('role')).toBe('combobox')
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'palette')
    await page.keyboard.press('Escape')
    await expect.poll(() => options.count()).toBe(0)
    await page.keyboard.press('ControlOrMeta+k')
    await expect.poll(() => chosen.innerText()).toMatch(/^Home/)
    // Before the first page is the box itself, and before the box the last page.
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowUp')
    await expect.poll(() => chosen.innerText()).toMatch(/^Your sign-in/)
    await page.keyboard.type('dev')
    await page.keyboard.press('ArrowDown')
    await expect.poll(() => chosen.innerText()).toMatch(/^API clients/)
    expect(await box.getAttribute('aria-activedescendant')).toBe(await chosen.getAttribute('id'))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'API clients' }).waitFor()
    // Without a page of this name, Enter searches.
    await page.keyboard.press('ControlOrMeta+k')
    await page.keyboard.type('demo-wire')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toMatch(/\/transfers\/[0-9a-f-]{36}$|q=demo-wire$/)
    expect(complaints).toEqual([])
  })

  test('Home says that nothing needs attention, or what does', async () => {
    const { page, complaints } = await at('')
    await page.getByText('Nothing needs attention.').waitFor()
    const figures = page.locator('.figures > div')
    await expect.poll(() => figures.count()).toBe(4)
    expect(await figures.locator('dt').allInnerTexts()).toEqual([
      'Value of all balances',
      'In flight',
      'Waiting for a person',
      'In and out, 24 hours',
    ])
    for (const line of ['Value, the last 30 days', ...DAY_LINES])
      await page.getByRole('img', { name: line }).waitFor()
    await page.goto(`${address}/console/sandbox`)
    await page.getByRole('button', { name: 'Require an approver' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByRole('button', { name: 'A withdrawal of 60 that waits for an approver' }).click()
    await page.getByRole('button', { name: 'Open its story' }).click()
    await page
      .getByText(/^It waits for approval, asked for .*: 0 of 1 of role approver have approved\./)
      .waitFor()
    const story = page.url()
    await page.goto(`${address}/console/`)
    const approvals = page.locator('section', { has: page.getByRole('heading', { name: 'Approvals 1' }) })
    await approvals.getByText('0 of 1 of role approver').waitFor()
    expect(await page.getByText('Nothing needs attention.').count()).toBe(0)
    expect(await page.getByText('Undelivered events').count()).toBe(0)
    await expect.poll(() => figures.nth(2).innerText()).toMatch(/^Waiting for a person\s+1\s+1 approval\b/)
    await expect.poll(() => figures.nth(1).innerText()).toMatch(/^In flight\s+61\.00 USD\s+1 payment out\./)
    await holdsEverywhere(page, 'home-attention')
    await page.goto(story)
    await page.getByRole('button', { name: 'Cancel and refund' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    // It failed: the balance is as it was.
    await expect.poll(() => page.locator('.figure').first().innerText()).toMatch(/^−61 0 USD FAILED$/i)
    await page.getByText(/^Failed on .*\. The money went back on /).waitFor()
    await holdsEverywhere(page, 'failed')
    await page.goto(`${address}/console/sandbox`)
    await page.getByRole('button', { name: 'Remove the rule' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByRole('button', { name: 'Require an approver' }).waitFor()
    await holdsEverywhere(page, 'sandbox')
    expect(complaints).toEqual([])
  })

  test('the search box opens the only record with a name, from the keyboard alone', async () => {
    const { page, complaints } = await at('')
    await page.keyboard.press('/')
    await page.keyboard.type('demo-wire')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Wire deposit' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('nothing has this name')
    await page.keyboard.press('Enter')
    await page.getByText('Nothing has this id').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await page.goBack()
    await page.getByRole('heading', { name: 'Wire deposit' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('0x52908400098527886e0f7030069857d2e4169ee7')
    await page.keyboard.press('Enter')
    // The withdrawals to an address, in any spelling: the list of them, or the only one.
    const list = page.locator('tbody tr', { hasText: /Transfer[^]*address/ })
    await list
      .or(page.getByRole('heading', { name: 'Crypto withdrawal' }))
      .first()
      .waitFor()
    expect(complaints).toEqual([])
  })

  test('the search box suggests while a person types, and the keys choose', async () => {
    const { page, complaints } = await at('')
    const box = page.getByRole('combobox', { name: /^Search/ })
    const found = page.getByRole('listbox', { name: 'Pages and records' })
    const searched: string[] = []
    page.on('request', (request) => searched.push(...new URL(request.url()).searchParams.getAll('q')))
    await box.pressSequentially('de')
    // Two letters find pages, not records.
    await found.getByRole('option', { name: /^API clients/ }).waitFor()
    const profile = found.getByRole('option', { name: /^Profile\s+Default/ })
    // The profile Default, by the beginning of its name.
    await box.pressSequentially('fau')
    await profile.waitFor()
    expect(searched).not.toContain('de')
    expect(await box.getAttribute('aria-expanded')).toBe('true')
    expect(await seriousFaults(page)).toEqual([])
    await page.keyboard.press('ArrowDown')
    expect(await profile.getAttribute('aria-selected')).toBe('true')
    expect(await box.getAttribute('aria-activedescendant')).toBe(await profile.getAttribute('id'))
    expect(await seriousFaults(page)).toEqual([])
    await page.keyboard.press('Escape')
    await profile.waitFor({ state: 'detached' })
    await box.pressSequentially('l')
    await profile.waitFor()
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Default' }).waitFor()
    // A transfer by its amount, at the width of a phone: with its amount, its profile and its status.
    await page.setViewportSize(PHONE)
    const id = (await page.locator('main a[href*="/transfers/"]').first().getAttribute('href'))!
      .split('/')
      .pop()!
    await box.fill(`${id.slice(0, 8)}…${id.slice(-6)}`)
    const transfer = found.getByRole('option', {
      name: /^Transfer.*\d.*Default.*(Completed|Pending|Failed)/s,
    })
    await transfer.waitFor()
    expect(await isWithinWindow(page)).toBe(true)
    await shoot(page, 'suggestions-phone')
    await transfer.click()
    await expect.poll(() => page.url()).toContain(`/transfers/${id}`)
    expect(complaints).toEqual([])
  })

  test('filters by amount and counterparty, the totals of what they leave, and a view that is kept', async () => {
    const { page, complaints } = await at('transfers')
    const rows = page.getByRole('region', { name: 'Transfers' }).locator('tbody tr')
    await rows.first().waitFor()
    await shoot(page, 'transfers')
    // Without a filter there are no totals.
    expect(await page.getByRole('heading', { name: 'Totals of these transfers' }).count()).toBe(0)
    await page.getByLabel('Asset').selectOption('USD')
    await page.getByLabel('Amount from').fill('9999.5')
    await page.getByLabel('Amount from').press('Enter')
    await page.getByRole('heading', { name: 'Totals of these transfers' }).waitFor()
    const totals = page.getByRole('region', { name: 'Totals' }).locator('tbody tr')
    const amounts = async () => (await rows.locator('td:nth-child(3) .amount').allInnerTexts()).map(digitsOf)
    await expect.poll(async () => (await amounts()).every((amount) => Number(amount) >= 9999.5)).toBe(true)
    const received = (await rows.allInnerTexts()).flatMap((text, index) =>
      /COMPLETED|Completed/.test(text) ? [index] : [],
    )
    const shown = await amounts()
    await expect
      .poll(async () => digitsOf(await totals.locator('td:nth-child(2)').innerText()))
      .toBe(sumOf(received.map((index) => shown[index]!)))
    await page.getByLabel('Amount from').fill('9,999')
    await page.getByLabel('Amount from').press('Enter')
    await page.getByText(/amount.gte must be a decimal number/).waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByLabel('To (address').fill(OUTCOMES[0]!.destination.toLowerCase())
    await page.getByLabel('To (address').press('Enter')
    await expect.poll(() => new URL(page.url()).search).toContain('to=0x')
    await page
      .getByText('No transfer has these properties.')
      .or(rows.getByText('0x529084…169EE7'))
      .first()
      .waitFor()
    await page.getByLabel('Name', { exact: true }).fill('To the example')
    await page.getByRole('button', { name: 'Save this view' }).click()
    await page.getByRole('button', { name: 'Delete this view' }).waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await page.getByLabel('Saved view').selectOption('None')
    await expect.poll(() => new URL(page.url()).search).toBe('')
    await page.reload()
    await page.getByLabel('Saved view').selectOption('To the example')
    await expect.poll(() => new URL(page.url()).search).toContain('to=0x')
    await page.getByRole('button', { name: 'Delete this view' }).click()
    await page.getByRole('button', { name: 'Save this view' }).waitFor()
    expect(await page.getByLabel('Saved view').locator('option').allInnerTexts()).toEqual(['None'])
    expect(complaints.filter((text) => !text.includes('400'))).toEqual([])
  })

  test('filters are kept in the address, and a CSV has what they leave', async () => {
    const { page, complaints } = await at('transfers', { size: PHONE })
    await page.locator('tbody tr').first().waitFor()
    await page.getByLabel('Type').selectOption('WIRE_DEPOSIT')
    await expect.poll(() => new URL(page.url()).search).toBe('?type=WIRE_DEPOSIT')
    await page.reload()
    await page.locator('tbody tr').first().waitFor()
    const table = page.getByRole('region', { name: 'Transfers' })
    const types = await table.locator('tbody td:nth-child(2)').allInnerTexts()
    expect(new Set(types)).toEqual(new Set(['Wire deposit']))
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save as CSV' }).click()
    const text = await readFile(await (await downloading).path(), 'utf8')
    const lines = text.trim().split('\r\n')
    expect(lines[0]).toMatch(/^id,created_at,/)
    expect(lines[0]).toContain(',profile,identity_id,identity,ref_id,')
    expect(lines[0]).toContain(',fiat_account_id,payee,group_id,')
    // A wire of the demo: what it changed the balance by, and its profile by name.
    expect(
      lines
        .slice(1)
        .every((line) => /,"USD",([\d.]+),0,\1,[\d.]*,\1,"USD",.*,"(Default|Account [^"]+)",/.test(line)),
    ).toBe(true)
    expect(lines.length - 1).toBe(types.length)
    expect(lines.slice(1).every((line) => line.includes(',"WIRE_DEPOSIT",'))).toBe(true)
    await page.getByLabel('Period').selectOption('Last month')
    const { from, before } = daysOf('Last month', Date.now())
    await expect
      .poll(() => new URL(page.url()).search)
      .toBe(`?type=WIRE_DEPOSIT&from=${from}&before=${before}`)
    expect(await page.getByLabel('Before (UTC)').inputValue()).toBe(before)
    await page.getByText('No transfer has these properties.').waitFor()
    await page.getByLabel('Period').selectOption('Today')
    await page.locator('tbody tr').first().waitFor()
    const time = page.locator('tbody time').first()
    await time.hover()
    expect(await time.getAttribute('title')).toMatch(/^\d+ \w+ \d{4}.* here, .*(ago|now)\n\d{4}-/)
    expect(await isWithinWindow(page)).toBe(true)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'transfers-phone')
    // The list of pages is behind a button there, in groups.
    const pages = page.getByRole('navigation', { name: 'Pages' })
    expect(await pages.getByRole('link').count()).toBe(0)
    await pages.getByRole('button', { name: 'Transfers' }).click()
    await pages
      .getByRole('group', { name: 'Developers' })
      .getByRole('link', { name: 'API clients' })
      .waitFor()
    expect(await isWithinWindow(page)).toBe(true)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'pages-phone')
    await pages.getByRole('link', { name: 'Profiles' }).click()
    await page.getByRole('heading', { name: 'Profiles' }).waitFor()
    expect(await pages.getByRole('link').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('a profile: its balance as a chart, each change, and what it was before', async () => {
    const { page, complaints } = await at(`profiles/${demo.profile_id}?asset=USDG`)
    await page.locator('.chart canvas').waitFor()
    const rows = page.getByRole('region', { name: 'Entries of USDG' }).locator('tbody tr')
    await rows.first().waitFor()
    expect(await rows.count()).toBeGreaterThan(3)
    await rows.getByRole('link', { name: 'Crypto deposit' }).first().waitFor()
    // Its statement: each change of the days chosen, with the balance after it.
    await page.getByLabel('Period').selectOption('Today')
    await expect.poll(() => new URL(page.url()).search).toContain('&before=')
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save as CSV' }).click()
    const saved = await saving
    const { from, before } = daysOf('Today', Date.now())
    expect(saved.suggestedFilename()).toBe(`USDG-entries-from-${from}-before-${before}.csv`)
    const [head, newest] = (await readFile(await saved.path(), 'utf8')).split('\r\n')
    expect(head).toMatch(/created_at,sequence,event,type,change,balance_after,asset,transfer_id,/)
    expect(newest).toMatch(/^"20[^"]+Z",\d+,"CREATED","PAXOS_TRANSFER_CREDIT",[\d.]+,[\d.]+,"USDG","/)
    await page.getByLabel('Period').selectOption('Any')
    await page.getByText('Active', { exact: true }).waitFor()
    await page
      .locator('.balances td', { hasText: /^[\d\s]+\.\d\d USD$/ })
      .last()
      .waitFor()
    const now = await page.locator('.balances').innerText()
    await page.getByLabel('Balances at (UTC)').fill('2000-01-01T00:00')
    await page.getByLabel('Balances at (UTC)').blur()
    await expect.poll(() => page.locator('.balances').innerText()).not.toBe(now)
    expect(await seriousFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Now' }).click()
    await expect.poll(() => page.locator('.balances').innerText()).toBe(now)
    await shoot(page, 'profile')
    await page.getByRole('navigation').getByRole('link', { name: 'Profiles' }).click()
    await page.getByRole('link', { name: 'Default' }).waitFor()
    const all = page.getByRole('region', { name: 'Profiles' }).locator('tbody tr')
    await all.filter({ hasText: 'Ada Example' }).waitFor()
    expect(await all.filter({ hasText: 'Default' }).locator('time').first().getAttribute('datetime')).toMatch(
      /^\d{4}-\d\d-01T09:00:00/,
    )
    await page.getByLabel('Whole nickname').fill('Default')
    await page.getByLabel('Whole nickname').press('Enter')
    await expect.poll(() => all.count()).toBe(1)
    expect(complaints).toEqual([])
  })

  test('events with the webhooks that get them, and the audit log', async () => {
    const { page, complaints } = await at('events')
    await page.getByRole('region', { name: 'Events' }).locator('tbody tr').first().waitFor()
    await page.getByRole('button', { name: 'Tests', exact: true }).click()
    await page.getByText('Latest deliveries').waitFor()
    await page.getByRole('button', { name: 'Send a test event' }).click()
    const deliveries = page.getByRole('region', { name: 'Latest deliveries' }).locator('tbody tr')
    await deliveries.filter({ hasText: 'transfer.crypto_withdrawal.completed' }).first().waitFor()
    await page.getByRole('button', { name: 'Send all again' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByText(/^\d+ events are sent again\.$/).waitFor()
    await deliveries.first().locator('summary', { hasText: 'attempt' }).click()
    await page.getByRole('button', { name: 'Rotate the secret' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    expect(await page.locator('.secret code').innerText()).toMatch(/^whsec_/)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'events')
    await page.getByRole('navigation').getByRole('link', { name: 'Audit log' }).click()
    await page.getByRole('region', { name: 'Audit log' }).locator('tbody tr').first().waitFor()
    await page.getByLabel('Who').selectOption('OPERATOR')
    await expect.poll(() => page.locator('tbody').innerText()).not.toContain('Worker')
    expect(await page.locator('tbody').innerText()).toContain('operator.sign_in')
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText(/ links with [\d,\s]+ records are as they were written\./).waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save the head' }).click()
    const kept = await (await saved).path()
    const verified = await runBursar(['audit', 'verify', '--head', kept], started.environment)
    expect(verified.stdout).toMatch(/^Clean: .* 1 anchored heads\./m)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'audit-log')
    expect(complaints).toEqual([])
  })

  test('Home names the webhook that does not answer, and counts what it has not got', async () => {
    const call = await remoteCaller(bursar.address, demo)
    const nobody = await freePort()
    const made = await call('POST', '/v2/webhooks', {
      name: 'Nobody listens',
      url: `http://127.0.0.1:${nobody}/`,
      event_types: ['transfer.wire_deposit.completed'],
    })
    expect(made.status).toBe(200)
    await call('POST', '/v2/sandbox/fiat-deposits', {
      amount: '3.00',
      asset: 'USD',
      memo_id: demo.memo_id,
      fiat_network_instructions: { wire: {} },
    })
    const { page, complaints } = await at('')
    const part = page.locator('section', { hasText: 'Undelivered events' })
    await expect
      .poll(
        async () => {
          await page.reload()
          await part.or(page.getByText('Nothing needs attention.')).first().waitFor()
          return (await part.allInnerTexts()).join()
        },
        { timeout: 30_000, interval: 1_000 },
      )
      .toMatch(/Nobody listens Failing\s+since .*: 1 to deliver, 0 given up/)
    expect(await seriousFaults(page)).toEqual([])
    await part.getByRole('link', { name: 'Nobody listens' }).click()
    await page.getByText('Latest deliveries').waitFor()
    expect(complaints).toEqual([])
  })

  test('an orchestration that failed shows its way, and opens the step that failed', async () => {
    const call = await remoteCaller(bursar.address, demo)
    const profile = { profile_id: demo.profile_id }
    const streams: Route[] = []
    await started.context.route('**/v2/events/stream', (route) => void streams.push(route), { times: 1 })
    const { page, complaints } = await at('orchestrations')
    await page.locator('tbody a').first().waitFor()
    await expect.poll(() => streams.length).toBe(1)
    const { body: run } = await call('POST', '/v2/orchestration/orchestrations', {
      ...{ ref_id: 'console-fails', source_asset: 'USD', destination_asset: 'USDP', source_amount: '12' },
      ...{ ...profile, source: { profile } },
      destination: {
        crypto: { network: 'ETHEREUM', address: magicAddress('ETHEREUM', 'TRAVEL_RULE_REJECTED') },
      },
    })
    const path = `orchestrations/${String(run.id)}`
    await expect.poll(async () => (await call('GET', `/v2/orchestration/${path}`)).body.status).toBe('FAILED')
    // No reload: what happened before the page's stream of events was open is shown, too.
    await streams[0]!.continue()
    await page.locator(`a[href$="${path}"]`).first().click()
    await page.locator('.figure .status', { hasText: 'FAILED' }).waitFor()
    const steps = page.locator('.steps > li > details')
    await page.locator('.steps > li:last-child > details[open]').waitFor()
    expect(await page.locator('.steps > li > details[open]').count()).toBe(1)
    expect(await steps.last().innerText()).toContain('travel rule information was not accepted')
    await steps.last().getByRole('link', { name: 'Crypto withdrawal' }).waitFor()
    expect(await page.getByRole('img').getAttribute('aria-label')).toMatch(
      /^Route of the money: Profile .*Ethereum/,
    )
    await holdsEverywhere(page, 'orchestration')
    await steps.last().getByRole('link', { name: 'Crypto withdrawal' }).click()
    await page.getByText('It pays out an orchestration').waitFor()
    await page.getByRole('link', { name: 'orchestration', exact: true }).click()
    await page.getByRole('heading', { name: 'Steps' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('orchestrations by filters in the address, their rules, and the runs of a rule', async () => {
    const { page, complaints } = await at('orchestrations')
    const rows = page.locator('tbody tr')
    await expect.poll(() => rows.count()).toBeGreaterThan(1)
    // What was paid, and the name of the rule that paid it.
    const ofRule = rows.filter({ has: page.getByRole('link', { name: 'Wires become USDP on Ethereum' }) })
    await expect.poll(() => ofRule.first().innerText()).toMatch(/100 USD\s+99 USDP/)
    await page.getByLabel('Status').selectOption('FAILED')
    await expect.poll(() => new URL(page.url()).search).toBe('?status=FAILED')
    await expect.poll(() => rows.count()).toBe(1)
    await holdsEverywhere(page, 'orchestrations')
    await page.getByRole('link', { name: 'Rules', exact: true }).click()
    await page.getByRole('link', { name: 'Wires become USDP on Ethereum' }).click()
    const run = page.locator('.runs > li').first()
    await run.locator('summary').first().press('Enter')
    await run.getByText('Money arrives').waitFor()
    await holdsEverywhere(page, 'rule')
    await run.getByRole('link', { name: 'Open this run' }).click()
    await page.getByRole('heading', { name: 'Steps' }).waitFor()
    await page.goto(`${address}/console/orchestrations/${demo.profile_id}`)
    await page.getByRole('alert').waitFor()
    expect(complaints).toEqual([expect.stringContaining('404')])
  })

  test('a market as candles and as a line, with its source, and gaps where no price is known', async () => {
    const { page, complaints } = await at('markets')
    await page.getByRole('link', { name: 'BTCUSD' }).click()
    await page.getByText('No price is missing.').waitFor()
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('BTCUSD Simulated prices')
    await page.locator('.chart canvas').waitFor()
    await holdsEverywhere(page, 'market')
    await page.getByRole('button', { name: 'Line' }).click()
    await page.getByRole('button', { name: '1 day' }).click()
    await expect.poll(() => new URL(page.url()).search).toBe('?as=line&span=1d')
    await page.getByText('candles of fifteen minutes').waitFor()
    await shoot(page, 'market-line')
    await database.owner.query(`
      delete from price_points
      where market_id = (select id from markets where market = 'BTCUSD') and increment_minutes = 15
        and starts_at between extract(epoch from now() - interval '9 hours') / 60
                          and extract(epoch from now() - interval '7 hours') / 60`)
    await page.reload()
    await page.getByText('1 gap, in which no price is known').waitFor()
    await page.getByRole('button', { name: 'Candles' }).click()
    await shoot(page, 'market-gap')
    await page.getByRole('navigation').getByRole('link', { name: 'Markets' }).click()
    await page.getByText('24-hour change').waitFor()
    await holdsEverywhere(page, 'markets')
    expect(complaints).toEqual([])
  })

  test('statements: a bar for each month, and a month day by day, explained again from the ledger', async () => {
    const { page, complaints } = await at('statements')
    const bars = page.getByRole('region', { name: 'The reward of each month' }).getByRole('link')
    await expect.poll(() => bars.count()).toBe(3)
    expect(Number(await bars.locator('.value').last().getAttribute('data-value'))).toBeGreaterThan(0)
    const amounts = page.getByRole('region', { name: 'Statements' }).locator('td:nth-child(3) .amount')
    await expect.poll(() => amounts.count()).toBe(3)
    const owed = await amounts.allInnerTexts()
    const total = sumOf(owed.map((text) => text.replaceAll(/[^\d.]/g, '')))
    await page.getByText('Total of these 3 months').waitFor()
    expect((await page.locator('.facts .amount').first().innerText()).replaceAll(/[^\d.]/g, '')).toBe(total)
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save as CSV' }).click()
    const saved = await downloading
    expect(saved.suggestedFilename()).toBe('statements.csv')
    const lines = (await readFile(await saved.path(), 'utf8')).trim().split('\r\n')
    expect(lines.length).toBe(1 + 3)
    for (const text of owed) expect(lines.join()).toContain(`,"USDG",${text.replaceAll(/[^\d.]/g, '')},`)
    await holdsEverywhere(page, 'statements')
    await bars.last().press('Enter')
    await page.getByText('The ledger gives the same amount as the statement.').waitFor()
    expect(await page.locator('.derived .status').innerText()).toBe('Holds')
    const days = page.getByRole('region', { name: 'Days' }).locator('tbody tr')
    expect(await days.count()).toBeGreaterThanOrEqual(28)
    await page.getByRole('button', { name: 'Explain it again from the ledger' }).click()
    await page.getByText('Computed again at').waitFor()
    await holdsEverywhere(page, 'statement')
    // An amount that the ledger does not give is shown as such.
    const id = new URL(page.url()).pathname.split('/').at(-1)
    await database.owner.query(
      'update statements set total_amount_owed = total_amount_owed + 1 where id = $1',
      [id],
    )
    await page.getByRole('button', { name: 'Explain it again from the ledger' }).click()
    await page.getByText('DIFFERS').waitFor()
    await database.owner.query(
      'update statements set total_amount_owed = total_amount_owed - 1 where id = $1',
      [id],
    )
    await page.goto(`${address}/console/statements/${demo.profile_id}`)
    await page.getByText('There is no statement with this id.').waitFor()
    expect(complaints).toEqual([])
  })

  test('networks for everybody and for operators, and what has moved in a day on Home', async () => {
    const { page, complaints } = await at('networks')
    const rows = page.getByRole('region', { name: 'Networks', exact: true }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBeGreaterThan(5)
    await page.getByRole('heading', { name: 'For operators' }).waitFor()
    await page.getByText('Simulated, and nothing is under way:').waitFor()
    await holdsEverywhere(page, 'networks')
    await page.goto(`${address}/console/`)
    await page.getByText(/^\d+ in, \d+ out, completed\./).waitFor()
    await page.getByRole('img', { name: 'USDG of all profiles, the last 30 days' }).waitFor()
    // In and out are drawn to one scale: of the two, the larger alone reaches the top.
    const highest = async (name: string) => {
      const line = page.getByRole('img', { name: `${name}, the last 24 hours`, exact: true })
      const points = await line.locator('polyline').getAttribute('points')
      return Math.min(...points!.split(' ').map((point) => Number(point.split(',')[1])))
    }
    const tops = [await highest('In'), await highest('Out')].sort((one, other) => one - other)
    expect(tops[0]).toBe(2)
    expect(tops[1]).toBeGreaterThan(2)
    await holdsEverywhere(page, 'home-whole')
    expect(complaints).toEqual([])
  })

  test('a withdrawal that is held is cancelled after a question, and the page shows the call', async () => {
    const { page, complaints } = await at('sandbox')
    await page.getByRole('button', { name: 'A wire of 100 USD' }).click()
    await page.getByText('Made transfer').waitFor()
    await page.getByRole('button', { name: 'Simulated hold' }).click()
    await page.getByRole('button', { name: 'Open its story' }).click()
    await page.getByRole('heading', { name: 'Crypto withdrawal' }).waitFor()
    await page.getByText(/^Held, requested .*The sandbox simulates this hold/).waitFor()
    await page.getByRole('switch', { name: 'Developer' }).check()
    const head = page.locator('.of-record')
    await head.locator('.curl summary').click()
    expect(await head.locator('.curl pre').innerText()).toMatch(/curl -X POST .*\/cancel'/)
    await head.getByRole('button', { name: 'Cancel and refund' }).click()
    expect(await seriousFaults(page)).toEqual([])
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    // "No": nothing has happened, and the focus is where it was.
    const hasFocus = (name: string) => expect.poll(() => page.locator(':focus').textContent()).toBe(name)
    await hasFocus('Cancel and refund')
    await page.keyboard.press('Enter')
    await hasFocus('Yes')
    await page.keyboard.press('Enter')
    await head.getByText('Failed', { exact: true }).waitFor()
    await page.getByText('The ledger gave the money back').waitFor()
    await page.getByRole('switch', { name: 'Developer' }).uncheck()
    expect(complaints).toEqual([])
  })

  test('API clients: a new secret is shown once, and a client is deleted', async () => {
    const { page, complaints } = await at('clients')
    const oneScope = page.locator('summary', { hasText: /^1 scope$/ })
    const spare = page.locator('tbody tr').filter({ has: oneScope })
    await spare.waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await spare.getByRole('button', { name: 'Rotate' }).click()
    await spare.getByRole('button', { name: 'Yes' }).click()
    await page.locator('.secret').waitFor()
    const secret = await page.locator('.secret code').last().innerText()
    expect(secret).toMatch(/^[\w-]{43}$/)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'clients')
    await page.setViewportSize(PHONE)
    expect(await isWithinWindow(page)).toBe(true)
    await shoot(page, 'clients-phone')
    await page.setViewportSize(DESKTOP)
    await page.reload()
    await spare.waitFor()
    expect(await page.content()).not.toContain(secret)
    await spare.getByRole('button', { name: 'Delete' }).click()
    await spare.getByRole('button', { name: 'Yes' }).click()
    await expect.poll(() => spare.count()).toBe(0)
    await page.getByLabel('Status').selectOption('DELETED')
    await page.locator('tbody').getByText('DELETED').waitFor()
    expect(complaints).toEqual([])
  })

  test('operators: another role and the end of an access, but not of oneself', async () => {
    const named = ['--name', 'Bob', '--role', 'VIEWER', '--customer', demo.customer_id]
    await runBursar(['operator', 'create', ...named], started.environment)
    const { page, complaints } = await at('operators')
    const row = (name: string) => page.locator('tbody tr', { hasText: name })
    await row('Bob').waitFor()
    expect(await row('Demo console').getByRole('button', { name: 'Disable' }).count()).toBe(0)
    await row('Bob').getByText('Another role').click()
    await row('Bob').getByRole('button', { name: 'Approver' }).click()
    await row('Bob').getByRole('button', { name: 'Yes' }).click()
    await row('Bob')
      .locator('td', { hasText: /^Approver$/ })
      .waitFor()
    await row('Bob').getByRole('button', { name: 'Disable' }).click()
    await row('Bob').getByRole('button', { name: 'Yes' }).click()
    await row('Bob').getByText('DISABLED').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'operators')
    await page.setViewportSize(PHONE)
    expect(await isWithinWindow(page)).toBe(true)
    expect(complaints).toEqual([])
  })

  test('a hidden tab holds no stream, and shows what has happened meanwhile', async () => {
    const { page, complaints } = await at('')
    const call = await remoteCaller(bursar.address, demo)
    const says = (text: string) => page.getByText(text, { exact: true }).waitFor()
    const hide = (hidden: boolean) =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} })
        document.dispatchEvent(new Event('visibilitychange'))`)
    await says('● live')
    await hide(true)
    await says('○ connecting')
    const { body } = await call('POST', `/v2/sandbox/profiles/${demo.profile_id}/deposit`, {
      ...{ asset: 'USD', amount: '7.77' },
    })
    expect(body).toHaveProperty('activity_id')
    await hide(false)
    await says('● live')
    await page.getByText('7.77').first().waitFor()
    expect(complaints).toEqual([])
  })

  test('a transfer names its other side: a profile, or a bank account', async () => {
    const call = await remoteCaller(bursar.address, demo)
    const { body: made } = await call('POST', '/v2/profiles', { nickname: 'Payroll' })
    const inside = { asset: 'USD', amount: '10.5', from_profile_id: demo.profile_id, to_profile_id: made.id }
    expect((await call('POST', '/v2/transfer/internal', inside)).status).toBe(200)
    const { body: accounts } = await call('GET', '/v2/transfer/fiat-accounts')
    const [account] = accounts.items as { id: string }[]
    const wire = { profile_id: demo.profile_id, asset: 'USD', amount: '30', fiat_account_id: account!.id }
    expect((await call('POST', '/v2/transfer/fiat-withdrawals', wire)).status).toBe(200)
    const { page, complaints } = await at('transfers')
    const sides = async (type: string) => {
      const row = page
        .getByRole('region', { name: 'Transfers' })
        .locator('tbody tr', { has: page.getByRole('link', { name: type }) })
        .first()
      return [
        (await row.locator('td:nth-child(5)').innerText()).trim(),
        await row.locator('td:nth-child(6)').innerText(),
      ]
    }
    await expect.poll(() => sides('Internal transfer debit')).toEqual(['Payroll', 'Default'])
    await expect.poll(() => sides('Internal transfer credit')).toEqual(['Default', 'Payroll'])
    await expect
      .poll(() => sides('Wire withdrawal'))
      .toEqual([expect.stringMatching(/^\w+ \w+ …\d{4}$/), 'Default'])
    await page.getByLabel('To (address').fill(account!.id)
    await page.getByLabel('To (address').press('Enter')
    await expect.poll(() => page.getByRole('link', { name: 'Internal transfer debit' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Wire withdrawal' }).first().waitFor()
    await shoot(page, 'transfers-to')
    expect(complaints).toEqual([])
  })

  test('home and the sign-in have no serious fault of accessibility', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, complaints } = await at('', { colorScheme })
      await page.locator('tbody tr').first().waitFor()
      expect(await seriousFaults(page)).toEqual([])
      await shoot(page, `home-${colorScheme}`)
      expect(complaints).toEqual([])
      // By its address, the sign-in would sign in to the demo and go on, maybe before it is looked at.
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
      expect(await seriousFaults(page)).toEqual([])
    }
  })
})

describe.skipIf(!HAS_CHROMIUM)("in live mode, in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bursar-console-networks-'))
    const file = join(folder, 'networks.json')
    // Nothing listens there: a node that does not answer.
    const litecoin = {
      adapter: 'bitcoin-core',
      rpc_url: 'http://127.0.0.1:9/',
      rpc_user: 'bursar',
      rpc_password: { env: 'LITECOIN_RPC_PASSWORD' },
      confirmations: 12,
      fee_ceiling: '0.01',
      low_mark: '2',
    }
    await writeFile(file, JSON.stringify({ LITECOIN: litecoin }))
    started = await startBrowserTest({
      BURSAR_MODE: 'live',
      BURSAR_MASTER_KEY: MASTER_KEY,
      BURSAR_NETWORKS_FILE: file,
      LITECOIN_RPC_PASSWORD: 'secret',
    })
  })
  afterAll(async () => {
    await started.close()
    await rm(folder, { recursive: true, force: true })
  })

  const json = async (...args: string[]) =>
    JSON.parse((await runBursar([...args, '--json'], started.environment)).stdout) as Record<string, string>

  test('a link signs in once, and the page reads only', async () => {
    const { customer_id } = await json('customer', 'create', '--name', 'Acme')
    const named = ['--name', 'Ada', '--role', 'VIEWER', '--customer', customer_id!]
    const { operator_id } = await json('operator', 'create', ...named)
    const { link } = await json('console', 'link')
    expect(link).toMatch(new RegExp(`^${started.bursar.address}/console/sign-in#bursar_link_`))
    expect(operator_id).toBeDefined()

    const { page, complaints } = await openPage(started.context, link!)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    expect(await page.locator('.banner').innerText()).toBe('LIVE')
    expect(page.url()).toBe(`${started.bursar.address}/console/`)
    // A request that is under way when the session ends is a 401.
    await page.getByText('No profile has had a balance.').first().waitFor()
    await page.getByText('● live').waitFor()
    expect(await page.getByRole('link', { name: 'Sandbox' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    expect(await page.getByText("Open the demo's records").count()).toBe(0)
    await shoot(page, 'sign-in-live')
    expect(complaints).toEqual([])
    await page.goto('about:blank')
    await page.goto(link!)
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).toMatch(/used or expired/)
  })

  test('clients and operators: a VIEWER reads them, and an ADMIN changes them', async () => {
    const { customer_id } = await json('customer', 'create', '--name', 'Staffed')
    const of = ['--customer', customer_id!]
    const scopes = ['--scopes', 'transfer:read_transfer']
    const { client_id, client_secret } = await json('client', 'create', ...of, ...scopes)
    const operator = async (name: string, role: string) =>
      (await json('operator', 'create', '--name', name, '--role', role, ...of)).operator_id!
    const [vera, adam] = [await operator('Vera', 'VIEWER'), await operator('Adam', 'ADMIN')]
    const signIn = async (operatorId: string) => {
      const { link } = await json('console', 'link', operatorId)
      const { page, complaints } = await openPage(started.context, link!)
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
      const open = (name: string) =>
        page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
      return { page, complaints, open, row: (text: string) => page.locator('tbody tr', { hasText: text }) }
    }
    const viewer = await signIn(vera)
    await viewer.open('API clients')
    await viewer.row('1 scope').getByText('APPROVED').waitFor()
    const changes = viewer.page.getByRole('button', { name: /Rotate|Delete|Disable|Enable|Admin/ })
    expect(await changes.count()).toBe(0)
    expect(await viewer.page.getByText('After a rotation').count()).toBe(0)
    await holdsEverywhere(viewer.page, 'live-viewer-clients')
    await viewer.open('Operators')
    await viewer.row('Adam').getByText('ACTIVE').waitFor()
    expect(await changes.count()).toBe(0)
    expect(await viewer.page.getByText('Another role').count()).toBe(0)
    await holdsEverywhere(viewer.page, 'live-viewer-operators')
    // The service refuses it, too: the page only leaves the button out.
    const refused = await viewer.page.evaluate(
      `fetch('/console/api/v2/api-creds/credentials/${client_id}', { method: 'DELETE', headers: { 'x-bursar-console': 'page' } }).then((answer) => answer.status)`,
    )
    expect(refused).toBe(403)
    expect(viewer.complaints).toEqual([expect.stringContaining('403')])

    const admin = await signIn(adam)
    expect(await admin.page.locator('.operator').innerText()).toContain('Adam')
    await admin.open('API clients')
    const own = admin.row('1 scope')
    await own.getByRole('button', { name: 'Rotate' }).click()
    await own.getByRole('button', { name: 'Yes' }).click()
    await admin.page.locator('.secret').waitFor()
    await holdsEverywhere(admin.page, 'live-admin-clients')
    await own.getByRole('button', { name: 'Delete' }).click()
    await own.getByRole('button', { name: 'Yes' }).click()
    await admin.page.getByText('There is no API client.').waitFor()
    const token = await fetch(`${started.bursar.address}/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: client_id!,
        client_secret: client_secret!,
      }),
    })
    expect(token.status).toBe(401)
    await admin.open('Operators')
    await admin.row('Adam').getByText('you').waitFor()
    await admin.row('Vera').getByText('Another role').click()
    await holdsEverywhere(admin.page, 'live-admin-operators')
    await admin.row('Vera').getByRole('button', { name: 'Disable' }).click()
    await admin.row('Vera').getByRole('button', { name: 'Yes' }).click()
    await admin.row('Vera').getByText('DISABLED').waitFor()
    expect(admin.complaints).toEqual([])
  })

  test('an operator of one customer sees its pages, and one of the deployment the figures of all', async () => {
    const { customer_id } = await json('customer', 'create', '--name', 'Bound')
    const bound = ['--name', 'Bo', '--role', 'VIEWER', '--customer', customer_id!]
    const { operator_id: own } = await json('operator', 'create', ...bound)
    const { operator_id: ofAll } = await json('operator', 'create', '--name', 'Pat', '--role', 'VIEWER')
    const signedIn = async (operatorId: string) => {
      const { link } = await json('console', 'link', operatorId)
      const { page, complaints } = await openPage(started.context, link!)
      await page
        .getByRole('button', { name: 'Sign out' })
        .or(page.getByText('Whose records?'))
        .first()
        .waitFor()
      return { page, complaints }
    }
    const { page, complaints } = await signedIn(own!)
    const open = (name: string) =>
      page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
    await open('Networks')
    await page.getByRole('cell', { name: '12 confirmations' }).waitFor()
    expect(await page.getByText('For operators').count()).toBe(0)
    await open('Statements')
    await page.getByText('There is no statement.').waitFor()
    await open('Orchestrations')
    await page.getByText('No orchestration has these properties.').waitFor()
    await open('Markets')
    await page.getByText('no price yet').first().waitFor()
    await page.getByRole('link', { name: 'BTCUSD' }).click()
    await page.getByText('This market has no price yet.').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    await page.close()

    const platform = await signedIn(ofAll!)
    // This browser remembers the customer.
    await platform.page
      .getByRole('navigation', { name: 'Pages' })
      .getByRole('link', { name: 'Networks' })
      .click()
    await platform.page.getByText('NOT REACHABLE').waitFor()
    expect(await seriousFaults(platform.page)).toEqual([])
    await shoot(platform.page, 'networks-live')
    await platform.page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Home' }).click()
    await platform.page.getByRole('heading', { name: 'Delayed or stopped networks' }).waitFor()
    // Another customer: its own records, on the page that was shown.
    const profile = platform.page.getByRole('link', { name: 'Default' })
    const before = await profile.getAttribute('href')
    await platform.page.getByLabel('Customer').selectOption('Acme')
    await expect.poll(() => profile.getAttribute('href')).not.toBe(before)
    await platform.page.getByText('● live').waitFor()
    expect(platform.complaints).toEqual([])
  })
})
