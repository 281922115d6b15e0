/*
 * Invariants of the statements of a period, for any movements and any rates:
 * 1. a statement equals a replay of every movement in memory, exact and rounded down once: never above the exact
 * value, and less than 0.000001 below it;
 * 2. its explanation derives the same amount day by day, also after the rates of those days were changed;
 * 3. every movement dated by the period's end counts, even if it is committed later;
 * 4. a GENERATED statement never changes, with any number of simultaneous generators and crashes;
 * 5. a refusal changes nothing.
 */
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { queryNodes } from '../../../test/cluster.ts'
import { dieAtEachStep, FAILURES, Failures, type Failure, sendingBy } from '../../../test/failures.ts'
import { move, moveAt, openMovement } from '../../../test/history.ts'
import { runs } from '../../../test/seed.ts'
import { cloneDatabase, emptier, everyTable, TEST_ORIGIN, testSettings } from '../../../test/support.ts'
import type { TestDatabase } from '../../../test/support.ts'
import { createCustomer } from '../../money/records/customer.ts'
import {
  begin,
  commit,
  type Database,
  openDatabase,
  type Transaction,
  transaction,
} from '../../db/database.ts'
import { momentAt, newId, readClock } from '../../db/ids.ts'
import { partsOf } from '../../db/parts.ts'
import { Ledger } from '../../money/movements/queue.ts'
import { verify } from '../../money/verify/verify.ts'
import { startWorker } from '../../program/worker.ts'
import { explainStatement } from './explain-statement.ts'
import { checkStatements } from './check-statements.ts'
import { generateEndedMonths, generateStatements } from './generate-statements.ts'
import { payStatements } from './pay-statements.ts'
import { periodOf, type Period } from './period.ts'
import { setRewardRate } from './reward-rates.ts'
import type { Derivation } from './reward.ts'
import { STATEMENT_COLUMNS, type StatementRow } from './statement.ts'
import { atEnd } from '../../../test/at-end.ts'

// ---------------------------------------------------------------------------------------------- the world

/** A database whose clock a test sets, on each node of a cluster. Each reading is a microsecond after the one before. */
interface World extends TestDatabase {
  setClock: (at: string) => Promise<void>
  /** Resets it to its original state. */
  empty: () => Promise<void>
}

async function newWorld(now = '2029-01-01T00:00:00Z'): Promise<World> {
  const database = await cloneDatabase()
  const onNodes = (statements: string) => queryNodes(database.ownerUrl, statements)
  // Connections opened later find our clock function before PostgreSQL's.
  const path = 'set search_path = clock, pg_catalog, public'
  await onNodes(`
    set citus.enable_ddl_propagation to off;
    create schema clock;
    grant usage on schema clock to public;
    create table clock.setting (at timestamptz not null);
    create sequence clock.readings minvalue 0;
    create function clock.clock_timestamp() returns timestamptz language sql volatile security definer as $$
      select coalesce((select at + nextval('clock.readings') * interval '1 microsecond' from clock.setting),
                      pg_catalog.clock_timestamp())
    $$;
    alter database ${new URL(database.url).pathname.slice(1)} ${path}`)
  const setClock = async (at: string) => {
    await onNodes(`
      delete from clock.setting;
      select setval('clock.readings', 0, false);
      insert into clock.setting values ('${at}')`)
  }
  await setClock(now)
  const emptyTables = await emptier(database)
  return {
    ...database,
    setClock,
    async empty() {
      await emptyTables()
      await setClock(now)
    },
  }
}

/** Creates a world that is dropped when the test ends. */
async function ownWorld(now?: string): Promise<World> {
  const world = await newWorld(now)
  atEnd(world.drop)
  return world
}

/** Creates a customer with this many profiles, the default one first. */
async function newHolder(db: Database, profiles = 1) {
  const { customer_id, profile_id } = await createCustomer(db, 'Test')
  const ids = [profile_id]
  while (ids.length < profiles) ids.push(await newProfile(db, customer_id))
  return { customer_id, profile_id, profiles: ids }
}
type Holder = Awaited<ReturnType<typeof newHolder>>

async function newProfile(db: Database, customerId: string): Promise<string> {
  const now = await transaction(db, readClock)
  const id = newId(now)
  await db.query(
    `insert into profiles (customer_id, id, created_at, type, nickname) values ($1, $2, $3, 'NORMAL', $4)`,
    [customerId, id, now.text, id],
  )
  return id
}

async function statementsOf(db: Database, period?: Period): Promise<StatementRow[]> {
  const { rows } = await db.query<StatementRow>(
    `select ${STATEMENT_COLUMNS} from statements s where $1::timestamptz is null or s.period_start = $1
     order by s.customer_id, s.period_start`,
    [period?.start],
  )
  return rows
}

/** Reads the amount of each customer's statement of a period. */
const statedIn = async (db: Database, period: Period) =>
  new Map((await statementsOf(db, period)).map((row) => [row.customer_id, row.total_amount_owed]))

const month = (name: string) => periodOf(name)!

// ---------------------------------------------------------------------------------------------- by brute force

/** A movement of a customer: its time, and its profiles by index. */
interface Movement {
  at: string
  from?: number
  to?: number
  asset: string
  minor: bigint
}

/** The annual rate from a day on, with 10 decimals. */
interface Setting {
  day: string
  rate: bigint
}

