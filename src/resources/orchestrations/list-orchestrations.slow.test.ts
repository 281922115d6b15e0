/*
 * Invariants of the list, for any filters, order and page size:
 * 1. its pages contain exactly the matching records, in order and each once, also among records of one moment;
 * `items` and `orchestrations` are the same;
 * 2. records that start or end meanwhile disturb none of the earlier ones;
 * 3. a cursor is valid only for the list, filters and order of its request, and any other text is a 400;
 * 4. a request reads few database pages, however rare the matches, however deep in the list, and with any statistics
 * of the planner.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { Temporal } from 'temporal-polyfill'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { anyText } from '../../../test/any-text.ts'
import { runs } from '../../../test/seed.ts'
import {
  DESTINATION,
  newCustomer,
  startTestService,
  type TestCustomer,
  type TestService,
  ownTestService,
  newProfile,
} from '../../../test/support.ts'
import { momentAt, newId, momentOfMicros } from '../../db/ids.ts'
import type { Orchestration } from '../../money/records/orchestration.ts'
import { magicAddress } from '../../networks/simulated/magic-addresses.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { runOrchestrations } from './run-orchestrations.ts'
import { refusedWith } from '../../../test/matchers.ts'
import { forCustomer } from '../../db/parts.ts'

const LIST = '/v2/orchestration/orchestrations'
const RULES = '/v2/orchestration/rules'

// ---------------------------------------------------------------------------------------------- the records

interface Rule {
  id: string
  profile_id: string
  source_asset: string
  /** Makes a deposit that triggers the rule. */
  setOff: () => Promise<unknown>
}

