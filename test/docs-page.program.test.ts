/** The API reference as a person uses it: in a browser, against a sandbox that was just started. */
import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { PROBLEMS, type ProblemKind } from '../src/contract/problems.ts'
import { isWithoutOperations, SCOPES } from '../src/contract/scopes.ts'
import {
  DESKTOP,
  HAS_CHROMIUM,
  isWithinWindow,
  newPage,
  openPage,
  PHONE,
  shoot as shootIn,
  startBrowserTest,
  type BrowserTest,
} from './browser.ts'
import { startTestService } from './support.ts'

test('without a token, in live mode too: the page, its policy and its files', async () => {
  for (const mode of ['sandbox', 'live']) {
    const service = await startTestService({ BURSAR_MODE: mode, BURSAR_DOCS: 'true' })
    const { app } = service
    try {
      const root = await app.inject('/')
      expect(root.statusCode).toBe(302)
      expect(new URL(String(root.headers.location), 'http://here/').href).toBe('http://here/docs/')
      const page = await app.inject('/docs/')
      expect(page.statusCode).toBe(200)
      expect(page.body).toContain('<title>Bursar API reference</title>')
      const policy = String(page.headers['content-security-policy'])
      expect(policy).toContain("default-src 'none'")
      expect(policy).not.toMatch(/unsafe|https?:|\*/)
      const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address!)
      expect(files.length).toBeGreaterThan(5)
      let bytes = 0
      for (const file of files) {
        expect(file).toMatch(/^\.\//)
        const { pathname: url } = new URL(file, 'http://here/docs/')
        const sent = await app.inject({ url, headers: { 'accept-encoding': 'gzip' } })
        expect(sent.statusCode, file).toBe(200)
        if (file === './' || file === './json') continue
        // Its name has the hash of its content.
        expect(sent.headers['cache-control']).toBe('public, max-age=31536000, immutable')
        expect(sent.headers['content-encoding']).toBe('gzip')
        expect((await app.inject(url)).rawPayload.equals(gunzipSync(sent.rawPayload))).toBe(true)
        bytes += sent.rawPayload.length
      }
      expect(bytes).toBeLessThan(500_000)
      const { tags } = (await app.inject('/docs/json')).json<{ tags: { name: string }[] }>()
      const first = tags.slice(0, 3).map(({ name }) => name)
      expect(first).toEqual(
        ['Profiles', ...(mode === 'sandbox' ? ['Sandbox'] : []), 'Transfers', 'Conversions'].slice(0, 3),
      )
      const problems = await app.inject('/problems')
      expect(problems.statusCode).toBe(200)
      expect(problems.body).toContain('<a href="/problems/insufficient-funds">')
      // A plain problem has no page: the list says what to do about it.
      for (const [slug, { status, explanation, hint }] of Object.entries<ProblemKind>(PROBLEMS)) {
        expect(hint === undefined, slug).toBe(explanation !== undefined)
        if (hint !== undefined)
          expect(problems.body).toMatch(
            new RegExp(`<li id="${slug}">${status} [^<]+<code>about:blank</code><p>\\w`),
          )
      }
      const document = (await app.inject('/docs/json')).json<{ servers: object; paths: object }>()
      // The service of a test does not listen, so it has no demo.
      const token = await app.inject({ method: 'POST', url: '/docs/demo-token' })
      expect(token.statusCode).toBe(mode === 'sandbox' ? 403 : 404)
      expect(page.body.includes('id="demo"')).toBe(mode === 'sandbox')
      expect(page.body.includes('data-sandbox')).toBe(mode === 'sandbox')
      expect(page.body).not.toContain('{{')
      expect(document.servers).toEqual([{ url: '/' }])
      expect('/v2/sandbox/fiat-deposits' in document.paths).toBe(mode === 'sandbox')
    } finally {
      await service.close()
    }
  }
})

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let demo: SandboxCredentials
  /** Not the address that the service believes to have: people type this one. */
  let address: string

  beforeAll(async () => {
    started = await startBrowserTest()
    demo = JSON.parse(await readFile(credentialsFile(started.folder), 'utf8')) as SandboxCredentials
    address = started.bursar.address.replace('127.0.0.1', 'localhost')
  })
  afterAll(() => started.close())

  const shoot = (what: Page | Locator, name: string) => shootIn(what, name, { whole: false })

  async function authorize(page: Page): Promise<void> {
    await page.click('.scheme-container .btn.authorize')
    const dialog = page.locator('.dialog-ux')
    await dialog.locator('input[id^=client_id_]').fill(demo.client_id)
    await dialog.locator('input[id^=client_secret_]').fill(demo.client_secret)
  }

  /** Executes an operation's example and gives the status and the body that the page then shows. */
  async function execute(page: Page, id: string) {
    const operation = page.locator(`#operations-${id}`)
    await operation.locator('.opblock-summary-control').click()
    await operation.locator('.btn.execute').click()
    const live = operation.locator('.live-responses-table .response')
    await live.waitFor()
    return {
      operation,
      status: await live.locator('.response-col_status').innerText(),
      body: await live.locator('.response-col_description').innerText(),
    }
  }

  // The page has every operation, and takes seconds of CPU to open: the tests of a desktop share it.
  describe('on a desktop', () => {
    let page: Page
    let complaints: string[]
    beforeAll(async () => {
      ;({ page, complaints } = await newPage(started.context, `${address}/`))
      await page.waitForSelector('.opblock')
    })
    afterAll(() => page.close())
    afterEach(() => expect(complaints).toEqual([]))

    test('one click authorizes as the demo customer, on the machine of the sandbox only', async () => {
      expect(new URL(page.url()).pathname).toBe('/docs/')
      expect(await page.title()).toBe('Bursar API reference')
      await shoot(page, 'desktop')
      await page.getByRole('button', { name: 'Authorize as the demo customer' }).click()
      await page.getByText('Authorized as the demo customer').waitFor()
      await shoot(page, 'desktop-demo')
      const profiles = await execute(page, 'Profiles-listProfiles')
      expect(profiles.status).toBe('200')
      await page.click('.scheme-container .btn.authorize')
      await page.locator('.dialog-ux').getByText('Logout').click()
      await page.locator('.dialog-ux .btn-done').click()
    })

    test('authorize and try: the wire arrives, and the balance shows it', async () => {
      await authorize(page)
      const dialog = page.locator('.dialog-ux')
      const ticked = dialog.locator('.scopes input[type=checkbox]:checked')
      expect(await ticked.count()).toBe(SCOPES.filter((scope) => !isWithoutOperations(scope)).length)
      await dialog.getByText('select none').click()
      expect(await ticked.count()).toBe(0)
      await dialog.getByText('select all').click()
      expect(await ticked.count()).toBe(SCOPES.filter((scope) => !isWithoutOperations(scope)).length)
      await shoot(page, 'desktop-authorize')
      await dialog.locator('.btn.authorize').click()
      await dialog.getByText('Logout').waitFor()
      await shoot(page, 'desktop-authorized')
      await dialog.locator('.btn-done').click()

      const deposit = await execute(page, 'Sandbox-initiateSandboxFiatDeposit')
      expect(deposit.status).toBe('200')
      const balances = await execute(page, 'Profiles-listProfileBalances')
      expect(balances.status).toBe('200')
      expect(balances.body).toMatch(/"asset": "USD",\s+"available": "10250"/)
      await shoot(balances.operation, 'desktop-tried')
      // Many parameters of a list, of which the examples alone are sent.
      const transfers = await execute(page, 'Transfers-listTransfers')
      expect(transfers.status).toBe('200')
      expect(transfers.body).toContain(demo.profile_id)
      const withdrawal = await execute(page, 'Transfers-createCryptoWithdrawal')
      expect(withdrawal.body).toContain('"status": "PENDING"')
      await shoot(withdrawal.operation, 'desktop-withdrawal')
    })

    test('the filter finds operations by the words of path, name and tag, in the dark', async () => {
      await page.emulateMedia({ colorScheme: 'dark' })
      // Events of webhooks are listed, too, and have no path.
      const operations = page.locator('.opblock-summary-path', { hasText: '/' })
      const all = await operations.count()
      for (const [words, found] of [
        ['historical candle', ['Market_Data-listHistoricalCandles']],
        ['post sandbox fiat-dep', ['Sandbox-initiateSandboxFiatDeposit']],
        ['no such words', []],
      ] as const) {
        await page.getByPlaceholder('Filter by path, name or tag').fill(words)
        await expect.poll(() => operations.count(), { timeout: 20_000 }).toBe(found.length)
        for (const id of found) expect(await page.locator(`#operations-${id}`).count()).toBe(1)
      }
      await page.getByPlaceholder('Filter by path, name or tag').fill('')
      await expect.poll(() => operations.count(), { timeout: 20_000 }).toBe(all)
      await shoot(page, 'desktop-dark')
    })
  })

  test('on a telephone', async () => {
    const { page, complaints } = await openPage(started.context, `${address}/`, { size: PHONE })
    await page.waitForSelector('.opblock')
    await shoot(page, 'phone')
    // The browser has kept the authorization of a sandbox.
    await page.click('.scheme-container .btn.authorize')
    const dialog = page.locator('.dialog-ux')
    await dialog.getByText('Logout').click()
    await dialog.locator('.btn-done').click()
    await authorize(page)
    await shoot(page, 'phone-authorize')
    await dialog.locator('.btn.authorize').click()
    await dialog.getByText('Logout').waitFor()
    await dialog.locator('.btn-done').click()
    const { operation, status } = await execute(page, 'Profiles-listProfileBalances')
    expect(status).toBe('200')
    await shoot(operation, 'phone-tried')
    expect(await isWithinWindow(page)).toBe(true)
    expect(complaints).toEqual([])
  })

  test('the page of a problem', async () => {
    const page = await started.context.newPage()
    for (const [name, size] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
      await page.setViewportSize(size)
      await page.goto(`${address}/problems/insufficient-funds`)
      expect(await page.locator('h1').innerText()).toBe('Insufficient Funds')
      await shoot(page, `${name}-problem`)
    }
    await page.click('text=API reference')
    await page.waitForURL(`${address}/docs/`)
    await page.close()
  })
})
