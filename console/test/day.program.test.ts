/** A person's day in the console: what support, finance, risk and an auditor do without a shell, in live mode. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BANK, PAYEE_ACCOUNT } from '../../test/bank.ts'
import {
  addAuthenticator,
  HAS_CHROMIUM,
  openPage,
  seriousFaults,
  shoot,
  startBrowserTest,
  type BrowserTest,
} from '../../test/browser.ts'
import { camtOf } from '../../test/bank-statements.ts'
import { freePort } from '../../test/free-port.ts'
import { move } from '../../test/history.ts'
import { remoteCaller, runBursar, type RemoteCaller } from '../../test/support.ts'
import { verifyLiability, type Liability, type LiabilityProof } from '../../client/src/index.ts'
import { momentAt } from '../../src/db/ids.ts'
import { closingOf } from '../../src/money/books/closing.ts'

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
    started.environment.BURSAR_MIGRATIONS_DATABASE_URL = started.database.ownerUrl
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
    const { body: account } = await client('POST', '/v2/transfer/fiat-accounts', PAYEE_ACCOUNT)
    const { status, body } = await client('POST', '/v2/transfer/fiat-withdrawals', {
      ...{ profile_id: profileId, asset: 'USD', fiat_account_id: account.id, amount },
    })
    expect(status, JSON.stringify(body)).toBe(200)
    return String(body.id)
  }
  const statusOf = async (id: string) => (await client('GET', `/v2/transfer/transfers/${id}`)).body.status

  /** Opens the console, on a device that has passkeys and whose owner agrees to everything. */
  async function arrive(): Promise<void> {
    ;({ page, complaints } = await openPage(started.context, `${address}/console/`))
    await page
      .getByRole('heading', { name: 'Sign in to Bursar' })
      .or(page.getByRole('button', { name: 'Sign out' }))
      .waitFor()
    await addAuthenticator(page)
  }

  /** The file that a button saves. */
  async function savedBy(name: string): Promise<string> {
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name }).first().click()
    return readFile(await (await saving).path(), 'utf8')
  }

  /** The day so many days ago, in UTC. */
  const dayBefore = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

  /** Money of the day before yesterday, and that day closed, as the worker closes it minutes after its end. */
  async function closeAnEarlierDay(): Promise<void> {
    const { db } = started.database
    await move(db, customerId, momentAt(`${dayBefore(2)}T12:00:00Z`), { to: profileId, minor: 5_000_000n })
    const closing = closingOf(db)
    const isClosed = async () => {
      await closing()
      return (await db.query('select from closed_days where day = $1 and digest is not null', [dayBefore(2)]))
        .rowCount
    }
    await expect.poll(isClosed, { timeout: 60_000 }).toBe(1)
  }

  /** The statement of the bank, with a wire that nobody has recorded and a fee; then the books. */
  async function closeTheDay(memo: string): Promise<void> {
    const date = new Date().toISOString().slice(0, 10)
    const line = (amount: bigint, reference: string, text: string) => {
      return { date, amount, reference, text, code: 'PMNT/RCDT/XBCT', is_reversal: false, is_return: false }
    }
    const lines = [
      line(123_456_789n, 'IMAD-1', 'the first'),
      line(-25_050n, 'IMAD-2', 'rent'),
      line(7_500n, 'IMAD-3', `for ${memo}`),
      line(-300n, 'FEE-1', '=fee'),
    ]
    const closing = lines.reduce((sum, { amount }) => sum + amount, 0n)
    const account = { account: BANK.account_number, currency: 'USD' }
    const statement = camtOf([
      { format: 'CAMT_053', id: 'S1', ...account, date, opening: 0n, closing, lines },
    ])
    await open('Bank')
    const file = page.getByLabel('A statement of the bank')
    await file.setInputFiles({ name: 'statement.xml', mimeType: 'text/xml', buffer: Buffer.from('<x') })
    await page.getByRole('alert').getByText('the file is no well-formed XML').waitFor()
    await file.setInputFiles({ name: 'statement.xml', mimeType: 'text/xml', buffer: Buffer.from(statement) })
    await page.getByText('Imported: 1 statements with 4 lines, of which 2 are matched now.').waitFor()
    const breaks = page.getByRole('row', { name: 'Only the bank has it' })
    await expect.poll(() => breaks.count()).toBe(2)
    const missing = page.getByRole('row', { name: `for ${memo}` }).filter({ hasText: 'Match' })
    await missing.getByText('Match', { exact: true }).first().click()
    await missing.getByRole('button', { name: 'Match' }).click()
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-bank')
    await yes()
    // The fee of the bank remains.
    await expect.poll(() => breaks.count()).toBe(1)
    await page.getByText('Each part of it is explained.').waitFor()
    await open('Ledger')
    await page.getByText('The ledger balances.').waitFor()
    await page.getByRole('row', { name: 'IMAD-3' }).waitFor()
    await page.getByRole('region', { name: 'Closed days' }).getByText(dayBefore(2)).waitFor()
    const saved = await savedBy('Save as CSV')
    expect(saved).toMatch(/^\ufefffrom,to,account,name,.*\r\n.*"bank","Bank account"/)
    await page.getByRole('link', { name: 'Bank account' }).first().click()
    await page.getByRole('heading', { name: 'bank USD' }).waitFor()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(3)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-account')
  }

  test('wires, a freeze, an identity, an API client and the proof', async () => {
    await closeAnEarlierDay()
    await arrive()
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
    // The question names whom it credits. Another amount makes it go away, unanswered.
    const question = /^Credit 1234567\.89 USD to .+, memo \w+\? It cannot be taken back\.$/
    await arrived.getByRole('alertdialog', { name: question }).waitFor()
    await shoot(page, 'console-wire-question')
    await arrived.getByLabel('Amount in USD').fill('1234567.88')
    expect(await arrived.getByRole('alertdialog').count()).toBe(0)
    await arrived.getByLabel('Amount in USD').fill('1234567.89')
    await arrived.getByRole('button', { name: 'Record' }).click()
    await yes()
    await page.getByText(/^Recorded: Credit 1234567\.89 USD to /).waitFor()
    // The same wire again, with another amount: the reason is shown, and nothing is credited.
    await arrived.getByLabel('Memo').fill(String(instructions.memo_id))
    await arrived.getByLabel('Amount in USD').fill('5')
    await arrived.getByLabel("The bank's reference").fill('IMAD-1')
    await arrived.getByRole('button', { name: 'Record' }).click()
    await yes()
    await arrived.getByRole('alert').getByText('IMAD-1 was recorded at').waitFor()
    const balance = async () => (await client('GET', `/v2/profiles/${profileId}/balances/USD`)).body.available
    expect(await balance()).toBe('1234567.89')
    await shoot(page, 'console-wires')

    // A wire is sent.
    const sent = await newWire('250.5')
    const row = page.locator('tbody tr', { hasText: 'Grace Hopper' })
    await row.getByRole('button', { name: 'Take' }).click()
    await yes()
    await row.getByText('Enter it at the bank').click()
    await row.getByText('000987654321').waitFor()
    await row.getByText('Account number', { exact: true }).waitFor()
    await row.getByRole('button', { name: 'Copy 000987654321' }).waitFor()
    expect(await row.innerText()).not.toMatch(/details, |\dT\d/)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-wires-taken')
    await row.getByLabel("The bank's reference").fill('IMAD-2')
    await row.getByRole('button', { name: 'It was sent' }).click()
    await yes()
    await page.getByText('No wire is to be sent.').waitFor()
    // The ledger's account has what the bank's statement shows.
    await open('Ledger')
    const bank = page.locator('tbody tr', { hasText: 'Bank account' }).first()
    await bank.getByText('1 234 317.39', { exact: false }).or(bank).first().waitFor()
    expect((await bank.innerText()).replaceAll(/\s/g, '')).toContain('1234567.89')
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-ledger')
    expect(await statusOf(sent)).toBe('COMPLETED')
    await closeTheDay(String(instructions.memo_id))
    expect(await balance()).toBe('1234392.39')

    // An identity is looked at and approved.
    const { body: identity } = await client('POST', '/v2/identity/identities', {
      ...{ ref_id: 'ada', person_details: { first_name: 'Ada', last_name: 'Lovelace', nationality: 'GBR' } },
    })
    await open('Identities')
    await page.getByRole('link', { name: 'Ada Lovelace' }).click()
    await page.getByText('GBR', { exact: true }).waitFor()
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

    // Customers and an API client.
    await open('Customers')
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
    const head = await savedBy('Save the head')
    expect(JSON.parse(head)).toMatchObject({ heads: [{ customer_id: customerId }] })
    // What was owed at midnight, and the proof of a profile, which the client checks without the service.
    await page.goto(`${address}/console/ledger?before=${dayBefore(0)}`)
    const roots = JSON.parse(await savedBy('Save the roots')) as { items: Liability[] }
    await shoot(page, 'console-liabilities')
    await page.goto(`${address}/console/profiles/${profileId}?at=${dayBefore(0)}T00:00`)
    const { items } = JSON.parse(await savedBy('Save the proof')) as { items: LiabilityProof[] }
    expect(items).toMatchObject([{ profile_id: profileId, asset: 'USDG', amount: '5' }])
    await verifyLiability(items[0]!, roots.items[0]!)
    expect(await savedBy('Save a statement')).toContain('"USDG","BANK_DEPOSIT","CREATED",5,5')
    expect(complaints.filter((one) => !/status of 40[13]/.test(one))).toEqual([])
  })

  test('a missing payment, a suspicious one, a new address and a tighter policy', async () => {
    await arrive()
    const own = ['--customer', customerId]
    const [ada, bob] = [
      await newOperator('Ada', 'ADMIN', ...own),
      await newOperator('Bob', 'APPROVER', ...own),
    ]
    await signIn(bob)
    await open('Your sign-in')
    await page.getByLabel('Name of the new passkey').fill('Laptop')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    const passkey = await page
      .getByRole('region', { name: 'Passkeys' })
      .locator('tbody .id code')
      .getAttribute('title')
    await json('approvers', 'add', ...own, '--name', 'Bob', '--operator', bob, '--passkey', passkey!)

    // There is no policy yet: the first one needs nobody else.
    await signIn(ada)
    const policy = (amount: string) =>
      JSON.stringify({
        rules: [
          {
            id: 'large',
            match: { transfer_types: ['WIRE_WITHDRAWAL'] },
            limit: { amount, asset: 'USD', period_seconds: 0 },
            action: 'APPROVE',
            approvals: 1,
          },
        ],
        changes: { subjects: ['POLICY', 'ADDRESS_BOOK'], approvals: 1 },
      })
    const propose = async (amount: string) => {
      await open('Policy')
      await page.getByLabel('The policy as JSON').fill(policy(amount))
      await page.getByRole('button', { name: 'Save' }).click()
      await yes()
    }
    await propose('1000')
    await page.getByText('Version 1, since').waitFor()

    // A customer calls: where is the money? It waits for an approval, says the page.
    const missing = await newWire('1500.25')
    await page.getByRole('combobox', { name: /^Search/ }).fill('1500.25 USD')
    await page.getByRole('option').first().click()
    await page
      .locator('.state')
      .getByText(/approv/i)
      .waitFor()
    expect(page.url()).toContain(missing)
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, 'console-missing-payment')

    // Risk freezes the profile, and the payment is rejected: the money is back.
    await page.goto(`${address}/console/profiles/${profileId}`)
    await page.getByText('Freeze this profile').click()
    await page.getByLabel('Reason, for other operators').fill('The account changed hands')
    await page.getByRole('button', { name: 'Freeze', exact: true }).click()
    await yes()
    await page.getByText('The account changed hands').waitFor()
    await signIn(bob)
    await page.locator('a[href*="/approvals/"]').first().click()
    await page.getByRole('button', { name: 'Reject' }).click()
    await yes()
    await page.locator('.of-record .status', { hasText: 'Rejected' }).first().waitFor()
    expect(await statusOf(missing)).toBe('FAILED')

    // A new address waits for the second person, and is then in the address book.
    const entry = { crypto_network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' }
    const put = (query = '') =>
      client('PUT', `/v2/transfer/crypto-destination-address${query}`, { ...entry, nickname: 'Supplier' })
    const asked = await put()
    expect(asked.status).toBe(403)
    const { approval_id } = asked.body.meta as { approval_id: string }
    await page.goto(`${address}/console/approvals/${approval_id}`)
    await page.getByText('Supplier').waitFor()
    await page.getByRole('button', { name: 'Approve with your passkey' }).click()
    await page.locator('.of-record .status', { hasText: 'Approved' }).first().waitFor()
    expect((await put(`?approval_id=${approval_id}`)).status).toBe(200)

    // The policy is tightened by Ada, approved by Bob, and made by Ada.
    await signIn(ada)
    await propose('500')
    await page.getByRole('link', { name: 'Open the approval' }).click()
    await page.getByText('You asked for it. Somebody else decides.').waitFor()
    const approval = page.url()
    await signIn(bob)
    await page.goto(approval)
    await page.getByRole('button', { name: 'Approve with your passkey' }).click()
    await page.locator('.of-record .status', { hasText: 'Approved' }).first().waitFor()
    await signIn(ada)
    await page.goto(approval)
    await page.getByRole('button', { name: 'Make the change now' }).click()
    await page.locator('.of-record .status', { hasText: 'Used' }).first().waitFor()
    expect((await client('GET', '/v2/policy')).body).toMatchObject({ version: 2 })
    expect(complaints.filter((one) => !/status of 40[13]/.test(one))).toEqual([])
  })
})