async function post<T>(customer: TestCustomer, url: string, body: unknown): Promise<T> {
  const answer = await customer.call<T>('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

let numbered = 0
const newRefId = () => `ref ${numbered++}`

async function newRule(customer: TestCustomer, body: Record<string, unknown>): Promise<Rule> {
  const { rule } = await post<{
    rule: {
      id: string
      source: { fiat?: { memo_id: string }; crypto?: { address: string; network: string } }
    }
  }>(customer, RULES, { ref_id: newRefId(), ...body })
  const { profile_id, source_asset } = body as { profile_id: string; source_asset: string }
  const { fiat, crypto } = rule.source
  const setOff = () => {
    if (fiat !== undefined) return wire(customer, fiat.memo_id)
    const to = crypto && { crypto_network: crypto.network, crypto_address: crypto.address }
    return deposit(customer, profile_id, source_asset, to)
  }
  return { id: rule.id, profile_id, source_asset, setOff }
}

const wire = (customer: TestCustomer, memo_id: string) =>
  post(customer, '/v2/sandbox/fiat-deposits', {
    amount: '5',
    asset: 'USD',
    memo_id,
    fiat_network_instructions: { wire: {} },
  })

const deposit = (customer: TestCustomer, profile_id: string, asset: string, to: object = {}) =>
  post(customer, `/v2/sandbox/profiles/${profile_id}/deposit`, { asset, amount: '5', ...to })

/** Creates a rule for each kind of source and destination, and one rule without deposits. */
function newRules(customer: TestCustomer, [first, second, third]: string[]): Promise<Rule[]> {
  const fiat = { fiat: { network: 'WIRE' } }
  const ethereum = (address = DESTINATION) => ({ crypto: { network: 'ETHEREUM', address } })
  const solana = { crypto: { network: 'SOLANA', address: magicAddress('SOLANA', 'NEVER_CONFIRMS') } }
  return Promise.all(
    [
      {
        profile_id: first,
        source_asset: 'USD',
        destination_asset: 'USDP',
        source: fiat,
        destination: ethereum(),
      },
      {
        profile_id: second,
        source_asset: 'USD',
        destination_asset: 'USDP',
        source: fiat,
        destination: ethereum(magicAddress('ETHEREUM', 'CUSTOMER_REJECTED')),
      },
      { profile_id: second, source_asset: 'USD', destination_asset: 'USDG', source: fiat },
      {
        profile_id: first,
        source_asset: 'USDG',
        destination_asset: 'PYUSD',
        source: { crypto: { network: 'ETHEREUM' } },
        destination: { profile: { profile_id: third } },
      },
      {
        profile_id: second,
        source_asset: 'USDP',
        destination_asset: 'USDP',
        source: { crypto: { network: 'SOLANA' } },
        destination: solana,
      },
      {
        profile_id: third,
        source_asset: 'USDP',
        destination_asset: 'USD',
        source: { profile: { profile_id: third } },
      },
      { profile_id: third, source_asset: 'USD', destination_asset: 'USDP', source: fiat },
    ].map((body) => newRule(customer, body)),
  )
}

/** Creates orchestrations of all statuses, with and without rules, in batches that share their moment. */
async function makeOrchestrations(
  service: TestService,
  customer: TestCustomer,
  profiles: string[],
  rules: Rule[],
  rounds: number,
): Promise<void> {
  const [, ...others] = [...rules].reverse()
  for (const profile_id of profiles) await deposit(customer, profile_id, 'USD')
  for (let round = 0; round < rounds; round++) {
    const deposits = [...others, ...others].map((rule) => rule.setOff())
    const direct = profiles.map((profile_id) =>
      post(customer, LIST, {
        ref_id: newRefId(),
        source_asset: 'USD',
        destination_asset: 'USDG',
        source_amount: '0.1',
        source: { profile: { profile_id } },
      }),
    )
    await Promise.all([...deposits, ...direct])
    // The last batch is not advanced.
    if (round + 1 < rounds) await work(service)
  }
}

async function work({ db, networks, settings, macs }: TestService): Promise<void> {
  for (let step = 1; step <= 4; step++) {
    await runOrchestrations(db, { networks, settings, macs })
    await db.query(
      'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
    )
    await settleWithdrawals(db, networks)
  }
}

/** Reads all orchestrations of a customer by id, oldest first. */
async function readAll({ customer_id, call }: TestCustomer): Promise<Orchestration[]> {
  const { rows } = await service.db.query<{ id: string }>(
    'select id from orchestrations where customer_id = $1 order by id',
    [customer_id],
  )
  return Promise.all(rows.map(async ({ id }) => (await call<Orchestration>('GET', `${LIST}/${id}`)).body))
}

const service = await ownTestService()
/** A customer with profiles, rules and their orchestrations. */
async function newTenant(rounds: number) {
  const customer = await newCustomer(service)
  const profiles = [customer.profile_id, await newProfile(customer), await newProfile(customer)]
  const rules = await newRules(customer, profiles)
  await makeOrchestrations(service, customer, profiles, rules, rounds)
  return { customer, profiles, rules }
}
// The orchestrations of another customer, too.
await newTenant(2)
const { customer, profiles, rules } = await newTenant(8)
/** All orchestrations, oldest first. */
const all = await readAll(customer)

// ---------------------------------------------------------------------------------------------- the filters

type Query = [name: string, value: string][]
interface Page {
  items: Orchestration[]
  orchestrations: Orchestration[]
  next_page_cursor?: string
}

const get = (query: Query, { call } = customer) =>
  call<Page>('GET', `${LIST}?${new URLSearchParams(query).toString()}`)

/** Reads the list to its end, and calls `between` between the pages. */
async function walk(
  query: Query,
  limit: number,
  { reader = customer, between }: { reader?: TestCustomer; between?: () => Promise<unknown> } = {},
): Promise<Orchestration[]> {
  const seen: Orchestration[] = []
  let cursor: string | undefined
  for (let page = 0; page <= 1_000; page++) {
    const after: Query = cursor === undefined ? [] : [['page_cursor', cursor]]
    const { status, body } = await get([...query, ['limit', String(limit)], ...after], reader)
    expect({ status, body }).toMatchObject({ status: 200 })
    expect(body.orchestrations).toEqual(body.items)
    seen.push(...body.items)
    cursor = body.next_page_cursor
    if (cursor === undefined) return seen
    expect(body.items).toHaveLength(limit)
    await between?.()
  }
  throw new Error('the list has no end')
}

/** Values that match records, values that match none, and invalid values; sometimes a value twice. */
const values = (known: () => string[], unknown: string[]) =>
  fc
    .tuple(
      fc.array(
        fc.oneof({ weight: 4, arbitrary: fc.nat() }, { weight: 1, arbitrary: fc.constantFrom(...unknown) }),
        { minLength: 1, maxLength: 4 },
      ),
      fc.boolean(),
    )
    .map(([picks, twice]) => {
      const values = picks.map((pick) => (typeof pick === 'number' ? known()[pick % known().length]! : pick))
      return twice ? [...values, values[0]!] : values
    })
const NO_IDS = [randomUUID(), 'nobody', '', 'x'.repeat(5_000), "' or true --"]
/** Ids in both spellings. */
const ids = (known: () => string[]) => values(() => known().flatMap((id) => [id, id.toUpperCase()]), NO_IDS)
const ASSETS = ['USD', 'USDP', 'USDG', 'PYUSD']

/** Each array filter: its values, and the record's field that it matches. */
const FILTERS: Record<
  string,
  { anyValues: fc.Arbitrary<string[]>; of: (one: Orchestration) => string | undefined }
> = {
  orchestration_rule_id: {
    anyValues: ids(() => rules.map(({ id }) => id)),
    of: (one) => one.orchestration_rule_id,
  },
  source_asset: { anyValues: values(() => ASSETS, ['BTC', 'LINK']), of: (one) => one.source_asset },
  destination_asset: {
    anyValues: values(() => ASSETS, ['BTC', 'EUR']),
    of: (one) => one.destination_asset,
  },
  status: {
    anyValues: values(() => ['PROCESSING', 'COMPLETED', 'FAILED'], ['PENDING', 'REJECTED']),
    of: (one) => one.status,
  },
  orchestration_id: { anyValues: ids(() => all.map(({ id }) => id)), of: (one) => one.id },
  profile_id: { anyValues: ids(() => profiles), of: (one) => one.profile_id },
  ref_id: {
    anyValues: values(
      () => all.flatMap(({ ref_id }) => ref_id ?? []),
      ['nobody', `orchestration_id.${randomUUID()}`, 'orchestration_id.', 'orchestration_id.nobody'],
    ),
    of: (one) => one.ref_id,
  },
}
const NAMES = Object.keys(FILTERS)

const COMPARE: Record<string, (record: bigint, bound: bigint) => boolean> = {
  lt: (record, bound) => record < bound,
  lte: (record, bound) => record <= bound,
  eq: (record, bound) => record === bound,
  gte: (record, bound) => record >= bound,
  gt: (record, bound) => record > bound,
}
const nanosOf = (time: string) => Temporal.Instant.from(time).epochNanoseconds

/** A moment at or next to a record's, by as little as a nanosecond, in any spelling. */
const moment = (part: number) =>
  fc
    .tuple(
      fc.nat(),
      fc.constantFrom(0n, 0n, 0n, 1n, -1n, 999n, -999n, 1_000n, -1_000n, 3_600_000_000_000n),
      fc.constantFrom('+00:00', '+05:30', '-11:00', '+14:00', 'Z', 'Z'),
      fc.boolean(),
    )
    .map(([at, away, offset, allDecimals]) => {
      const { created_at } = all[Math.floor(((at % 997) / 997 / 2 + part / 2) * all.length)]!
      const instant = Temporal.Instant.fromEpochNanoseconds(nanosOf(created_at) + away)
      const decimals = allDecimals ? { fractionalSecondDigits: 9 as const } : {}
      if (offset === 'Z') return instant.toString(decimals)
      return instant.toZonedDateTimeISO(offset).toString({ timeZoneName: 'never', ...decimals })
    })
/** Lower bounds in the first half of the records, upper bounds in the second, so that some records match. */
const bounds = fc
  .record({ lt: moment(1), lte: moment(1), gte: moment(0), gt: moment(0) }, { requiredKeys: [] })
  .chain((others) =>
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(others) },
      { weight: 1, arbitrary: moment(0).map((eq) => ({ ...others, eq })) },
      { weight: 1, arbitrary: moment(1).map((lt) => ({ ...others, gt: lt })) },
    ),
  )

