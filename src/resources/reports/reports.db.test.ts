import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { Pool } from 'pg'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { ownFolder } from '../../../test/at-end.ts'
import { BANK } from '../../../test/bank.ts'
import { move } from '../../../test/history.ts'
import { newOperatorCaller } from '../../../test/operators.ts'
import {
  newCustomer,
  newProfile,
  ownTestService,
  withdraw,
  type TestCustomer,
} from '../../../test/support.ts'
import { settle } from '../../../test/work-off.ts'
import { closingOf } from '../../money/books/closing.ts'

const BURSAR_BANK_FILE = join(await ownFolder(), 'bank.json')
await writeFile(BURSAR_BANK_FILE, JSON.stringify(BANK))
const service = await ownTestService({ BURSAR_BANK_FILE })
const customer = await newCustomer(service)
const other = await newCustomer(service)
const operator = await newOperatorCaller(service, 'VIEWER', { actFor: customer.customer_id })
const profile = await newProfile(customer)

type Call = TestCustomer['call']
type Row = Record<string, string>
interface Report {
  from: string
  to: string
  items: Row[]
  sums: Row[]
  balanced: boolean
  next_page_cursor?: string
}

async function report(call: Call, path: string, query: Row = {}): Promise<Report> {
  const { status, body } = await call<Report>(
    'GET',
    `/v2/reports/${path}?${String(new URLSearchParams(query))}`,
  )
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

/** The rows of a customer's CSV file, by its columns; text as it was before it became a cell. */
async function file(path: string, query: Row = {}): Promise<Row[]> {
  const { headers, body } = await service.app.inject({
    url: `/v2/reports/${path}?${String(new URLSearchParams(query))}`,
    headers: { accept: 'text/csv, application/json;q=0.5', authorization: `Bearer ${customer.token}` },
  })
  expect(headers['content-type']).toBe('text/csv; charset=utf-8')
  expect(body.startsWith('\ufeff')).toBe(true)
  const [columns, ...lines] = body.slice(1).trim().split('\r\n').map(cellsOf)
  return lines.map((cells) => Object.fromEntries(cells.map((cell, index) => [columns![index]!, cell])))
}
const cellsOf = (line: string) =>
  line.match(/("([^"]|"")*"|[^,]*)(,|$)/g)!.map((cell) =>
    cell
      .replace(/,$/, '')
      .replace(/^"'?|"$/g, '')
      .replaceAll('""', '"'),
  )

beforeAll(async () => {
  for (const who of [customer, other])
    for (const minor of [10_000n, 500_000n])
      await move(service.db, who.customer_id, undefined, { to: who.profile_id, asset: 'USD', minor })
  for (const amount of ['1.5', '20', '300'])
    await withdraw(customer, { amount, ref_id: `=HYPERLINK("x") ${amount}` })
  await settle(service)
  await move(service.db, customer.customer_id, undefined, {
    from: customer.profile_id,
    to: profile,
    asset: 'USD',
    minor: 777n,
  })
})

/** The sums of the entries themselves, by the columns of the report. */
async function fromEntries(columns: string, where = 'true'): Promise<Row[]> {
  const { rows } = await service.db.query<Row>(`
    select ${columns}, trim_scale(sum(e.amount))::text as closing from entries e where ${where}
    group by ${columns} having sum(e.amount) is not null`)
  return rows
}
const inAnyOrder = (rows: readonly object[]) =>
  expect.arrayContaining(rows.map((row) => expect.objectContaining(row) as unknown)) as unknown

describe('Get Trial Balance', () => {
  test('an operator of the deployment reads all entries, a client those of its customer', async () => {
    const own = `customer_id = '${customer.customer_id}'`
    for (const [call, where] of [
      [operator, 'true'],
      [customer.call, own],
    ] as const) {
      const { items, sums, balanced } = await report(call, 'trial-balance')
      const rows = await fromEntries('account, asset', where)
      expect(items).toHaveLength(rows.length)
      expect(items).toEqual(inAnyOrder(rows))
      expect(balanced).toBe(true)
      for (const { opening, closing } of sums) expect([opening, closing]).toEqual(['0', '0'])
    }
    const { items } = await report(operator, 'trial-balance', {
      customer_id: customer.customer_id,
      asset: 'USD',
    })
    expect(items).toEqual(inAnyOrder(await fromEntries('account, asset', `${own} and asset = 'USD'`)))
    expect(items.find(({ account }) => account === 'bank')).toMatchObject({
      name: 'Bank account',
      kind: 'ASSET',
    })
    const refused = await customer.call('GET', `/v2/reports/trial-balance?customer_id=${other.customer_id}`)
    expect(refused).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('customer_id') as string },
    })
  })

  test('by profile: a line for each, which sum to that of all', async () => {
    const { items } = await report(customer.call, 'trial-balance', { by: 'profile' })
    const profiles = items.filter(({ account }) => account === 'profile')
    expect(profiles).toEqual(
      inAnyOrder(
        await fromEntries(
          'profile_id, asset',
          `profile_id is not null and customer_id = '${customer.customer_id}'`,
        ),
      ),
    )
    expect(await file('trial-balance', { by: 'profile' })).toHaveLength(items.length)
  })

  test.each([
    ['at', 'x'.repeat(12)],
    ['from', '2026-02-30'],
    ['by', 'day'],
    ['asset', 'usd'],
    ['customer_id', 'x'],
  ])('refuses %s=%s, and names it', async (name, value) => {
    const answer = await customer.call<{ detail: string }>(
      'GET',
      `/v2/reports/trial-balance?${name}=${value}`,
    )
    expect(answer.status).toBe(400)
    expect(answer.body.detail).toContain(name)
  })
})

