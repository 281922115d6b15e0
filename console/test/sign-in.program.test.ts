/** The console's sign-in as a person uses it: with a passkey, with an OpenID provider, and until the session ends. */
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../../src/program/demo/credentials.ts'
import {
  addAuthenticator,
  HAS_CHROMIUM,
  isWithinWindow,
  openPage,
  PHONE,
  seriousFaults,
  shoot,
  startBrowserTest,
  type BrowserTest,
} from '../../test/browser.ts'
import { startOpenIdProvider } from '../../test/openid-provider.ts'
import { freePort } from '../../test/free-port.ts'
import { runBursar } from '../../test/support.ts'

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let provider: Awaited<ReturnType<typeof startOpenIdProvider>>
  let demo: SandboxCredentials
  let address: string

  beforeAll(async () => {
    const port = await freePort()
    // Browsers have passkeys for names only.
    address = `http://localhost:${port}`
    provider = await startOpenIdProvider(`${address}/sign-in/openid`)
    started = await startBrowserTest({
      PORT: String(port),
      BURSAR_BASE_URL: address,
      BURSAR_OPENID_ISSUER: provider.issuer,
      BURSAR_OPENID_CLIENT_ID: 'bursar',
    })
    started.environment.BURSAR_BASE_URL = address
    demo = JSON.parse(await readFile(credentialsFile(started.folder), 'utf8')) as SandboxCredentials
  })
  afterAll(async () => {
    await started.close()
    provider.close()
  })

  const isIn = (page: Page) => page.getByRole('navigation', { name: 'Pages' }).waitFor()
  const isOut = (page: Page) => page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()

  /** The page of a signed-out browser, which the sandbox would else sign in by itself. */
  async function signedOut() {
    const opened = await openPage(started.context, `${address}/console/`, { also: [provider.issuer] })
    await isIn(opened.page)
    await opened.page.getByRole('button', { name: 'Sign out' }).click()
    await isOut(opened.page)
    return opened
  }

  test('a passkey is added, signs in, and ends its sessions when it is removed', async () => {
    const { page, complaints } = await openPage(started.context, `${address}/console/sign-in/own`)
    await page.getByRole('heading', { name: 'Your sign-in' }).waitFor()
    await addAuthenticator(page)
    await page.getByLabel('Name of the new passkey').fill('Laptop')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    const passkeys = page.getByRole('region', { name: 'Passkeys' })
    await passkeys.getByText('Laptop').waitFor()
    expect(await passkeys.innerText()).toContain('never')
    await shoot(page, 'console-own-sign-in')

    await page.getByRole('button', { name: 'Sign out' }).click()
    await isOut(page)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await isIn(page)
    await page.goto(`${address}/console/sign-in/own`)
    await page.getByRole('region', { name: 'Sessions' }).getByText('Passkey').first().waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await page.setViewportSize(PHONE)
    expect(await isWithinWindow(page)).toBe(true)
    await shoot(page, 'console-own-sign-in-phone')

    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Yes' }).click()
    await isOut(page)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).toContain('the passkey is unknown or removed')
    // The browser itself says that two requests were refused.
    expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([])
  })

  test('an OpenID provider signs the bound operator in, and nobody else', async () => {
    const named = ['--name', 'Grace', '--role', 'VIEWER', '--customer', demo.customer_id]
    await runBursar(['operator', 'create', ...named, '--openid-subject', 'grace'], started.environment)
    const { page, complaints } = await signedOut()
    await shoot(page, 'console-sign-in-openid')
    const signInAs = async (name: string) => {
      await page.getByRole('button', { name: 'Sign in with your organisation' }).click()
      await page.waitForURL(`${provider.issuer}/**`)
      await page.locator('input[name=login]').fill(name)
      await page.locator('input[name=password]').fill('any')
      await page.locator('button[type=submit]').click()
      await page.getByRole('button', { name: /continue/i }).click()
      await page.waitForURL(`${address}/console/**`)
    }
    await signInAs('grace')
    await isIn(page)
    expect(await page.locator('.operator').innerText()).toContain('Grace')
    expect(page.url()).toBe(`${address}/console/`)
    // A VIEWER sees no button that changes something.
    await page.goto(`${address}/console/sandbox`)
    await page.getByText('Stop the sandbox and run').waitFor()
    expect(await page.getByRole('button', { name: /wire|withdrawal|approver|Reset/ }).count()).toBe(0)
    // What the provider's own pages load and say is not ours.
    complaints.length = 0
    await page.reload()
    await isIn(page)
    expect(complaints).toEqual([])

    await page.getByRole('button', { name: 'Sign out' }).click()
    await isOut(page)
    await page.context().clearCookies({ domain: '127.0.0.1' })
    await signInAs('mallory')
    await page.getByRole('alert').waitFor()
    await isOut(page)
  })

  test.each([
    ['that nobody used for an hour', `used_at = clock_timestamp() - interval '61 minutes'`],
    ['that is twelve hours old', `expires_at = clock_timestamp() - interval '1 second'`],
    ['that was revoked', `ended_at = clock_timestamp()`],
  ])('a session %s is over, also in the browser', async (_, change) => {
    const { page } = await openPage(started.context, `${address}/console/transfers`)
    await isIn(page)
    // With the mark of a sign-out, the sandbox does not sign in by itself.
    await page.evaluate(`sessionStorage.setItem('signed out', 'yes')`)
    await started.database.owner.query(`update operator_sessions set ${change} where ended_at is null`)
    await page.reload()
    await isOut(page)
    const cookies = await started.context.cookies(`${address}/console/`)
    const secret = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    const answer = await fetch(`${address}/console/session`, {
      headers: { cookie: secret, 'x-bursar-console': 'page' },
    })
    expect(await answer.json()).not.toHaveProperty('session')
  })
})