const filtersOf = (names: string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, FILTERS[name]!.anyValues])))
const view = fc.record({
  order: fc.constantFrom('ASC', 'DESC', undefined),
  limit: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 6, max: 70 }) },
    fc.constantFrom(1, 2, 999, 1000),
  ),
  commas: fc.boolean(),
})

/** Compares the list with a filter in memory. Returns the number of matches. */
async function requireSame(
  filters: Record<string, string[]>,
  bounds: Partial<Record<string, string>>,
  { order, limit, commas }: { order: string | undefined; limit: number; commas: boolean },
): Promise<number> {
  const query: Query = Object.entries(filters).flatMap(([name, values]): Query =>
    commas && name !== 'ref_id' ? [[name, values.join(',')]] : values.map((value) => [name, value]),
  )
  for (const [comparison, time] of Object.entries(bounds)) query.push([`created_at.${comparison}`, time!])
  if (order !== undefined) query.push(['order', order])

  const expected = all
    .filter((one) =>
      Object.entries(filters).every(([name, values]) => {
        const value = FILTERS[name]!.of(one)
        return values.some(
          (wanted) => wanted === value || (UUID.test(wanted) && wanted.toLowerCase() === value),
        )
      }),
    )
    .filter(({ created_at }) =>
      Object.entries(bounds).every(([comparison, time]) =>
        COMPARE[comparison]!(nanosOf(created_at), nanosOf(time!)),
      ),
    )
  if (order !== 'ASC') expected.reverse()
  expect(await walk(query, limit)).toEqual(expected)
  return expected.length
}
const UUID = /^[0-9a-f-]{36}$/i