/**
 * Balances have 6 decimals, seconds 6 and rates 10. Divides by the seconds of a year, and back to units of 6
 * decimals.
 */
const UNIT = 365n * 86_400n * 10n ** 16n

const DAY_MS = 86_400_000
/** Returns the first day of a month, or of a later month, as days since 1970. */
const firstDayOf = (name: string, later = 0) => {
  const [year, month] = name.split('-').map(Number)
  return Date.UTC(year!, month! - 1 + later, 1) / DAY_MS
}
/** Converts a timestamp to microseconds since 1970. */
const microsOf = (at: string) => BigInt(Date.parse(`${at.slice(0, 23)}Z`)) * 1000n + BigInt(at.slice(23, 26))
const dayText = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10)
/** Formats a decimal number without padding zeros. */
const decimal = (value: bigint, decimals: number) => {
  const digits = value.toString().padStart(decimals + 1, '0')
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, '')
}

/**
 * Computes the expected statement and its derivation from all movements of a customer and all settings in their
 * order. Undefined for a customer that held nothing by the period's end. Timestamps of one format sort as text.
 */
function replay(movements: Movement[], settings: Setting[], name: string): Derivation | undefined {
  const [first, next] = [firstDayOf(name), firstDayOf(name, 1)]
  const rewarded = movements.filter(({ asset }) => asset === 'USDG')
  if (!rewarded.some(({ at }) => at < dayText(next))) return undefined
  let products = 0n
  const days = []
  for (let place = first; place < next; place++) {
    const day = dayText(place)
    const [begin, end] = [BigInt(place * DAY_MS) * 1000n, BigInt((place + 1) * DAY_MS) * 1000n]
    // Each movement counts from its time, or from the day's beginning, to the day's end.
    let balanceMicros = 0n
    for (const { at, from, to, minor } of rewarded) {
      const moved = microsOf(at)
      if (moved >= end) continue
      const weight = end - (moved < begin ? begin : moved)
      if (from !== undefined) balanceMicros -= minor * weight
      if (to !== undefined) balanceMicros += minor * weight
    }
    let inForce: Setting | undefined
    for (const setting of settings) {
      if (setting.day <= day && (inForce === undefined || setting.day >= inForce.day)) inForce = setting
    }
    const rate = inForce?.rate ?? 0n
    const product = balanceMicros * rate
    products += product
    days.push({
      day,
      balance_seconds: decimal(balanceMicros, 12),
      average_balance: decimal(balanceMicros / 86_400n, 12),
      rate: decimal(rate, 10),
      product: decimal(product, 22),
      reward: decimal(product / (365n * 86_400n * 10n ** 10n), 12),
    })
  }
  return { days, products: decimal(products, 22), total: decimal(products / UNIT, 6) }
}

/** Invariant 1 for a statement's amount: the sum of the products is the exact value times 365. */
function requireRoundedDown(stated: string, products: string): void {
  const units = (text: string, decimals: number) => {
    const [whole, fraction = ''] = text.split('.')
    return BigInt(whole! + fraction.padEnd(decimals, '0'))
  }
  const shortfall = units(products, 22) - units(stated, 6) * UNIT
  expect(shortfall >= 0n && shortfall < UNIT).toBe(true)
}

// ---------------------------------------------------------------------------------------------- any past

const CUSTOMERS = 3
const PROFILES = 3

/** A day by its distance from the first day of the period or of the next one, mostly a small distance. */
const anyDay = (name: string) =>
  fc
    .tuple(
      fc.constantFrom(0, 1),
      fc.oneof(
        fc.integer({ min: -2, max: 2 }),
        fc.integer({ min: -31, max: 31 }),
        fc.integer({ min: -500, max: 60 }),
      ),
    )
    .map(([later, days]) => dayText(firstDayOf(name, later) + days))

/** Mostly the beginning or the end of a day. */
const anyTime = fc.oneof(
  fc.constantFrom('00:00:00.000000', '00:00:00.000001', '23:59:59.999999', '23:59:59.999998'),
  fc
    .tuple(fc.nat(DAY_MS - 1), fc.nat(999))
    .map(([ms, micros]) => new Date(ms).toISOString().slice(11, 23) + String(micros).padStart(3, '0')),
)

/**
 * The last moment before a period, its first and last moments, and the first moment after it, with several movements
 * at each.
 */
const boundariesOf = (name: string) =>
  [firstDayOf(name), firstDayOf(name, 1)].flatMap((day) => [
    `${dayText(day - 1)}T23:59:59.999999Z`,
    `${dayText(day)}T00:00:00.000000Z`,
  ])

interface Asked {
  at: string
  customer: number
  kind: 'DEPOSIT' | 'DEBIT' | 'INTERNAL'
  profiles: [number, number]
  asset: string
  minor: bigint
  /** The debited share of the available amount, in thousandths. */
  share: bigint
}