describe('List Platform Accounts', () => {
  test('has all accounts but those of profiles, as a file, too', async () => {
    const { items } = await report(operator, 'accounts')
    expect(items).toEqual(inAnyOrder(await fromEntries('account, asset', `account <> 'profile'`)))
    expect(items.map(({ account }) => account)).not.toContain('profile')
    const { items: own } = await report(customer.call, 'accounts')
    const rows = await file('accounts')
    expect(rows.map(({ account, closing }) => ({ account, closing }))).toEqual(
      own.map(({ account, closing }) => ({ account, closing })),
    )
  })
})

describe('List General Ledger', () => {
  const everything = async (query: Row, limit: string) => {
    const items: Row[] = []
    for (let page_cursor: string | undefined; ;) {
      const page = await report(customer.call, 'general-ledger', {
        ...query,
        limit,
        ...(page_cursor && { page_cursor }),
      })
      items.push(...page.items)
      page_cursor = page.next_page_cursor
      if (page_cursor === undefined) return items
    }
  }

  test('has each entry once in pages of any size, with the balance of its account and the other side', async () => {
    const whole = await everything({}, '1000')
    const { rows } = await service.db.query<{ count: string }>(
      'select count(*) from entries where customer_id = $1',
      [customer.customer_id],
    )
    expect(whole).toHaveLength(Number(rows[0]!.count))
    for (const limit of ['1', '3', '7']) expect(await everything({}, limit)).toEqual(whole)
    const last = new Map(whole.map(({ account, asset, balance }) => [`${account} ${asset}`, balance]))
    const { items } = await report(customer.call, 'trial-balance')
    for (const { account, asset, closing } of items) expect(last.get(`${account} ${asset}`)).toBe(closing)
    expect(whole.find(({ account }) => account === 'bank')).toMatchObject({ counter_accounts: ['profile'] })
  })

  test('of one account or profile, as a file that runs no formula', async () => {
    const bank = await everything({ account: 'bank' }, '2')
    expect(bank.map(({ balance }) => balance)).toEqual(['-100', '-5100'])
    const own = await everything({ profile_id: customer.profile_id, asset: 'USD' }, '2')
    const { body } = await customer.call<{ items: Row[] }>(
      'GET',
      `/v2/profiles/${customer.profile_id}/balances`,
    )
    expect(own.at(-1)!.balance).toBe(body.items.find(({ asset }) => asset === 'USD')!.available)
    const rows = await file('general-ledger')
    expect(rows.map(({ balance }) => balance)).toEqual(
      (await everything({}, '1000')).map(({ balance }) => balance),
    )
    const { body: text } = await service.app.inject({
      url: '/v2/reports/general-ledger',
      headers: { accept: 'text/csv, application/json;q=0.5', authorization: `Bearer ${customer.token}` },
    })
    expect(text).toContain(`"'=HYPERLINK(""x"") 1.5"`)
  })

  test("another customer's cursor and filters show nothing of that customer", async () => {
    const { next_page_cursor: page_cursor } = await report(other.call, 'general-ledger', { limit: '1' })
    const queries: Row[] = [
      { page_cursor: page_cursor! },
      { profile_id: other.profile_id },
      { account: 'bank' },
    ]
    for (const query of queries) {
      const { items } = await report(customer.call, 'general-ledger', query)
      expect(items.filter(({ customer_id }) => customer_id !== customer.customer_id)).toEqual([])
    }
  })

  test('refuses a cursor that is none', async () => {
    const answer = await customer.call('GET', '/v2/reports/general-ledger?page_cursor=1234567890123456_x')
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('page_cursor') as string },
    })
  })
})