// ---------------------------------------------------------------------------------------------- cursors

// ---------------------------------------------------------------------------------------------- while others start

// ---------------------------------------------------------------------------------------------- what is read

/** The rows that `analyze` has seen: none, the first records, or all of them. */
const SEEN = ['nothing', 'its first records', 'all of it'] as const

describe('List Orchestrations', () => {
  test('the records under test are of every kind', () => {
    const count = (keyOf: (one: Orchestration) => string | undefined) => {
      const counts = new Map<string | undefined, number>()
      for (const one of all) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1)
      return counts
    }
    expect([...count(({ status }) => status).keys()].sort()).toEqual(['COMPLETED', 'FAILED', 'PROCESSING'])
    expect([...count((one) => one.orchestration_rule_id).keys()].sort()).toEqual(
      [...rules.slice(0, -1).map(({ id }) => id), undefined].sort(),
    )
    expect([...count(({ profile_id }) => profile_id).keys()].sort()).toEqual([...profiles].sort())
    expect(count((one) => `${one.source_asset} ${one.destination_asset}`).size).toBe(5)
    // Group posting often gives several orchestrations, of several rules, the same moment.
    const moments = [...count(({ created_at }) => created_at).values()]
    expect(Math.max(...moments)).toBeGreaterThan(4)
    expect(moments.filter((size) => size > 1).length).toBeGreaterThan(7)
    const byTime = [...all].sort((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1))
    expect(all).toEqual(byTime)
  })

  describe('equals a filter in memory', () => {
    test.each(NAMES)('by %s alone', async (name) => {
      let found = 0
      await fc.assert(
        fc.asyncProperty(filtersOf([name]), view, async (filters, view) => {
          found += await requireSame(filters, {}, view)
        }),
        runs(80),
      )
      expect(found).toBeGreaterThan(0)
    })

    test('by created_at alone', async () => {
      let found = 0
      await fc.assert(
        fc.asyncProperty(bounds, view, async (bounds, view) => {
          found += await requireSame({}, bounds, view)
        }),
        runs(60),
      )
      expect(found).toBeGreaterThan(0)
    })

    test('by any combination', async () => {
      const someFilters = fc.subarray(NAMES, { maxLength: 4 }).chain(filtersOf)
      let found = 0
      await fc.assert(
        fc.asyncProperty(someFilters, bounds, view, async (filters, bounds, view) => {
          found += await requireSame(filters, bounds, view)
        }),
        runs(250),
      )
      expect(found).toBeGreaterThan(0)
    })
  })

  test.each([
    [['status', 'DONE'], 'status'],
    [['status', ''], 'status'],
    [['orchestration_rule_id', Array(101).fill('x').join(',')], 'orchestration_rule_id'],
    [['created_at.gt', '2026-01-31'], 'created_at.gt'],
    [['limit', '0'], 'limit'],
    [['limit', '1001'], 'limit'],
    [['order', 'asc'], 'order'],
    [['rule_id', 'x'], 'rule_id'],
  ] as [Query[number], string][])('%j is a 400 that names the parameter', async (parameter, name) => {
    expect(await get([parameter])).toMatchObject(refusedWith(400, name))
  })

  describe('a cursor is refused', () => {
    /** Queries of this list with more than one page, and queries of other lists. */
    const queries: Query[] = [
      [],
      [['order', 'ASC']],
      [['status', 'COMPLETED']],
      [['source_asset', 'USD']],
      [['created_at.gte', '2026-01-01T00:00:00Z']],
      [
        ['source_asset', 'USD'],
        ['status', 'COMPLETED'],
      ],
    ]
    const cursors = new Map<Query, string>()
    beforeAll(async () => {
      for (const query of queries) {
        cursors.set(query, (await get([...query, ['limit', '3']])).body.next_page_cursor!)
      }
    })
    const cursorOf = (query: Query) => cursors.get(query)!
    const anyQuery = fc.constantFrom(...queries)

    async function requireRefused(query: Query, cursor: string): Promise<void> {
      const { status, body } = await get([...query, ['page_cursor', cursor]])
      const detail = expect.stringContaining('page_cursor') as string
      expect({ cursor, status, body }).toMatchObject({ status: 400, body: { status: 400, detail } })
    }

    const character = fc.oneof(
      fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'),
      // Characters that a decoder may skip.
      fc.constantFrom(...'=+/ %,\u00e9\u{1f600}'),
    )
    const edits: Record<string, fc.Arbitrary<(cursor: string) => string>> = {
      'cut short': fc.nat().map((at) => (cursor) => cursor.slice(0, 1 + (at % (cursor.length - 1)))),
      'with its beginning cut off': fc
        .nat()
        .map((at) => (cursor) => cursor.slice(1 + (at % (cursor.length - 1)))),
      'with other characters, more of them or fewer': fc
        .tuple(fc.nat(), fc.nat(2), fc.array(character, { maxLength: 2 }))
        .map(([at, removed, put]) => (cursor) => {
          const place = at % cursor.length
          return cursor.slice(0, place) + put.join('') + cursor.slice(place + removed)
        }),
      'with another byte inside': fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })).map(([at, change]) => {
        return (cursor: string) => {
          const bytes = Buffer.from(cursor, 'base64url')
          bytes[at % bytes.length]! ^= change
          return bytes.toString('base64url')
        }
      }),
      'doubled, or longer than any': fc
        .integer({ min: 2, max: 9 })
        .map((times) => (cursor) => cursor.repeat(times)),
      // An empty one is none.
      'that is any text': anyText().map((text) => () => text || ' '),
    }
    test.each(Object.entries(edits))('%s', async (_, edit) => {
      await fc.assert(
        fc.asyncProperty(anyQuery, edit, async (query, edit) => {
          const cursor = cursorOf(query)
          const edited = edit(cursor)
          fc.pre(edited !== cursor)
          await requireRefused(query, edited)
        }),
        runs(150),
      )
    })

    test('with other filters or another order', async () => {
      for (const made of queries) {
        for (const used of queries) {
          if (made !== used) await requireRefused(used, cursorOf(made))
        }
        const { status } = await get([...made, ['limit', '9'], ['page_cursor', cursorOf(made)]])
        expect(status).toBe(200)
      }
      // DESC is the default order.
      const spelledOut = await get([
        ['order', 'DESC'],
        ['page_cursor', cursorOf(queries[0]!)],
      ])
      expect(spelledOut.status).toBe(200)
    })

    test("by another list, and another list's by this one", async () => {
      for (const list of [RULES, '/v2/transfer/transfers', '/v2/profiles']) {
        const other = await customer.call<Page>('GET', `${list}?limit=1`)
        await requireRefused([], other.body.next_page_cursor!)
        const answer = await customer.call('GET', `${list}?page_cursor=${cursorOf(queries[0]!)}`)
        expect([list, answer.status]).toEqual([list, 400])
      }
    })

    test('but gives another customer only its own', async () => {
      const other = await newCustomer(service)
      const { status, body } = await get([['page_cursor', cursorOf(queries[0]!)]], other)
      expect({ status, body }).toEqual({ status: 200, body: { items: [], orchestrations: [] } })
    })
  })

  describe('while orchestrations start and end', () => {
    const STARTED_MAX = 300
    const queries: [string, () => Query][] = [
      ['all', () => []],
      ['those of all rules', () => rules.map(({ id }) => ['orchestration_rule_id', id])],
      ['those of some assets', () => ASSETS.map((asset) => ['source_asset', asset])],
      ['those of some profiles', () => profiles.map((id) => ['profile_id', id])],
    ]
    const cases = queries.flatMap(([what, query]) =>
      ['ASC', 'DESC'].map((order) => [what, order, query] as const),
    )
    test.each(cases)('%s are each seen once, %s', async (_, order, query) => {
      const before = (await readAll(customer)).filter((one) => {
        return query().every(([name]) => FILTERS[name]!.of(one) !== undefined)
      })
      let walking = true
      let started = 0
      const starting = (async () => {
        // The list must end, even while new records are added at its end.
        for (; walking && started < STARTED_MAX; started += 3) {
          const next = [0, 1, 2].map((n) => rules[(started + n) % (rules.length - 1)]!)
          await Promise.all(next.map((rule) => rule.setOff()))
        }
      })()
      const ending = (async () => {
        while (walking) await work(service)
      })()
      const between = async () => {
        const before = started
        while (started === before && started < STARTED_MAX) await pause(1)
      }
      const seen = await walk([...query(), ['order', order]], 17, { between }).finally(
        () => (walking = false),
      )
      await Promise.all([starting, ending])

      const ids = seen.map(({ id }) => id)
      if (order === 'DESC') ids.reverse()
      expect(ids).toEqual([...new Set(ids)].sort())
      const known = new Set(before.map(({ id }) => id))
      expect(ids.filter((id) => known.has(id))).toEqual(before.map(({ id }) => id))
    })
  })

  describe.each(SEEN)('reads no more than it must of 20,000 records, with statistics of %s', (seen) => {
    /** Pages of 8 kB. All records take more than 500 pages, and so does each index. */
    const PAGES_MAX = 250
    const COUNT = 20_000
    let crowded: TestService
    let tenant: TestCustomer
    let own: string[]
    let ruleIds: string[]
    let records: Record<string, unknown>[]

    beforeAll(async () => {
      crowded = await startTestService()
      const { db, owner } = crowded
      await owner.query('alter table orchestrations set (autovacuum_enabled = off)')
      tenant = await newCustomer(crowded)
      own = [tenant.profile_id, await newProfile(tenant), await newProfile(tenant)]
      const made = await newRules(tenant, own)
      ruleIds = made.map(({ id }) => id)
      await makeOrchestrations(crowded, tenant, own, made, 2)
      if (seen === 'its first records') await owner.query('analyze orchestrations')
      records = manyRecords()
      await db.query(
        'insert into orchestrations select * from json_populate_recordset(null::orchestrations, $1)',
        [JSON.stringify(records)],
      )
      if (seen === 'all of it') await owner.query('analyze orchestrations')
    })
    afterAll(() => crowded.close())

    /** One record per second. The rare ones are in the middle, far from both ends. */
    function manyRecords(): Record<string, unknown>[] {
      const start = momentAt('2026-03-01T12:00:00.000000Z').micros
      return Array.from({ length: COUNT }, (_, n) => {
        const micros = start + n * 1_000_000
        const created_at = momentOfMicros(micros).text
        const rare = n > COUNT / 2 && n < COUNT / 2 + 40 ? n % 8 : -1
        return {
          customer_id: tenant.customer_id,
          id: newId({ micros, text: created_at }),
          profile_id: own[rare === 0 ? 1 : 0],
          source_asset: rare === 1 || rare === 6 ? 'USDG' : 'USD',
          destination_asset: rare === 2 || rare === 6 ? 'PYUSD' : 'USDP',
          source_amount: '1',
          status: rare === 3 ? 'FAILED' : rare === 4 ? 'PROCESSING' : 'COMPLETED',
          ...(rare === 3 && { fail_reason: 'test' }),
          ...(rare >= 3 || rare < 0 ? { orchestration_rule_id: ruleIds[rare === 6 ? 3 : 0] } : {}),
          destination_transfer_id: randomUUID(),
          hops: 0,
          source: {},
          destination: {},
          created_at,
          updated_at: created_at,
        }
      })
    }

    /** Counts the pages of tables and indexes that the database reads for a query. */
    async function pagesRead(query: Query): Promise<number> {
      const spy = vi.spyOn(forCustomer(crowded.db, tenant.customer_id), 'query')
      const { status } = await get([...query, ['limit', '10']], tenant)
      expect(status).toBe(200)
      const calls = spy.mock.calls as unknown as [unknown, unknown[] | undefined][]
      const [text, values] = calls.find(
        ([text, values]) => String(text).includes('orchestrations') && values?.includes(tenant.customer_id),
      ) as [string, unknown[]]
      spy.mockRestore()
      const { rows } = await crowded.db.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
        `explain (analyze, buffers, format json) ${text}`,
        values,
      )
      const { Plan } = rows[0]!['QUERY PLAN'][0]
      return Plan['Shared Hit Blocks']! + Plan['Shared Read Blocks']!
    }

    const at = (n: number) => String(records[n]!.created_at)
    const queries: Record<string, () => Query> = {
      'without a filter': () => [],
      'by a rare rule': () => [['orchestration_rule_id', ruleIds[3]!]],
      'by a rule of nearly all': () => [['orchestration_rule_id', ruleIds[0]!]],
      'by all rules': () => ruleIds.map((id) => ['orchestration_rule_id', id]),
      'by a rare status': () => [['status', 'FAILED']],
      'by two statuses': () => ['COMPLETED', 'FAILED'].map((status) => ['status', status]),
      'by a rare source_asset': () => [['source_asset', 'USDG']],
      'by a rare destination_asset': () => [['destination_asset', 'PYUSD']],
      'by assets that never go together': () => [
        ['source_asset', 'PYUSD'],
        ['destination_asset', 'PYUSD'],
      ],
      'by a rare profile': () => [['profile_id', own[1]!]],
      'by all profiles': () => own.map((id) => ['profile_id', id]),
      'by a profile without any': () => [['profile_id', randomUUID()]],
      'by the profile of nearly all and a rare status': () => [
        ['profile_id', own[0]!],
        ['status', 'PROCESSING'],
      ],
      'by the profile of nearly all and a rare asset': () => [
        ['profile_id', own[0]!],
        ['destination_asset', 'PYUSD'],
      ],
      'by the rule of nearly all and a rare status': () => [
        ['orchestration_rule_id', ruleIds[0]!],
        ['status', 'FAILED'],
      ],
      'by the rule of nearly all and another profile than its own': () => [
        ['orchestration_rule_id', ruleIds[0]!],
        ['profile_id', own[1]!],
      ],
      'by the rule of nearly all and other assets than its own': () => [
        ['orchestration_rule_id', ruleIds[0]!],
        ['source_asset', 'USDG'],
      ],
      'by ids': () => [1, 10_000, 19_999].map((n) => ['orchestration_id', String(records[n]!.id)]),
      'by an id and all else': () => [
        ['orchestration_id', String(records[7]!.id)],
        ['profile_id', own[0]!],
        ['orchestration_rule_id', ruleIds[0]!],
        ['status', 'COMPLETED'],
      ],
      'by ids that are none': () => [['orchestration_id', 'nobody']],
      'by ref_ids': () => [
        ['ref_id', 'nobody'],
        ...[7, 10_000].map((n): [string, string] => ['ref_id', `orchestration_id.${String(records[n]!.id)}`]),
      ],
      'by a ref_id, an id and all else': () => [
        ['ref_id', `orchestration_id.${String(records[7]!.id)}`],
        ['orchestration_id', String(records[7]!.id)],
        ['profile_id', own[0]!],
        ['status', 'COMPLETED'],
      ],
      'by a status that there is not': () => [['status', 'PENDING']],
      'by a moment': () => [['created_at.eq', at(10_000)]],
      'by a span in the middle': () => [
        ['created_at.gte', at(9_000)],
        ['created_at.lt', at(11_000)],
      ],
      'by a span in the middle and a kind': () => [
        ['created_at.gte', at(9_000)],
        ['created_at.lt', at(11_000)],
        ['status', 'COMPLETED'],
        ['source_asset', 'USD'],
      ],
      'by a span in the middle and the rule of nearly all': () => [
        ['created_at.gt', at(9_000)],
        ['created_at.lte', at(11_000)],
        ['orchestration_rule_id', ruleIds[0]!],
      ],
    }
    const cases = Object.entries(queries).flatMap(([how, query]) =>
      ['ASC', 'DESC'].map((order): [string, string, () => Query] => [how, order, query]),
    )

    test.each(cases)('%s, %s', async (_, order, query) => {
      expect(await pagesRead([...query(), ['order', order]])).toBeLessThan(PAGES_MAX)
    })

    test.each(['ASC', 'DESC'])('deep in the list, %s', async (order) => {
      const query: Query = [
        ['status', 'COMPLETED'],
        ['order', order],
      ]
      let cursor: string | undefined
      for (let page = 1; page <= 10; page++) {
        const after: Query = cursor === undefined ? [] : [['page_cursor', cursor]]
        cursor = (await get([...query, ['limit', '1000'], ...after], tenant)).body.next_page_cursor
      }
      expect(await pagesRead([...query, ['page_cursor', cursor!]])).toBeLessThan(PAGES_MAX)
    })
  })

  test('a page has 1,000 of the largest records, under both names', async () => {
    const tenant = await newCustomer(service)
    const metadata = Object.fromEntries(
      Array.from({ length: 6 }, (_, n) => [`${n}${'\u{1F600}'.repeat(99)}`, '\u{1F600}'.repeat(100)]),
    )
    await service.db.query(
      `insert into orchestrations (customer_id, id, profile_id, ref_id, source_asset, destination_asset, source_amount, fail_reason,
                                   source, destination, status, metadata, created_at, updated_at)
       select $1, ('0192f3a4-7b1c-7d3e-8f00-' || lpad(to_hex(n), 12, '0'))::uuid, $2, lpad(n::text, 100, 'x'), 'USD', 'USDP', 10, repeat('x', 500), $3, $4, 'FAILED', $5, now(), now()
       from generate_series(1, 1033) n`,
      [
        tenant.customer_id,
        tenant.profile_id,
        { profile: { profile_id: tenant.profile_id } },
        { crypto: { address: 'x'.repeat(128), network: 'ETHEREUM' } },
        metadata,
      ],
    )
    for (const order of ['DESC', 'ASC']) {
      const first = (
        await get(
          [
            ['limit', '1000'],
            ['order', order],
          ],
          tenant,
        )
      ).body
      expect(first.items).toHaveLength(1_000)
      expect(first.orchestrations).toEqual(first.items)
      expect(first.items[0]!.metadata).toEqual(metadata)
      const query: Query = [
        ['limit', '1000'],
        ['order', order],
        ['page_cursor', first.next_page_cursor!],
      ]
      const last = (await get(query, tenant)).body
      expect(last.items).toHaveLength(33)
      expect(last).not.toHaveProperty('next_page_cursor')
      expect(new Set([...first.items, ...last.items].map(({ id }) => id)).size).toBe(1_033)
    }
  })
})