const anyMovement = (name: string): fc.Arbitrary<Asked> =>
  fc.record({
    at: fc.oneof(
      { weight: 3, arbitrary: fc.tuple(anyDay(name), anyTime).map(([day, time]) => `${day}T${time}Z`) },
      { weight: 1, arbitrary: fc.constantFrom(...boundariesOf(name)) },
    ),
    customer: fc.nat(CUSTOMERS - 1),
    kind: fc.constantFrom('DEPOSIT', 'DEPOSIT', 'DEBIT', 'INTERNAL'),
    profiles: fc.tuple(fc.nat(PROFILES - 1), fc.nat(PROFILES - 1)),
    asset: fc.constantFrom('USDG', 'USDG', 'USDG', 'PYUSD'),
    minor: fc.oneof(fc.bigInt({ min: 1n, max: 999n }), fc.bigInt({ min: 1n, max: 10n ** 15n })),
    share: fc.oneof(fc.constant(1000n), fc.bigInt({ min: 1n, max: 1000n })),
  })

const anySetting = (name: string): fc.Arbitrary<Setting> =>
  fc.record({
    day: anyDay(name),
    rate: fc.oneof(
      fc.constantFrom(0n, 1n, 376_000_000n, 10n ** 10n),
      fc.bigInt({ min: 0n, max: 10n ** 10n }),
    ),
  })

const anyPast = fc
  .constantFrom('2024-02', '2028-02', '2025-02', '2023-12', '2026-03', '2026-04')
  .chain((name) =>
    fc.record({
      name: fc.constant(name),
      movements: fc.array(anyMovement(name), { maxLength: 60, size: 'max' }).map(possible),
      settings: fc
        .array(anySetting(name), { minLength: 1, maxLength: 8, size: 'max' })
        // Some settings of one day.
        .map((settings) =>
          settings.map(({ day, rate }, n) => ({ day: n % 4 ? day : settings[0]!.day, rate })),
        ),
      later: fc.array(anySetting(name), { minLength: 1, maxLength: 4 }),
    }),
  )

/** Limits the debits to the available money; returns each customer's movements in order of time. */
function possible(asked: Asked[]): Movement[][] {
  const made: Movement[][] = Array.from({ length: CUSTOMERS }, () => [])
  const held = new Map<string, bigint>()
  const inOrder = [...asked].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  for (const { at, customer, kind, profiles, asset, minor, share } of inOrder) {
    const [one, other] = profiles
    if (kind === 'INTERNAL' && one === other) continue
    const keyOf = (profile: number) => `${customer} ${profile} ${asset}`
    const change = (profile: number, by: bigint) =>
      held.set(keyOf(profile), (held.get(keyOf(profile)) ?? 0n) + by)
    const amount = kind === 'DEPOSIT' ? minor : ((held.get(keyOf(one)) ?? 0n) * share) / 1000n
    if (amount === 0n) continue
    const from = kind === 'DEPOSIT' ? undefined : one
    const to = kind === 'DEPOSIT' ? one : kind === 'INTERNAL' ? other : undefined
    if (from !== undefined) change(from, -amount)
    if (to !== undefined) change(to, amount)
    const sides = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
    made[customer]!.push({ at, ...sides, asset, minor: amount })
  }
  return made
}

/** Posts a customer's movements, in one transaction. */
const post = (db: Database, { customer_id, profiles }: Holder, movements: Movement[]) =>
  transaction(db, async (tx) => {
    const profileAt = (place: number | undefined) => (place === undefined ? undefined : profiles[place])
    for (const { at, from, to, asset, minor } of movements) {
      const moved = { from: profileAt(from), to: profileAt(to), asset, minor }
      expect((await moveAt(tx, customer_id, momentAt(at), moved)).text).toBe(at)
    }
  })

/** Sets the rates one after the other. */
const setRates = async (db: Database | Transaction, settings: Setting[]) => {
  for (const { day, rate } of settings) await setRewardRate(db, day, decimal(rate, 10), TEST_ORIGIN)
}