describe('List Activity Report', () => {
  test.each(['day', 'type', 'asset', 'profile'])('by %s: the sums are those of the entries', async (by) => {
    const { items } = await report(operator, 'activity', { by })
    const sumOf = (name: string, asset: string) =>
      items
        .filter((row) => row.asset === asset)
        .reduce(
          (sum, row) =>
            sum +
            BigInt(row[name]!.replace('.', '')) * 10n ** BigInt(6 - (row[name]!.split('.')[1]?.length ?? 0)),
          0n,
        )
    const { rows } = await service.db.query<Row>(`
      select asset, sum(amount * 1000000) filter (where account = 'fees') as fees,
             sum(amount * 1000000) filter (where account = 'profile' and amount > 0) as "in",
             -sum(amount * 1000000) filter (where account = 'profile' and amount < 0) as out
      from entries group by asset`)
    for (const row of rows)
      for (const name of ['fees', 'in', 'out'])
        expect(sumOf(name, row.asset!), `${row.asset} ${name}`).toBe(
          BigInt((row[name] ?? '0').split('.')[0]!),
        )
    expect(await file('activity', { by })).not.toEqual([])
  })

  test('counts transfers, and values them in USD as they were made', async () => {
    const { items } = await report(customer.call, 'activity', { by: 'type' })
    const withdrawals = items.find(({ key, asset }) => key === 'CRYPTO_WITHDRAWAL' && asset === 'USD')
    const { rows } = await service.db.query<Row>(
      `select count(*)::int as count, trim_scale(sum(notional_value))::text as value from transfers where customer_id = $1 and type = 'CRYPTO_WITHDRAWAL'`,
      [customer.customer_id],
    )
    expect(withdrawals).toMatchObject({ count: rows[0]!.count, value_usd: rows[0]!.value, unpriced: 0 })
  })
})

describe('List Closed Days', () => {
  test('has the days with their digests, which every caller sees', async () => {
    const at = { micros: 1_767_225_600_000_000, text: '2026-01-01T00:00:00.000000Z' }
    await move(service.db, other.customer_id, at, { to: await newProfile(other), asset: 'USD', minor: 1n })
    const closing = closingOf(service.db)
    await expect.poll(async () => (await closing()).length, { timeout: 30_000 }).toBeGreaterThan(0)
    const { items } = await report(customer.call, 'closed-days', { to: '2026-01-02' })
    expect(items).toEqual([
      {
        day: '2026-01-01',
        digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        closed_at: expect.any(String) as string,
      },
    ])
    const audit = await service.db.query(
      `select changes from audit_log where action = 'day.close' and subject_id = '2026-01-01'`,
    )
    expect(audit.rows).toEqual([{ changes: { after: { digest: items[0]!.digest } } }])
  })
})

describe('List Recorded Wires', () => {
  test('is for operators of the deployment; operators.db.test.ts records some', async () => {
    expect((await report(operator, 'wires')).items).toEqual([])
    expect((await customer.call('GET', '/v2/reports/wires')).status).toBe(403)
  })
})

test('a form that no operation has is JSON, whatever its name', async () => {
  for (const accept of ['constructor', '__proto__, text/csv', 'text/csvx']) {
    const { statusCode, headers } = await service.app.inject({
      url: '/v2/profiles',
      headers: { accept, authorization: `Bearer ${customer.token}` },
    })
    expect([accept, statusCode]).toEqual([accept, 200])
    expect(headers['content-type']).toContain('application/json')
  }
})

test('any query answers, or names what is wrong', async () => {
  const words = fc.constantFrom(
    'from',
    'to',
    'at',
    'asset',
    'by',
    'account',
    'profile_id',
    'customer_id',
    'limit',
    'page_cursor',
  )
  const property = fc.asyncProperty(
    fc.constantFrom('trial-balance', 'accounts', 'general-ledger', 'activity', 'closed-days'),
    fc.dictionary(
      words,
      fc.oneof(fc.string({ maxLength: 45 }), fc.constantFrom('2026-01-01', 'USD', '9999-12-31')),
      { maxKeys: 3 },
    ),
    async (path, query) => {
      const { status } = await customer.call(
        'GET',
        `/v2/reports/${path}?${String(new URLSearchParams(query))}`,
      )
      expect([200, 400]).toContain(status)
    },
  )
  await fc.assert(property, { numRuns: 60 })
})

test('activity of many lines costs memory for a page of them, and a file has all', async () => {
  const { customer_id } = other
  await service.db.query(
    `insert into entries (customer_id, transfer_id, event, position, account, asset, amount, created_at)
     select $1, gen_random_uuid(), 'SWEPT', 0, 'bank', asset, 1, '1970-02-01'::timestamptz + n * interval '1 day'
     from generate_series(1, 15000) n, unnest(array['USD', 'BTC', 'ETH']) asset`,
    [customer_id],
  )
  const read = vi.spyOn(Pool.prototype, 'query')
  const { status } = await other.call('GET', '/v2/reports/activity')
  expect(status).toBe(400)
  const { body } = await service.app.inject({
    url: '/v2/reports/activity',
    headers: { accept: 'text/csv', authorization: `Bearer ${other.token}` },
  })
  const results = await Promise.all(
    read.mock.results.map(({ value }) => value as Promise<{ rows: unknown[] }>),
  )
  read.mockRestore()
  const lines = body
    .trim()
    .split('\r\n')
    .filter((line) => line < `"'2012`)
  expect(new Set(lines).size).toBe(lines.length)
  expect(lines.length).toBe(45_000)
  expect(Math.max(...results.map(({ rows }) => rows.length))).toBe(20_000)
})
