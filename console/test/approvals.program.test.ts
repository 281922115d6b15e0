/** Approvals in the console: two people with passkeys decide payments and changes of the policy, and nothing else than they see. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../../src/program/demo/credentials.ts'
import {
  addAuthenticator,
  DESKTOP,
  HAS_CHROMIUM,
  isWithinWindow,
  seriousFaults,
  shoot,
  startBrowserTest,
  type BrowserTest,
} from '../../test/browser.ts'
import { freePort } from '../../test/free-port.ts'
import { outputOf, remoteCaller, runBursar, withdrawalOf, type RemoteCaller } from '../../test/support.ts'

/** The narrowest window that the console is made for. */
const NARROW = { width: 320, height: 740 }

const policyOf = (amount: string) => ({
  rules: [
    {
      id: 'large',
      match: { transfer_types: ['CRYPTO_WITHDRAWAL'] },
      limit: { amount, asset: 'USD', period_seconds: 0 },
      action: 'APPROVE',
      approvals: 1,
    },
  ],
  changes: { subjects: ['POLICY', 'CREDENTIALS'], approvals: 1 },
})

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let started: BrowserTest
  let demo: SandboxCredentials
  let call: RemoteCaller
  let address: string
  let page: Page
  const complaints: string[] = []
  /** The operators: Ada is an ADMIN, Bob an APPROVER. */
  const people: Record<string, string> = {}

  beforeAll(async () => {
    const port = await freePort()
    // Browsers have passkeys for names only.
    address = `http://localhost:${port}`
    started = await startBrowserTest({ PORT: String(port), BURSAR_BASE_URL: address })
    started.environment.BURSAR_BASE_URL = address
    started.environment.BURSAR_MIGRATIONS_DATABASE_URL = started.database.ownerUrl
    demo = JSON.parse(await readFile(credentialsFile(started.folder), 'utf8')) as SandboxCredentials
    call = await remoteCaller(started.bursar.address, demo)
    await call('POST', `/v2/sandbox/profiles/${demo.profile_id}/deposit`, { asset: 'USD', amount: '1000' })
    page = await started.context.newPage()
    await page.setViewportSize(DESKTOP)
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    await addAuthenticator(page)
    await bursar('client', 'create', ...of(), '--scopes', 'funding:read_profile', '--name', 'Reader')
    await setPolicy('50')
  })
  afterAll(() => started.close())

  const bursar = async (...args: string[]) =>
    JSON.parse(await outputOf([...args, '--json'], started.environment)) as Record<string, string>
  const of = () => ['--customer', demo.customer_id]

  /** Sets the policy as the command does. Returns the approval that it needs, where there is one. */
  async function setPolicy(amount: string): Promise<string | undefined> {
    const file = join(started.folder, 'policy.json')
    await writeFile(file, JSON.stringify(policyOf(amount)))
    const { stderr } = await runBursar(['policy', 'set', ...of(), '--file', file], started.environment)
    return /approval ([0-9a-f-]{36}) is PENDING/.exec(stderr)?.[1]
  }

  async function signInAs(name: string, then = ''): Promise<void> {
    const { link } = await bursar('console', 'link', people[name]!)
    await page.goto(link!)
    await page.locator('.operator', { hasText: name }).waitFor()
    await page.goto(`${address}/console/${then}`)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  }

  /** Makes an operator, who adds a passkey in the console. Returns the passkey's id, which the page shows. */
  async function enrol(name: string, role: string): Promise<string> {
    const made = await bursar('operator', 'create', '--name', name, '--role', role, ...of())
    people[name] = made.operator_id!
    await signInAs(name, 'sign-in/own')
    await page.getByLabel('Name of the new passkey').fill('Laptop')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    const row = page.getByRole('region', { name: 'Passkeys' }).locator('tbody tr')
    return (await row.locator('.id code').getAttribute('title'))!
  }

  const makeApprover = (name: string, passkey: string, role: string) =>
    bursar(
      'approvers',
      'add',
      ...of(),
      '--name',
      name,
      '--operator',
      people[name]!,
      '--passkey',
      passkey,
      '--role',
      role,
    )

  /** A withdrawal that the policy holds. */
  async function withdraw() {
    const body = withdrawalOf(demo, { amount: '60', memo: '<b>rent</b>' })
    const { body: made } = await call<{
      id: string
      total: string
      status_details: { pending_customer_approval: { approval_id: string } }
    }>('POST', '/v2/transfer/crypto-withdrawals', body)
    return { id: made.id, approval: made.status_details.pending_customer_approval.approval_id }
  }

  const statusOf = async (id: string) =>
    (await call<{ status: string }>('GET', `/v2/transfer/transfers/${id}`)).body.status
  const available = async () =>
    (
      await call<{ items: { asset: string; available: string }[] }>(
        'GET',
        `/v2/profiles/${demo.profile_id}/balances`,
      )
    ).body.items.find(({ asset }) => asset === 'USD')!.available
  const button = (name: string) => page.getByRole('button', { name })
  const yes = () => page.getByRole('alertdialog').getByRole('button', { name: 'Yes' }).click()
  const badge = (text: string) => page.locator('.of-record .status', { hasText: text }).first().waitFor()

  /** The page as it is now: nothing cut or unreadable, in both colour schemes. */
  async function lookAt(name: string): Promise<void> {
    expect(await seriousFaults(page)).toEqual([])
    await shoot(page, `console-${name}`)
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await seriousFaults(page)).toEqual([])
    await page.setViewportSize(NARROW)
    expect(await isWithinWindow(page)).toBe(true)
    await shoot(page, `console-${name}-narrow`)
    await page.setViewportSize(DESKTOP)
    await page.emulateMedia({ colorScheme: 'light' })
  }

  test('whoever is no approver is told how to become one, with a passkey', async () => {
    const { approval } = await withdraw()
    const ada = await enrol('Ada', 'ADMIN')
    await makeApprover('Ada', ada, 'ADMIN')
    const bob = await enrol('Bob', 'APPROVER')
    await page.goto(`${address}/console/approvals/${approval}`)
    await page.getByText('You are no approver of this customer.').waitFor()
    const command = await page.locator('.own-decision code').innerText()
    expect(command).toContain(`--operator ${people.Bob}`)
    expect(await button('Approve with your passkey').count()).toBe(0)
    await makeApprover('Bob', bob, 'APPROVER')
    await page.reload()
    await button('Approve with your passkey').waitFor()
    await button('Reject').click()
    await yes()
    await badge('Rejected')
  })

  test('a payment that the policy holds is approved by passkey, and paid', async () => {
    const { id, approval } = await withdraw()
    // On Home, it stands under what waits for approval, and nowhere else.
    await signInAs('Bob')
    await page.getByRole('link', { name: 'Crypto withdrawal' }).first().waitFor()
    await page.getByRole('heading', { name: 'Approvals 1' }).waitFor()
    expect(await page.getByText(/^(Waiting for longer|Also waiting)/).count()).toBe(0)
    await signInAs('Bob', 'approvals?status=PENDING')
    const row = page.getByRole('region', { name: 'Approvals' }).locator('tbody tr')
    await row.locator('.amount').waitFor()
    expect(await row.innerText()).toMatch(/Crypto withdrawal[^]*60 USDP[^]*large[^]*0 of 1[^]*in 2\d hours/)
    await lookAt('approvals')
    await row.getByRole('link', { name: 'Crypto withdrawal' }).click()
    await button('Approve with your passkey').waitFor()
    await page.getByText('the address book does not have it').waitFor()
    await page.locator('.facts', { hasText: 'Default' }).waitFor()
    const shown = await page.locator('main').innerText()
    for (const part of [
      '60 USDP',
      '0x52908400098527886E0F7030069857D2E4169EE7',
      '<b>rent</b>',
      '1 of the role APPROVER',
    ])
      expect(shown).toContain(part)
    await lookAt('approval')
    await button('Approve with your passkey').click()
    await badge('Approved')
    expect(await page.getByRole('list', { name: 'Decisions' }).innerText()).toMatch(/Approved[^]*Bob/)
    await expect.poll(() => statusOf(id), { timeout: 60_000 }).toBe('COMPLETED')
    await page.goto(`${address}/console/transfers/${id}`)
    await page
      .getByText(/Asks 1 approver of the role APPROVER about crypto withdrawals beyond \d+ USD each\./)
      .waitFor()
    await page
      .locator('.story')
      .getByRole('link', { name: approval.slice(0, 8) })
      .first()
      .click()
    await badge('Approved')
    await button('Reject').waitFor()
  })

  test('a payment that is rejected is refunded', async () => {
    const before = await available()
    const { id, approval } = await withdraw()
    expect(await available()).not.toBe(before)
    await signInAs('Ada')
    const path = '**/crypto-destination-addresses?*'
    const asked = new Promise<Route>((resolve) => void page.route(path, resolve, { times: 1 }))
    await page.locator('li', { hasText: '0 of 1' }).locator(`a[href$="/approvals/${approval}"]`).click()
    // Nobody decides before all is read that is shown, nor on buttons that would move then.
    const addressBook = await asked
    await page.getByText('1 of the role APPROVER').waitFor()
    expect(await button('Reject').count()).toBe(0)
    await addressBook.continue()
    await button('Reject').click()
    // The question comes first, and "No" changes nothing.
    await page.getByRole('alertdialog').getByRole('button', { name: 'No' }).click()
    expect(await statusOf(id)).toBe('PENDING')
    await button('Reject').click()
    await yes()
    await badge('Rejected')
    expect(await statusOf(id)).toBe('FAILED')
    expect(await available()).toBe(before)
  })

  test('a policy is tried, asked for by one, approved by another, and then made', async () => {
    await signInAs('Ada', 'policy')
    await page
      .getByText('Asks 1 approver of the role APPROVER about crypto withdrawals beyond 50 USD each.')
      .waitFor()
    const text = page.getByLabel('The policy as JSON')
    await text.fill('{ "rules": 1 }')
    await page.getByText('It has no list of rules.').waitFor()
    await text.fill(JSON.stringify({ rules: [{ action: 'APPROVE' }] }))
    await button("Try it on the last month's payments").click()
    await page.getByText('rules.0.approvals is required').waitFor()
    await text.fill(JSON.stringify(policyOf('40'), null, 2))
    const diff = page.getByRole('region', { name: 'The difference, line by line' })
    expect(await diff.locator('del').allInnerTexts()).toEqual([expect.stringContaining('"amount": "50"')])
    expect(await diff.locator('ins').allInnerTexts()).toEqual([expect.stringContaining('"amount": "40"')])
    await button("Try it on the last month's payments").click()
    const tried = page.getByRole('region', { name: 'What it would have done' }).locator('tbody tr')
    expect(await tried.first().innerText()).toMatch(/large\s+Approval\s+\d+\s+[\d\s]+ USD/)
    await lookAt('policy')
    await button('Save').click()
    await yes()
    await page.getByRole('link', { name: 'Open the approval' }).click()
    await page.getByText('You asked for it. Somebody else decides.').waitFor()
    await page.getByText('The digest that is signed matches what is shown').waitFor()
    const url = page.url()
    expect(await button('Make the change now').count()).toBe(0)
    await signInAs('Bob', new URL(url).pathname.replace('/console/', ''))
    await page
      .getByText(
        'Rule large: Asks 1 approver of the role APPROVER about crypto withdrawals beyond 40 USD each.',
      )
      .waitFor()
    await lookAt('approval-of-policy')
    await button('Approve with your passkey').click()
    await badge('Approved')
    expect(await button('Make the change now').count()).toBe(0)
    await signInAs('Ada', new URL(url).pathname.replace('/console/', ''))
    await button('Make the change now').click()
    await badge('Used')
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Policy' }).click()
    await page.getByText('Version 2, since').waitFor()
    await page.locator('summary', { hasText: 'Version 2,' }).click()
    await diff.locator('ins', { hasText: '40' }).waitFor()
  })

  test('a secret of an API client is made anew once another person has approved it, and is shown', async () => {
    await signInAs('Ada', 'clients')
    const row = page.getByRole('region', { name: 'API clients' }).locator('tbody tr', { hasText: 'Reader' })
    await row.getByRole('button', { name: 'Rotate' }).click()
    await yes()
    await page.getByRole('link', { name: 'Open the approval' }).click()
    const change = page.getByRole('region', { name: 'Members that change' })
    await change.getByText('grace_seconds').waitFor()
    expect(await change.innerText()).toContain('86400')
    const path = new URL(page.url()).pathname.replace('/console/', '')
    await signInAs('Bob', path)
    await button('Approve with your passkey').click()
    await badge('Approved')
    await signInAs('Ada', path)
    await button('Make the change now').click()
    await badge('Used')
    expect(await page.locator('.secret').innerText()).toMatch(/It is shown once/)
  })

  test('what is shown and what would be signed must be the same', async () => {
    const approval = (await setPolicy('30'))!
    const path = `**/api/v2/approvals/${approval}`
    type Answer = { approval: { change: { values: { rules: unknown[] } } }; to_sign: Record<string, string> }
    const tamper = (change: (answer: Answer) => void) =>
      page.route(path, async (route) => {
        const answer = (await (await route.fetch()).json()) as Answer
        change(answer)
        await route.fulfill({ json: answer })
      })
    await signInAs('Bob')
    for (const [change, told] of [
      [
        ({ approval: of }: Answer) => void (of.change.values.rules = []),
        'The digest does not match the change that is shown.',
      ],
      [
        ({ to_sign: of }: Answer) => void (of.REJECT = of.APPROVE!),
        'The two texts to sign are not of the same payment or change.',
      ],
    ] as const) {
      await tamper(change)
      await page.goto(`${address}/console/approvals/${approval}`)
      await page.getByText(told).waitFor()
      await page.getByRole('heading', { name: 'Signed 0 of 1' }).waitFor()
      expect(await button('Approve with your passkey').count()).toBe(0)
      expect(await button('Reject').count()).toBe(0)
      // An answer under way is waited for: none can be changed once its route is gone.
      await page.unrouteAll({ behavior: 'wait' })
    }
    await page.reload()
    await button('Approve with your passkey').waitFor()
    // Requests that the service refused on purpose are told by the browser, too.
    expect(complaints.filter((text) => !/status of (400|403)/.test(text))).toEqual([])
  })
})