describe('a statement', () => {
  test('equals a replay of every movement to the last decimal, with the same explanation', async () => {
    const world = await ownWorld()
    let stated = 0
    await fc.assert(
      fc.asyncProperty(anyPast, async ({ name, movements, settings, later }) => {
        await world.empty()
        stated += await requireReplayed(world, name, movements, settings, later)
      }),
      // The time limit leaves room to print the counterexample, as far as it is shrunk by then.
      // Fewer than ten cases may all have no statement.
      {
        ...runs(30),
        numRuns: Math.max(10, runs(30).numRuns),
        plugins: [fc.interruptAfterTimeLimit(45_000)],
      },
    )
    expect(stated).toBeGreaterThan(0)
  })

  /** Returns the number of statements with an amount above zero. */
  async function requireReplayed(
    { db }: World,
    name: string,
    movements: Movement[][],
    settings: Setting[],
    later: Setting[],
  ): Promise<number> {
    const expected = new Map<string, Derivation>()
    for (const own of movements) {
      const holder = await newHolder(db, PROFILES)
      await post(db, holder, own)
      const derivation = replay(own, settings, name)
      if (derivation !== undefined) expected.set(holder.customer_id, derivation)
    }
    await setRates(db, settings)

    const before = await everyTable(db)
    const period = month(name)
    if (settings.every(({ day }) => day > period.end)) {
      await expect(generateStatements(db, period)).rejects.toThrow(/no reward rate/)
      expect(await everyTable(db)).toEqual(before)
      return 0
    }
    const generated = await generateStatements(db, period)
    const totals = new Map([...expected].map(([id, { total }]) => [id, total]))
    expect(new Map(generated.map((made) => [made.customer_id, made.total_amount]))).toEqual(totals)
    expect(generated).toHaveLength(totals.size)
    expect(await statedIn(db, period)).toEqual(totals)

    await setRates(db, later)
    const done = await everyTable(db)
    const statements = await statementsOf(db)
    for (const { id, customer_id, total_amount_owed } of statements) {
      const { derivation } = (await explainStatement(db, id))!
      expect(derivation).toEqual(expected.get(customer_id))
      requireRoundedDown(total_amount_owed!, derivation.products)
    }
    expect(await generateStatements(db, period)).toEqual([])
    expect(await everyTable(db)).toEqual(done)
    return statements.filter(({ total_amount_owed }) => total_amount_owed !== '0').length
  }

  // The held amount is 365, so that a day at a rate of 1 earns 1.
  const HELD = 365_000_000n
  const ALWAYS_ONE: Setting[] = [{ day: '2000-01-01', rate: 10n ** 10n }]
  let world: World
  beforeAll(async () => {
    world = await newWorld()
    await setRates(world.db, ALWAYS_ONE)
  })
  afterAll(() => world.drop())

  /** Returns the amount of one customer's statement; undefined when there is none. */
  async function statedFor(db: Database, name: string, movements: Movement[]): Promise<string | undefined> {
    const holder = await newHolder(db)
    await post(db, holder, movements)
    const [generated] = await generateStatements(db, month(name), holder.customer_id)
    return generated?.total_amount
  }
  const deposit = (at: string, minor = HELD): Movement => ({ at, to: 0, asset: 'USDG', minor })

  test.each([
    ['2024-02', '2023-02-03T12:00:00.000000Z', '29'],
    ['2024-02', '2024-01-31T23:59:59.999999Z', '29'],
    ['2024-02', '2024-02-01T00:00:00.000000Z', '29'],
    ['2024-02', '2024-02-01T23:59:59.999999Z', '28'],
    ['2024-02', '2024-02-01T06:00:00.000000Z', '28.75'],
    ['2024-02', '2024-02-01T23:59:59.000000Z', '28.000011'],
    ['2024-02', '2024-02-02T00:00:00.000000Z', '28'],
    ['2024-02', '2024-02-28T23:59:59.999999Z', '1'],
    ['2024-02', '2024-02-29T00:00:00.000000Z', '1'],
    ['2024-02', '2024-02-29T23:59:59.999999Z', '0'],
    ['2024-02', '2024-03-01T00:00:00.000000Z', undefined],
    ['2025-02', '2025-01-31T23:59:59.999999Z', '28'],
    ['2025-02', '2025-02-28T23:59:59.999999Z', '0'],
    ['2025-02', '2025-03-01T00:00:00.000000Z', undefined],
    ['2028-02', '2028-01-31T23:59:59.999999Z', '29'],
    ['2028-02', '2028-02-29T23:59:59.999999Z', '0'],
    ['2023-12', '2023-12-31T23:59:59.999999Z', '0'],
    ['2023-12', '2024-01-01T00:00:00.000000Z', undefined],
    ['2024-01', '2023-12-31T23:59:59.999999Z', '31'],
  ])('of %s counts the time from the deposit at %s', async (name, at, total) => {
    expect(await statedFor(world.db, name, [deposit(at)])).toBe(total)
  })

  test.each([
    ['2024-01-31T23:59:59.999999Z', '0'],
    ['2024-02-01T12:00:00.000000Z', '0.5'],
    ['2024-02-01T23:59:59.999999Z', '0.999999'],
    ['2024-02-02T00:00:00.000000Z', '1'],
    ['2024-02-29T23:59:59.999999Z', '28.999999'],
    ['2024-03-01T00:00:00.000000Z', '29'],
  ])('of 2024-02 counts the time until the withdrawal at %s', async (at, total) => {
    const left: Movement = { at, from: 0, asset: 'USDG', minor: HELD }
    expect(await statedFor(world.db, '2024-02', [deposit('2024-01-05T00:00:00.000000Z'), left])).toBe(total)
  })

  test('counts the balance after several movements of one moment', async () => {
    const at = '2024-01-31T23:59:59.999999Z'
    const amounts = [10n, -10n, 1n, 1n, -1n, 5n, -5n]
    const movements = amounts.map((times): Movement => {
      const minor = HELD * (times < 0n ? -times : times)
      return times < 0n ? { at, from: 0, asset: 'USDG', minor } : deposit(at, minor)
    })
    expect(await statedFor(world.db, '2024-02', movements)).toBe('29')
  })

  test('earns almost nothing for money that is held one second a day', async () => {
    const seconds = Array.from({ length: 29 }, (_, n) => `2024-02-${String(n + 1).padStart(2, '0')}`)
    const movements = seconds.flatMap((day): Movement[] => [
      deposit(`${day}T23:59:59.000000Z`),
      { at: `${day}T23:59:59.999999Z`, from: 0, asset: 'USDG', minor: HELD },
    ])
    // 29 times 0.999999 s, where a whole day earns 1.
    expect(await statedFor(world.db, '2024-02', movements)).toBe('0.000335')
  })

  test.each([
    ['less than a unit in all', 12n, '0'],
    ['just a unit in all', 13n, '0.000001'],
    ['a unit a day', 365n, '0.000029'],
    ['less than a unit each day', 180n, '0.000014'],
  ])('is rounded down once and not day by day: %s', async (_, minor, total) => {
    expect(await statedFor(world.db, '2024-02', [deposit('2024-02-01T00:00:00.000000Z', minor)])).toBe(total)
  })

  test.each<[string, string, [day: string, rate: string][]]>([
    ['no rate on the first days', '14', [['2024-02-16', '1']]],
    ['a rate for the last day only', '1', [['2024-02-29', '1']]],
    [
      'a change in mid-month',
      '22',
      [
        ['2024-02-01', '1'],
        ['2024-02-16', '0.5'],
      ],
    ],
    [
      'set in any order',
      '22',
      [
        ['2024-03-01', '0.1'],
        ['2024-02-16', '0.5'],
        ['2023-12-24', '1'],
      ],
    ],
    [
      'of several of one day, the last',
      '29',
      [
        ['2024-02-16', '0.5'],
        ['2024-02-16', '0'],
        ['2024-02-01', '1'],
        ['2024-02-16', '1'],
      ],
    ],
  ])('counts day by day with the rate in force: %s', async (_, total, rates) => {
    const { db } = await ownWorld()
    for (const [day, rate] of rates) await setRewardRate(db, day, rate, TEST_ORIGIN)
    expect(await statedFor(db, '2024-02', [deposit('2024-01-05T00:00:00.000000Z')])).toBe(total)
  })

  test('is a record of its period, and exists only for customers that held money by its end', async () => {
    const { db } = await ownWorld('2028-03-01T00:00:00Z')
    await setRates(db, ALWAYS_ONE)
    const [holder, empty, late, other] = [
      await newHolder(db, 2),
      await newHolder(db),
      await newHolder(db),
      await newHolder(db),
    ]
    await post(db, holder, [
      deposit('2028-02-10T10:00:00.000000Z'),
      { ...deposit('2028-02-20T10:00:00.000000Z'), to: 1 },
    ])
    await post(db, late, [deposit('2028-03-01T00:00:00.000000Z')])
    await post(db, other, [{ ...deposit('2028-02-10T10:00:00.000000Z'), asset: 'PYUSD' }])
    const period = month('2028-02')
    for (const { customer_id } of [empty, late, other])
      expect(await generateStatements(db, period, customer_id)).toEqual([])
    const ref_id = `USDG_REWARDS-${holder.customer_id}-2028-02`
    expect(await generateStatements(db, period)).toEqual([
      { customer_id: holder.customer_id, ref_id, total_amount: '29.166666' },
    ])
    const statements = await statementsOf(db)
    expect(statements).toEqual([
      {
        id: expect.any(String) as string,
        ref_id,
        customer_id: holder.customer_id,
        type: 'STATEMENT_TYPE_USDG_REWARD',
        product: 'USDG_REWARDS',
        status: 'STATEMENT_STATUS_GENERATED',
        asset: 'USDG',
        total_amount_owed: '29.166666',
        amount_paid: '0',
        period_start: '2028-02-01T00:00:00.000000Z',
        period_end: '2028-02-29T23:59:59.999999Z',
        created_at: expect.stringMatching(/^2028-03-01T00:00:00/) as string,
        generated_at: expect.stringMatching(/^2028-03-01T00:00:00/) as string,
        paid_at: null,
      },
    ])
    expect(statements[0]!.created_at < statements[0]!.generated_at!).toBe(true)
  })

  test('is generated for a single customer on request', async () => {
    const { db } = await ownWorld()
    await setRates(db, ALWAYS_ONE)
    const holders = [await newHolder(db), await newHolder(db)]
    for (const holder of holders) await post(db, holder, [deposit('2024-02-10T00:00:00.000000Z')])
    await generateStatements(db, month('2024-02'), holders[1]!.customer_id)
    expect([...(await statedIn(db, month('2024-02'))).keys()]).toEqual([holders[1]!.customer_id])
  })

  test('does not change after a later backdated movement', async () => {
    const { db } = world
    const holder = await newHolder(db, 2)
    await post(db, holder, [deposit('2024-02-10T00:00:00.000000Z')])
    await generateStatements(db, month('2024-02'), holder.customer_id)
    await post(db, holder, [{ ...deposit('2024-02-05T00:00:00.000000Z'), to: 1 }])
    const before = await everyTable(db)
    expect(await generateStatements(db, month('2024-02'), holder.customer_id)).toEqual([])
    expect(await everyTable(db)).toEqual(before)
  })

  test('that is unknown or not generated yet is not explained', async () => {
    const { db } = world
    const { customer_id } = await newHolder(db)
    const id = newId(await transaction(db, readClock))
    expect(await explainStatement(db, id)).toBeUndefined()
    await db.query(
      `insert into statements (customer_id, id, ref_id, type, product, status, asset, period_start, period_end, created_at)
       values ($1, $2, 'x', 'x', 'x', 'STATEMENT_STATUS_INITIATED', 'USDG', $3, $4, $4)`,
      [customer_id, id, month('2024-02').start, month('2024-02').end],
    )
    expect(await explainStatement(db, id)).toBeUndefined()
  })
})

