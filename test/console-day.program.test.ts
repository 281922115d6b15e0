/** A person's day in the console: what support, finance, risk and an auditor do without a shell, in live mode. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  HAS_CHROMIUM,
  openPage,
  seriousFaults,
  shoot,
  startBrowserTest,
  type BrowserTest,
} from './browser.ts'
import { freePort } from './free-port.ts'
import { remoteCaller, runBursar, type RemoteCaller } from './support.ts'

const BANK = {
  account_number: '40702810',
  account_owner: 'Acme Payments Inc',
  account_owner_address: { country: 'US', address1: '1 Main Street', city: 'Springfield' },
  bank_name: 'First Example Bank',
  bank_address: { country: 'US', address1: '2 Main Street', city: 'Springfield' },
  routing_numbers: { ABA: '021000021' },
}
const PAYEE = {
  fiat_account_owner: { person_details: { first_name: 'Grace', last_name: 'Hopper' } },
  fiat_network_instructions: {
    wire: {
      account_number: '000987654321',
      routing_details: {
        routing_number_type: 'ABA',
        routing_number: '011401533',
        bank_name: 'Second Example Bank',
      },
    },
  },
}

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let address: string
  let page: Page
  let complaints: string[]
  let customerId: string
  let client: RemoteCaller
  let profileId: string

  const json = async <T = Record<string, string>>(...args: string[]): Promise<T> => {
    const { code, stdout, stderr } = await runBursar([...args, '--json'], started.environment)
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout) as T
  }
  const newOperator = async (name: string, role: string, ...more: string[]) =>
    (await json('operator', 'create', '--name', name, '--role', role, ...more)).operator_id!

  beforeAll(async () => {
    const port = await freePort()
    // Browsers have passkeys for names only.
    address = `http://localhost:${port}`
    const settings = { PORT: String(port), BURSAR_BASE_URL: address, BURSAR_MODE: 'live' }
    started = await startBrowserTest(settings, async (folder) => {
      const file = join(folder, 'bank.json')
      await writeFile(file, JSON.stringify(BANK))
      return { BURSAR_BANK_FILE: file }
    })
    started.environment.BURSAR_BASE_URL = address
    started.context.setDefaultTimeout(40_000)
    const made = await json('customer', 'create', '--name', 'Acme')
    customerId = made.customer_id!
    profileId = made.profile_id!
    const { client_id, client_secret } = await json(
      ...['client', 'create', '--customer', customerId, '--scopes', 'all', '--name', 'Shop'],
    )
    client = await remoteCaller(address, { client_id: client_id!, client_secret: client_secret! })
  })
  afterAll(() => started.close())

  /** Signs somebody in by a link, in place of whoever was. */
  async function signIn(operatorId: string): Promise<void> {
    const signOut = page.getByRole('button', { name: 'Sign out' })
    if (await signOut.isVisible()) {
      await signOut.click()
      await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    }
    const { link } = await json('console', 'link', operatorId)
    await page.goto('about:blank')
    await page.goto(link!)
    await signOut.waitFor()
  }
  const open = (name: string) =>
    page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click()
  const yes = () => page.getByRole('alertdialog').getByRole('button', { name: 'Yes' }).click()

  async function newWire(amount: string): Promise<string> {
    const { body: account } = await client('POST', '/v2/transfer/fiat-accounts', PAYEE)
    const { status, body } = await client('POST', '/v2/transfer/fiat-withdrawals', {
      ...{ profile_id: profileId, asset: 'USD', fiat_account_id: account.id, amount },
    })
    expect(status, JSON.stringify(body)).toBe(200)
    return String(body.id)
  }
  const statusOf = async (id: string) => (await client('GET', `/v2/transfer/transfers/${id}`)).body.status

  test('wires, a freeze, an identity, an API client and the proof', async () => {
    ;({ page, complaints } = await openPage(started.context, `${address}/console/`))
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    const finance = await newOperator('Fin', 'OPERATOR')
    await signIn(finance)

    // A wire arrives.
    const { body: instructions } = await client('POST', '/v2/transfer/fiat-deposit-instructions', {
      ...{ profile_id: profileId, fiat_network: 'WIRE' },
    })
    await open('Wires')
    const arrived = page.getByRole('region', { name: 'A wire that arrived' })
    await arrived.getByLabel('Memo').fill(String(instructions.memo_id))
    await arrived.getByLabel('Amount in USD').fill('1234567.89')
    await arrived.getByLabel("The bank's reference").fill('IMAD-1')
    await arrived.getByRole('button', { name: 'Record' }).click()
    await page.getByText('Recorded:').waitFor()
    // The same wire again, with another amount: the reason is shown, and nothing is credited.
    await arrived.getByLabel('Memo').fill(String(instructions.memo_id))
    await arrived.getByLabel('Amount in USD').fill('5')
    await arrived.getByLabel("The bank's reference").fill('IMAD-1')
    await arrived.getByRole('button', { name: 'Record' }).click()
    await arrived.getByRole('alert').getByText('IMAD-1 was recorded at').waitFor()
    const balance = async () => (await client('GET', `/v2/profiles/${profileId}/balances/USD`)).body.available
    expect(await balance()).toBe('1234567.89')
    await shoot(page, 'console-wires')

    // A wire is sent.
    const sent = await newWire('250.5')
    const row = page.locator('tbody tr', { hasText: 'Grace Hopper' })
    await expect
      .poll(
        async () => {
          await page.reload()
          await row.waitFor()
          return row.innerText()
        },
        { timeout: 300_000, interval: 1_000 },
      )
      .toContain('READY')
    await row.getByRole('button', { name: 'Take' }).click()
    await yes()
    await row.getByText('Enter it at the bank').click()
    await row.getByText('000987654321').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-wires-taken')
    await row.getByLabel("The bank's reference").fill('IMAD-2')
    await row.getByRole('button', { name: 'It was sent' }).click()
    await page.getByText('No wire is to be sent.').waitFor()
    expect(await statusOf(sent)).toBe('COMPLETED')

    // An identity is looked at and approved.
    const { body: identity } = await client('POST', '/v2/identity/identities', {
      ...{ ref_id: 'ada', person_details: { first_name: 'Ada', last_name: 'Lovelace', nationality: 'GBR' } },
    })
    await open('Identities')
    await page.getByRole('link', { name: 'Ada Lovelace' }).click()
    await page.getByText('GBR').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await yes()
    await page.getByRole('heading', { name: 'Ada Lovelace APPROVED' }).waitFor()
    expect((await client('GET', `/v2/identity/identities/${String(identity.id)}`)).body.status).toBe(
      'APPROVED',
    )
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-identity')

    // A suspicious profile is frozen: its payment waits. Only an ADMIN of the deployment ends that.
    await page.goto(`${address}/console/profiles/${profileId}`)
    await page.getByText('Freeze this profile').click()
    await page.getByLabel('Reason, for other operators').fill('Three cards from one device')
    await page.getByRole('button', { name: 'Freeze', exact: true }).click()
    await yes()
    await page.getByText('Three cards from one device').waitFor()
    expect(await page.getByRole('button', { name: 'Unfreeze' }).count()).toBe(0)
    const refused = await client('POST', '/v2/transfer/internal', {
      ...{ from_profile_id: profileId, to_profile_id: profileId, asset: 'USD', amount: '1' },
    })
    expect(refused.status).not.toBe(200)
    await shoot(page, 'console-frozen')
    await signIn(await newOperator('Adam', 'ADMIN'))
    await page.goto(`${address}/console/profiles/${profileId}`)
    await page.getByRole('button', { name: 'Unfreeze' }).click()
    await yes()
    await page.getByText('Freeze this profile').waitFor()

    // Limits and an API client.
    await open('Customers')
    const limit = page.locator('tbody tr', { hasText: 'Changes per day' })
    await limit.getByText('Change', { exact: true }).click()
    await limit.getByLabel(/^Most/).fill('500')
    await limit.getByRole('button', { name: 'Set' }).click()
    await limit.getByText('500').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-customers')
    await open('API clients')
    await page.getByText('Create an API client').click()
    await page.getByLabel('funding:read_profile').check()
    await page.getByLabel('Name, for people').fill('Reports')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('It is shown once: save it now.').waitFor()
    await page.locator('tbody tr', { hasText: 'Reports' }).getByText('1 scope').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-new-client')

    // The auditor gets the proof.
    await open('Audit log')
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save the head' }).click()
    const head = await (await saving).path()
    expect(JSON.parse(await readFile(head, 'utf8'))).toMatchObject({ heads: [{ customer_id: customerId }] })
    expect(complaints.filter((one) => !/status of 40[13]/.test(one))).toEqual([])
  })
})
