/*
 * Invariants of the list, for any filters, order and page size:
 * 1. it belongs to the customer: a customer_id other than the token's is a 403, whether it exists or not;
 * 2. its pages contain exactly the matching statements, in the order of their periods and each once;
 * 3. a statement has fields only for events that have happened;
 * 4. a cursor is valid only for the filters and order of its request, and any other text is a 400. No two statements
 * of a customer begin at one moment: a month has one product, and so one ref_id, which is unique.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Failures } from '../../../test/failures.ts'
import { move } from '../../../test/history.ts'
import { SEED } from '../../../test/seed.ts'
import { newCustomer, TEST_ORIGIN, type TestCustomer, ownTestService } from '../../../test/support.ts'
import { momentAt, newId } from '../../db/ids.ts'
import { generateStatements } from './generate-statements.ts'
import { payStatements } from './pay-statements.ts'
import { periodOf } from './period.ts'
import { setRewardRate } from './reward-rates.ts'
import type { Statement } from './statement.ts'

const LIST = '/v2/statements'
const STATUSES = [
  'STATEMENT_STATUS_INITIATED',
  'STATEMENT_STATUS_GENERATED',
  'STATEMENT_STATUS_PAID',
] as const

const service = await ownTestService()
const customer = await newCustomer(service)
/** A customer with few statements, for pages of every size. */
const small = await newCustomer(service)
/** All statements of the customer, oldest first: more than fit on one page. */
const all = await insert(customer, 1_005)
const few = await insert(small, 13)

/** Inserts statements of this many months, out of order. */
async function insert({ customer_id }: TestCustomer, count: number): Promise<Statement[]> {
  const statements = Array.from({ length: count }, (_, n): Statement => {
    const period = periodOf(`${2002 + Math.floor(n / 12)}-${String((n % 12) + 1).padStart(2, '0')}`)!
    const created_at = `2026-03-01T12:00:00.${String((n * 7919) % count).padStart(6, '0')}Z`
    const status = STATUSES[n % 3]!
    const total_amount_owed = `${n}.5`
    const id = newId(momentAt(created_at))
    const ref_id = `USDG_REWARDS-${customer_id}-${period.name}`
    return {
      id,
      ref_id,
      customer_id,
      type: 'STATEMENT_TYPE_USDG_REWARD',
      product: 'USDG_REWARDS',
      status,
      period_start: period.start,
      period_end: period.end,
      created_at,
      statement_group_id: id,
      version: 1,
      files: [],
      ...(status !== 'STATEMENT_STATUS_INITIATED' && {
        metadata: { total_amount: total_amount_owed },
        statement_balances: [
          {
            asset: 'USDG',
            amount_paid: status === 'STATEMENT_STATUS_PAID' ? total_amount_owed : '0',
            total_amount_owed,
            ...(status === 'STATEMENT_STATUS_GENERATED' && {
              next_payment_ref_id: `${customer_id}-${ref_id}-USDG-${total_amount_owed}-seq#1`,
            }),
          },
        ],
        generated_at: created_at,
      }),
      ...(status === 'STATEMENT_STATUS_PAID' && { paid_at: created_at }),
    }
  })
  const rows = statements.map((statement) => ({
    asset: 'USDG',
    ...statement,
    ...statement.statement_balances?.[0],
  }))
  await service.db.query(
    'insert into statements select * from json_populate_recordset(null::statements, $1)',
    [JSON.stringify(rows)],
  )
  return statements
}

type Query = [name: string, value: string][]
interface Page {
  statements: Statement[]
  next_page_cursor?: string
  detail?: string
}

const get = (query: Query, by = customer) =>
  by.call<Page>(
    'GET',
    `${LIST}?${new URLSearchParams([['customer_id', by.customer_id], ...query]).toString()}`,
  )