// ---------------------------------------------------------------------------------------------- open transactions

describe('a transaction that is open at the end of the period', () => {
  const PERIOD = month('2027-05')
  const LAST = '2027-05-31T23:59:59.999999Z'
  const minor = 365_000_000n
  /** An amount that earns 1 in the last microsecond of the period. */
  const earnsInAMicrosecond = minor * 86_400_000_000n

  /** Opens a transaction of another process, which may never end. */
  async function open(db: Database) {
    const tx = await db.connect()
    await begin(tx, 'begin')
    let isOpen = true
    const end = async (how: 'commit' | 'rollback') => {
      if (isOpen) await (how === 'commit' ? commit(tx) : tx.query(how))
      if (isOpen) tx.release()
      isOpen = false
    }
    atEnd(() => end('rollback'))
    return { tx, end }
  }

  async function requireWaiting(work: Promise<unknown>): Promise<void> {
    const ended = work.then(
      () => 'ended',
      () => 'ended',
    )
    expect(await Promise.race([ended, pause(150, 'waiting')])).toBe('waiting')
  }

  const cases = ['opened', 'posted'].flatMap((stage) =>
    ['has a balance', 'has none'].flatMap((balance) =>
      (['commit', 'rollback'] as const).map((ending) => [stage, balance, ending] as const),
    ),
  )
  test.each(cases)(
    'generation waits for a movement, %s, of a profile that %s: its %s',
    async (stage, balance, ending) => {
      const { db, setClock } = await ownWorld(LAST)
      await setRewardRate(db, '2027-05-01', '1', TEST_ORIGIN)
      const { customer_id, profile_id: to } = await newHolder(db)
      const other = await newHolder(db)
      if (balance === 'has a balance') {
        await move(db, customer_id, momentAt('2027-04-05T12:00:00.000000Z'), { to, minor })
      }
      await setClock(LAST)
      const { tx, end } = await open(db)
      const moveNow = await openMovement(tx, customer_id, undefined, { to, minor: earnsInAMicrosecond })
      if (stage === 'posted') expect((await moveNow()).text).toBe(LAST)

      await setClock(PERIOD.next)
      const generating = generateStatements(db, PERIOD)
      await requireWaiting(generating)
      expect(await statementsOf(db)).toEqual([])
      // Meanwhile other movements are neither blocked nor counted.
      const next = await move(db, other.customer_id, undefined, { to: other.profile_id, minor })
      expect(next.text >= PERIOD.next).toBe(true)
      if (stage === 'opened') expect((await moveNow()).text).toBe(LAST)
      await end(ending)

      const before = balance === 'has a balance' ? 31 : undefined
      const total = ending === 'commit' ? (before ?? 0) + 1 : before
      const generated = await generating
      expect(generated.map(({ total_amount }) => total_amount)).toEqual(
        total === undefined ? [] : [String(total)],
      )
      expect(await generateStatements(db, PERIOD)).toEqual([])
      expect((await verify(db)).disagreements).toEqual([])
    },
  )

  test('generation waits for a backdated movement as well', async () => {
    const { db } = await ownWorld(PERIOD.next)
    await setRewardRate(db, '2027-05-01', '1', TEST_ORIGIN)
    const { customer_id, profile_id: to } = await newHolder(db)
    const { tx, end } = await open(db)
    await moveAt(tx, customer_id, momentAt('2027-05-22T00:00:00.000000Z'), { to, minor })
    const generating = generateStatements(db, PERIOD)
    await requireWaiting(generating)
    await end('commit')
    expect((await generating).map(({ total_amount }) => total_amount)).toEqual(['10'])
  })

  test('generation waits for a rate, so that the explanation uses the rates of the statement', async () => {
    const { db } = await ownWorld(PERIOD.next)
    await setRewardRate(db, '2027-05-01', '1', TEST_ORIGIN)
    const { customer_id, profile_id: to } = await newHolder(db)
    await move(db, customer_id, momentAt('2027-04-05T12:00:00.000000Z'), { to, minor })
    const { tx, end } = await open(db)
    await setRewardRate(tx, '2027-05-31', '0', TEST_ORIGIN)
    const generating = generateStatements(db, PERIOD)
    await requireWaiting(generating)
    await end('commit')
    expect((await generating).map(({ total_amount }) => total_amount)).toEqual(['30'])
    const { derivation } = (await explainStatement(db, (await statementsOf(db))[0]!.id))!
    expect(derivation.total).toBe('30')
  })
})

// ---------------------------------------------------------------------------------------------- refusals, the last month

describe('a refusal changes nothing:', () => {
  test.each([
    ['2028-02', '2028-02-29T23:59:59.999999Z', /^the period 2028-02 has not ended$/],
    ['2028-02', '2026-11-21T12:00:00.000000Z', /^the period 2028-02 has not ended$/],
    ['2027-12', '2027-12-31T23:59:59.999999Z', /^the period 2027-12 has not ended$/],
    ['2024-02', '2028-02-29T23:59:59.999999Z', /^no reward rate is in force in 2024-02/],
  ])('%s at %s', async (name, now, message) => {
    const { db, setClock } = await ownWorld()
    await setRewardRate(db, name === '2024-02' ? '2024-03-01' : '2024-01-01', '1', TEST_ORIGIN)
    const { customer_id, profile_id: to } = await newHolder(db)
    await move(db, customer_id, momentAt('2024-01-05T12:00:00.000000Z'), { to, minor: 1_000_000n })
    const before = await everyTable(db)
    for (const customer of [undefined, customer_id]) {
      await setClock(now)
      await expect(generateStatements(db, month(name), customer)).rejects.toThrow(message)
    }
    expect(await everyTable(db)).toEqual(before)
  })
})

describe('a period', () => {
  test('is a month from its first microsecond to its last', () => {
    expect(periodOf('2028-02')).toEqual({
      name: '2028-02',
      start: '2028-02-01T00:00:00.000000Z',
      next: '2028-03-01T00:00:00.000000Z',
      end: '2028-02-29T23:59:59.999999Z',
    })
    expect(periodOf('2999-12')!.next).toBe('3000-01-01T00:00:00.000000Z')
  })

  test.each(['', '2024', '2024-00', '2024-13', '2024-2', '2024-02-01', '0000-01', '9999-12', '+2024-01'])(
    'is not %j',
    (name) => expect(periodOf(name)).toBeUndefined(),
  )
})