/** Reads a list to its end. */
async function walk(query: Query, limit: number, by = customer): Promise<Statement[]> {
  const seen: Statement[] = []
  let cursor: string | undefined
  for (let page = 0; page <= all.length; page++) {
    const after: Query = cursor === undefined ? [] : [['page_cursor', cursor]]
    const { status, body } = await get([...query, ['limit', String(limit)], ...after], by)
    expect(status).toBe(200)
    cursor = body.next_page_cursor
    // Every page except the last is full, and only the first may be empty.
    if (cursor !== undefined || page > 0) expect(body.statements.length).toBeGreaterThan(0)
    if (cursor !== undefined) expect(body.statements).toHaveLength(limit)
    seen.push(...body.statements)
    if (cursor === undefined) return seen
  }
  throw new Error('the list has no end')
}

// ---------------------------------------------------------------------------------------------- the record

describe('List Statements', () => {
  test('shows the fields of past events only', async () => {
    const own = await newCustomer(service)
    const { customer_id } = own
    const { db } = service
    const period = periodOf('2024-02')!
    await setRewardRate(db, '2024-01-01', '0.0376', TEST_ORIGIN)
    const at = momentAt('2024-01-15T12:00:00.000000Z')
    await move(db, customer_id, at, { to: own.profile_id, minor: 1_000_000_000n })
    const shown = async () => {
      const { status, body } = await get([], own)
      expect({ status, cursor: body.next_page_cursor }).toEqual({ status: 200 })
      return body.statements
    }
    const moment = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/) as string
    const balance = (amount_paid: string, next: object = {}) => [
      { asset: 'USDG', amount_paid, total_amount_owed: '2.987397', ...next },
    ]
    const next_payment_ref_id = `${customer_id}-USDG_REWARDS-${customer_id}-2024-02-USDG-2.987397-seq#1`

    // A worker stops after one step, then after the next, until a statement is visible.
    for (let step = 0; step < 20 && (await shown()).length === 0; step++) {
      const failures = new Failures((at) => (at === step ? 'AFTER' : undefined))
      await generateStatements(failures.database(db), period, customer_id).catch(() => undefined)
    }
    const [initiated] = await shown()
    expect(initiated).toEqual({
      id: expect.any(String) as string,
      ref_id: `USDG_REWARDS-${customer_id}-2024-02`,
      customer_id,
      type: 'STATEMENT_TYPE_USDG_REWARD',
      product: 'USDG_REWARDS',
      status: 'STATEMENT_STATUS_INITIATED',
      period_start: '2024-02-01T00:00:00.000000Z',
      period_end: '2024-02-29T23:59:59.999999Z',
      created_at: moment,
      statement_group_id: initiated!.id,
      version: 1,
      files: [],
    })

    await generateStatements(db, period, customer_id)
    const [generated] = await shown()
    expect(generated).toEqual({
      ...initiated,
      status: 'STATEMENT_STATUS_GENERATED',
      metadata: { total_amount: '2.987397' },
      statement_balances: balance('0', { next_payment_ref_id }),
      generated_at: moment,
    })

    await payStatements(db, { customerId: customer_id })
    expect(await shown()).toEqual([
      {
        ...generated,
        status: 'STATEMENT_STATUS_PAID',
        statement_balances: balance('2.987397'),
        paid_at: moment,
      },
    ])
  })

  // ---------------------------------------------------------------------------------------------- the customer

  describe('customer_id', () => {
    const of = (value: string) =>
      customer.call<Page>('GET', `${LIST}?customer_id=${encodeURIComponent(value)}`)

    test("other than the token's is a 403 that reveals nothing", async () => {
      const refusal = await of(small.customer_id)
      expect(refusal).toMatchObject({
        status: 403,
        body: { status: 403, detail: "customer_id must be the token's customer" },
      })
      for (const value of [randomUUID(), 'me', '', '%', `${customer.customer_id} `, 'x'.repeat(5_000)]) {
        const { status, body } = await of(value)
        expect({ value, status, body }).toEqual({ value, status: 403, body: refusal.body })
      }
    })

    test('is a UUID in any spelling', async () => {
      const { status, body } = await of(customer.customer_id.toUpperCase())
      expect(status).toBe(200)
      expect(body).toEqual((await get([])).body)
    })
  })

  // ---------------------------------------------------------------------------------------------- pages

  describe('pages', () => {
    const inOrder = (statements: Statement[], order: string | undefined) =>
      order === 'ASC' ? statements : [...statements].reverse()

    test.each(['ASC', 'DESC'])('of every size, %s', async (order) => {
      for (let limit = 1; limit <= few.length + 1; limit++) {
        expect(await walk([['order', order]], limit, small)).toEqual(inOrder(few, order))
      }
      for (const limit of [99, 100, 999, 1000]) {
        expect(await walk([['order', order]], limit)).toEqual(inOrder(all, order))
      }
    })

    test('have 100 statements by default, the latest period first', async () => {
      expect((await get([])).body.statements).toEqual(inOrder(all, 'DESC').slice(0, 100))
    })
  })

  // ---------------------------------------------------------------------------------------------- filters

  describe('filters equal a filter in memory', () => {
    const FILTERS: Record<string, { of: (statement: Statement) => string; commas: boolean; none: string[] }> =
      {
        ref_ids: {
          of: ({ ref_id }) => ref_id,
          commas: false,
          none: ['nobody', '', `USDG_REWARDS-${randomUUID()}-2024-02`],
        },
        statement_ids: { of: ({ id }) => id, commas: true, none: ['nobody', randomUUID()] },
        statuses: { of: ({ status }) => status, commas: true, none: ['STATEMENT_STATUS_UNSPECIFIED'] },
      }
    const NAMES = Object.keys(FILTERS)

    /** Values of one filter: some match records, others match none. */
    const valuesOf = (name: string): fc.Arbitrary<string[]> => {
      const { of, none } = FILTERS[name]!
      const some = fc.nat().map((n) => of(all[n % all.length]!))
      return fc.array(
        fc.oneof({ weight: 8, arbitrary: some }, { weight: 1, arbitrary: fc.constantFrom(...none) }),
        {
          minLength: 1,
          maxLength: name === 'statuses' ? 3 : 100,
          size: 'max',
        },
      )
    }
    const filtersOf = (names: string[]) =>
      fc.record(Object.fromEntries(names.map((name) => [name, valuesOf(name)] as const)))
    interface View {
      order: 'ASC' | 'DESC' | undefined
      limit: number
      /** Whether the values are separated by commas. */
      commas: boolean
      upperCase: boolean
    }
    const anyView: fc.Arbitrary<View> = fc.record({
      order: fc.constantFrom('ASC', 'DESC', undefined),
      limit: fc.constantFrom(17, 100, 1000),
      commas: fc.boolean(),
      upperCase: fc.boolean(),
    })

    /** Returns the number of matches. */
    async function requireSame(
      filters: Record<string, string[]>,
      { order, limit, commas, upperCase }: View,
    ): Promise<number> {
      const query = Object.entries(filters).flatMap(([name, values]): Query => {
        const written = upperCase && name === 'statement_ids' ? values.map((id) => id.toUpperCase()) : values
        if (commas && FILTERS[name]!.commas) return [[name, written.join(',')]]
        return written.map((value) => [name, value])
      })
      const expected = all.filter((one) =>
        Object.entries(filters).every(([name, values]) => values.includes(FILTERS[name]!.of(one))),
      )
      if (order !== undefined) query.push(['order', order])
      if (order !== 'ASC') expected.reverse()
      expect(await walk(query, limit)).toEqual(expected)
      return expected.length
    }

    const cases = [...NAMES.map((name) => [name]), ['ref_ids', 'statement_ids'], NAMES]
    test.each(cases.map((names) => [names]))('by %j', async (names) => {
      let found = 0
      await fc.assert(
        fc.asyncProperty(filtersOf(names), anyView, async (filters, view) => {
          found += await requireSame(filters, view)
        }),
        { seed: SEED, numRuns: 25 },
      )
      expect(found).toBeGreaterThan(0)
    })
  })
})