describe('the last ended month', () => {
  test.each([
    ['2028-02-29T23:59:59.999999Z', '2028-01'],
    ['2028-03-01T00:00:00.000000Z', '2028-02'],
    ['2028-03-31T12:00:00.000000Z', '2028-02'],
    ['2028-01-01T00:00:00.000000Z', '2027-12'],
  ])('at %s is %s', async (now, name) => {
    const { db, setClock } = await ownWorld()
    const { customer_id, profile_id: to } = await newHolder(db)
    await move(db, customer_id, momentAt(`${name}-05T12:00:00.000000Z`), { to, minor: 1_000_000n })
    const generateAtThatMoment = async (seenTo?: string) => {
      await setClock(now)
      return generateEndedMonths(partsOf(db)[0]!, seenTo)
    }

    await setRewardRate(db, month(name).next.slice(0, 10), '0.5', TEST_ORIGIN)
    const before = await everyTable(db)
    expect(await generateAtThatMoment()).toBeUndefined()
    expect(await everyTable(db)).toEqual(before)

    // By this clock, the rate must have been set before; otherwise it would not count.
    await setClock('2024-01-01T00:00:00Z')
    await setRewardRate(db, '2024-01-01', '1', TEST_ORIGIN)
    const made = await generateAtThatMoment()
    expect(made).toMatchObject({ period: name, generated: [{ customer_id }] })
    const done = await everyTable(db)
    expect(done.statements).toHaveLength(1)
    expect(await generateAtThatMoment()).toEqual({ period: name, generated: [] })
    expect(await everyTable(db)).toEqual(done)
    expect(await generateAtThatMoment(name)).toBeUndefined()
    expect(await everyTable(db)).toEqual(done)
  })

  test('comes after every ended month before it: each is generated once, oldest first, and paid', async () => {
    const { db, setClock } = await ownWorld('2027-01-01T00:00:00Z')
    const [part] = partsOf(db)
    const told = async () => (await checkStatements(db)).map(({ result, says }) => `${result} ${says}`)
    await setRewardRate(db, '2027-11-01', '1', TEST_ORIGIN)
    const { customer_id: early, profile_id: to } = await newHolder(db)
    const { customer_id: late, profile_id: other } = await newHolder(db)
    const minor = 365_000_000n
    await move(db, early, momentAt('2027-05-05T12:00:00.000000Z'), { to, minor })
    await move(db, late, momentAt('2028-01-20T12:00:00.000000Z'), { to: other, minor })
    const generatedAt = async (now: string) => {
      await setClock(now)
      return (await generateEndedMonths(part!))!.generated.map(({ ref_id }) => ref_id)
    }
    const of = (customer: string, name: string) => `USDG_REWARDS-${customer}-${name}`

    await setClock('2027-12-31T23:30:00Z')
    expect(await told()).toEqual([`WARN customer ${early} held USDG, and has no statement of 2027-11`])
    expect(await generatedAt('2028-04-01T00:00:01Z')).toEqual([
      ...['2027-11', '2027-12'].map((name) => of(early, name)),
      ...['2028-01', '2028-02', '2028-03'].flatMap((name) => [of(early, name), of(late, name)]),
    ])
    // A worker that was down over the ends of two months.
    expect(await generatedAt('2028-06-03T08:00:00Z')).toEqual(
      ['2028-04', '2028-05'].flatMap((name) => [of(early, name), of(late, name)]),
    )
    expect(await generatedAt('2028-06-03T08:00:00Z')).toEqual([])
    expect(await told()).toEqual(['OK no ended month is missing'])
    const paid = await payStatements(db)
    expect(paid.map(({ ref_id }) => ref_id).sort()).toEqual(
      [...new Set((await statementsOf(db)).map(({ ref_id }) => ref_id))].sort(),
    )
    expect(paid).toHaveLength(12)
  })

  test('is generated by the worker', async () => {
    const { db } = await ownWorld('2028-03-01T00:00:00.000000Z')
    await setRewardRate(db, '2028-02-01', '1', TEST_ORIGIN)
    const { customer_id, profile_id: to } = await newHolder(db)
    await move(db, customer_id, momentAt('2028-02-05T12:00:00.000000Z'), { to, minor: 365_000_000n })
    const log = pino({ level: 'silent' })
    const worker = startWorker({
      db,
      ledger: new Ledger(db),
      networks: new Map(),
      settings: testSettings(),
      log,
    })
    await expect
      .poll(() => statedIn(db, month('2028-02')), { timeout: 10_000 })
      .toEqual(new Map([[customer_id, '24.5']]))
    await worker.stop()
  })
})

// ---------------------------------------------------------------------------------------------- failures, several workers

describe('with any number of simultaneous generators', () => {
  const NAME = '2024-02'
  const PERIOD = month(NAME)
  const SETTINGS: Setting[] = [
    { day: '2024-01-01', rate: 376_000_000n },
    { day: '2024-02-16', rate: 410_000_000n },
  ]

  async function ratedWorld(): Promise<World> {
    const world = await ownWorld()
    await setRates(world.db, SETTINGS)
    return world
  }

  let made = 0n
  /** Creates customers with some movements; adds each one's expected statement to `expected`. */
  async function addHolders(db: Database, count: number, expected: Map<string, string>): Promise<void> {
    for (let n = 0; n < count; n++) {
      const holder = await newHolder(db, 2)
      const minor = 1_000_000_007n * ++made
      const movements: Movement[] = [
        { at: '2024-01-20T00:00:00.000000Z', to: 0, asset: 'USDG', minor },
        { at: '2024-02-12T23:59:59.999999Z', from: 0, to: 1, asset: 'USDG', minor: minor / 2n },
        { at: '2024-02-20T00:00:00.000000Z', from: 1, asset: 'USDG', minor: minor / 3n },
      ]
      await post(db, holder, movements)
      expected.set(holder.customer_id, replay(movements, SETTINGS, NAME)!.total)
    }
  }

  /** Requires that all statements are generated as expected and do not change. */
  async function requireGenerated(db: Database, expected: Map<string, string>): Promise<void> {
    expect(await statedIn(db, PERIOD)).toEqual(expected)
    const statements = await statementsOf(db)
    expect(statements).toHaveLength(expected.size)
    expect(new Set(statements.map(({ status }) => status))).toEqual(new Set(['STATEMENT_STATUS_GENERATED']))
    const before = await everyTable(db)
    expect(await generateStatements(db, PERIOD)).toEqual([])
    expect(await everyTable(db)).toEqual(before)
  }

  const generatedIn = async (db: Database) =>
    (await statementsOf(db)).filter(({ status }) => status === 'STATEMENT_STATUS_GENERATED')

  test('several workers at once generate each statement once', async () => {
    const { db, url } = await ratedWorld()
    const other = openDatabase(url, { max: 5, onError: () => undefined })
    const expected = new Map<string, string>()
    for (let round = 1; round <= 5; round++) {
      const before = await statementsOf(db)
      await addHolders(db, 6, expected)
      const lists = await Promise.all([db, other, db, other].map((pool) => generateStatements(pool, PERIOD)))
      const stated = lists.flat().map(({ customer_id, total_amount }) => [customer_id, total_amount] as const)
      expect(stated).toHaveLength(6)
      for (const [id, total] of stated) expect(total).toBe(expected.get(id))
      expect(await statementsOf(db)).toEqual(expect.arrayContaining(before))
      await requireGenerated(db, expected)
    }
    await other.end()
  })

  test.each(FAILURES)('a worker that dies %s any one step changes nothing', async (failure) => {
    const { db } = await ratedWorld()
    const expected = new Map<string, string>()
    await dieAtEachStep(failure, 15, async (failures) => {
      await addHolders(db, 2, expected)
      await generateStatements(failures.database(db), PERIOD).catch(() => undefined)
      const before = await generatedIn(db)
      await generateStatements(db, PERIOD)
      expect(await statementsOf(db)).toEqual(expect.arrayContaining(before))
      await requireGenerated(db, expected)
    })
  })

  test('a failure for one customer delays no other', async () => {
    const { db } = await ratedWorld()
    const expected = new Map<string, string>()
    await addHolders(db, 3, expected)
    const [first] = [...expected.keys()].sort()
    const failing = {
      query: db.query.bind(db),
      connect: async () =>
        sendingBy(await db.connect(), (send, _, values) =>
          (values as unknown[] | undefined)?.[0] === first
            ? Promise.reject(new Error('not this one'))
            : send(),
        ),
    } as unknown as Database
    await expect(generateStatements(failing, PERIOD)).rejects.toThrow(/^1 statements were not generated$/)
    const others = new Map([...expected].filter(([id]) => id !== first))
    expect(await statedIn(db, PERIOD)).toEqual(others)
    await generateStatements(db, PERIOD)
    await requireGenerated(db, expected)
  })

  test('several workers that die at any step change nothing', async () => {
    const { db, url } = await ratedWorld()
    const other = openDatabase(url, { max: 5, onError: () => undefined })
    const expected = new Map<string, string>()
    const failing = fc.array(
      fc.oneof(
        { weight: 8, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom<Failure>('BEFORE', 'AFTER') },
      ),
      { minLength: 40, maxLength: 80, size: 'max' },
    )
    await fc.assert(
      fc.asyncProperty(failing, fc.integer({ min: 1, max: 4 }), async (failing, workers) => {
        await addHolders(db, 2, expected)
        const failures = new Failures((step) => failing[step])
        await Promise.all(
          Array.from({ length: workers }, (_, n) =>
            generateStatements(failures.database(n % 2 ? other : db), PERIOD).catch(() => undefined),
          ),
        )
        const before = await generatedIn(db)
        await generateStatements(other, PERIOD)
        expect(await statementsOf(db)).toEqual(expect.arrayContaining(before))
        await requireGenerated(db, expected)
      }),
      runs(20),
    )
    await other.end()
  })
})
