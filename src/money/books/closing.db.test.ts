import type { Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { move, openMovement } from '../../../test/history.ts'
import { ownDatabase, type TestDatabase } from '../../../test/support.ts'
import { openDatabase, transaction, type Database } from '../../db/database.ts'
import { momentAt, momentOfMicros, type Moment } from '../../db/ids.ts'
import { advanceClock } from '../../db/sandbox-clock.ts'
import { createCustomer } from '../records/customer.ts'
import { verify } from '../verify/verify.ts'
import { closingOf } from './closing.ts'
import { readProfileSums, readSums, WHOLE_LEDGER } from './book.ts'

const DAY = 86_400_000_000
const ASSETS = ['USD', 'USDG', 'BTC']

let database: TestDatabase
let db: Database
const customers: { customer_id: string; profile_id: string }[] = []
/** The beginning of today, by the database's clock; of yesterday just after midnight, when yesterday is not closed yet. */
let today: number

const at = momentOfMicros
const dayOf = (micros: number) => at(micros).text.slice(0, 10)

beforeAll(async () => {
  database = await ownDatabase()
  // A clock that moves.
  db = openDatabase(database.url, { max: 10, sandbox: true, onError: () => undefined })
  await database.owner.query('grant truncate on entries, audit_log, events to current_user')
  for (const name of ['First', 'Second']) customers.push(await createCustomer(db, name))
  const { rows } = await db.query<{ now: string }>('select clock_timestamp() as now')
  today = Math.floor((momentAt(rows[0]!.now).micros - 360_000_000) / DAY) * DAY
})

/** A ledger without records, as at the beginning. */
const empty = () =>
  database.owner.query('truncate entries, balances, day_sums, closed_days, transfers, events, audit_log')

afterAll(() => db.end())

interface Made {
  who: number
  asset: number
  minor: number
  /** Microseconds before the beginning of today. */
  before: number
}
const made = fc.record({
  who: fc.integer({ min: 0, max: 1 }),
  asset: fc.integer({ min: 0, max: ASSETS.length - 1 }),
  minor: fc.integer({ min: 1, max: 10_000 }),
  before: fc.oneof(
    fc.constantFrom(0, 1, DAY, DAY + 1, DAY - 1, 2 * DAY),
    fc.integer({ min: 0, max: 5 * DAY }),
  ),
})

async function give({ who, asset, minor, before }: Made): Promise<Moment> {
  const { customer_id, profile_id } = customers[who]!
  return move(db, customer_id, at(today - before), {
    to: profile_id,
    asset: ASSETS[asset]!,
    minor: BigInt(minor),
  })
}

/** Closes all days that can be closed: another round ends a day that the one before has waited for. */
async function closeAll(closing = closingOf(db)): Promise<string[]> {
  const days: string[] = []
  await expect
    .poll(
      async () => {
        days.push(...(await closing()).map(({ day }) => day))
        const { rows } = await db.query<{ open: string }>(`
          select count(*) as open from closed_days where digest is null or (select max(day) from closed_days) < '${dayOf(today - 1)}'`)
        return rows[0]!.open
      },
      { timeout: 30_000 },
    )
    .toBe('0')
  return days
}

/** The sums of the entries themselves. */
async function fromEntries(from: Moment, to: Moment, customerId?: string) {
  const { rows } = await db.query<Record<string, string>>(
    `
    select account, asset, trim_scale(coalesce(sum(amount) filter (where created_at < $1), 0))::text as opening,
           trim_scale(coalesce(-sum(amount) filter (where created_at >= $1 and amount < 0), 0))::text as debit,
           trim_scale(coalesce(sum(amount) filter (where created_at >= $1 and amount > 0), 0))::text as credit,
           trim_scale(sum(amount))::text as closing
    from entries
    where created_at < $2 and ($3::uuid is null or customer_id = $3)
    group by account, asset`,
    [from.text, to.text, customerId],
  )
  return rows.map((row) => Object.values(row).join(' ')).sort()
}

async function reported(from: Moment, to: Moment, customerId?: string) {
  const { items } = await readSums({ db, customerId }, { from, to })
  const plain = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)
  return items
    .map(({ account, asset, ...figures }) => [account, asset, ...Object.values(figures).map(plain)].join(' '))
    .sort()
}

async function expectEqualAt(moments: readonly number[]): Promise<void> {
  for (const to of moments)
    for (const from of [0, ...moments.filter((moment) => moment <= to)].slice(0, 4))
      for (const customerId of [undefined, customers[0]!.customer_id])
        expect(await reported(at(from), at(to), customerId)).toEqual(
          await fromEntries(at(from), at(to), customerId),
        )
}

async function expectClean(): Promise<void> {
  const { disagreements } = await verify(db)
  expect(disagreements.filter(({ rule }) => rule.includes('closed day'))).toEqual([])
}

test('reports equal the entries at each moment, over random histories with closed days', async () => {
  const property = fc.asyncProperty(
    fc.array(made, { minLength: 1, maxLength: 12 }),
    fc.array(made, { minLength: 1, maxLength: 6 }),
    fc.array(fc.integer({ min: 0, max: 5 * DAY }), { minLength: 2, maxLength: 3 }),
    async (first, second, moments) => {
      await empty()
      for (const movement of first.toSorted((a, b) => b.before - a.before)) await give(movement)
      await closeAll()
      const closedAt = [0, 1, DAY, 2 * DAY + 1].map((before) => today - before)
      const before = await reported(at(0), at(today))
      // What is posted later is in no closed day, whatever moment it asks for.
      const { rows } = await db.query<{ until: string | null }>('select max(until) as until from closed_days')
      const until = rows[0]!.until === null ? 0 : today
      for (const movement of second) expect((await give(movement)).micros).toBeGreaterThanOrEqual(until)
      if (until === today) expect(await reported(at(0), at(today))).toEqual(before)
      await expectEqualAt([...moments.map((back) => today - back), ...closedAt, today + DAY])
      await expectClean()
    },
  )
  await fc.assert(property, { numRuns: 8 })
})

describe('a day ends', () => {
  const yesterday = () => at(today - 1_000_000)
  const movement = () => ({ to: customers[0]!.profile_id, asset: 'USD', minor: 100n })
  test('a transaction that began before it is waited for, and counts; later ones are dated after it', async () => {
    await empty()
    await give({ who: 0, asset: 0, minor: 5, before: 10 })
    const closing = closingOf(db)
    await transaction(db, async (tx) => {
      const post = await openMovement(tx, customers[0]!.customer_id, yesterday(), movement())
      expect(await closing()).toEqual([])
      expect(await closingOf(db)()).toEqual([])
      const { micros } = await move(db, customers[1]!.customer_id, yesterday(), {
        to: customers[1]!.profile_id,
        asset: 'USD',
        minor: 7n,
      })
      expect(micros).toBeGreaterThanOrEqual(today)
      expect((await post()).micros).toBeLessThan(today)
    })
    await closeAll(closing)
    await expectEqualAt([today, today - 1])
    await expectClean()
  })

  /** A pool whose sessions end before their statement of this number, as when the process dies. */
  function dying(before: number): Database {
    let left = before
    const connect = async () => {
      const session = await db.connect()
      const query = session.query.bind(session) as (...given: unknown[]) => Promise<unknown>
      session.query = ((...given: unknown[]) => {
        if (left-- === 0)
          (session as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
        return query(...given)
      }) as never
      const release = session.release.bind(session)
      session.release = (broken) => {
        session.query = query as never
        release(broken)
      }
      session.on('error', () => undefined)
      return session
    }
    return Object.assign(Object.create(db) as Database, { connect, query: db.query.bind(db) })
  }

  test('it is closed once when the worker dies before any statement of its sums', async () => {
    for (let step = 0; ; step++) {
      await empty()
      await give({ who: 0, asset: 0, minor: 5, before: 10 })
      const died = await closingOf(dying(step))().then(
        () => false,
        () => true,
      )
      await closeAll()
      await expectEqualAt([today])
      await expectClean()
      const { rows } = await db.query(
        `select 1 from audit_log where subject_type = 'day' and subject_id = $1 and created_at >= (select min(closed_at) from closed_days)`,
        [dayOf(today - 1)],
      )
      expect(rows.length).toBeLessThanOrEqual(1)
      if (!died) {
        expect(step).toBeGreaterThan(4)
        break
      }
    }
  })

  test('two workers close it once', async () => {
    await empty()
    await give({ who: 0, asset: 0, minor: 5, before: 3 * DAY })
    const rounds = await Promise.all([closeAll(), closeAll(), closeAll()])
    const days = rounds.flat()
    expect(days.toSorted()).toEqual([...new Set(days)].toSorted())
    await expectClean()
  })

  test('whoever changes a closed day is found', async () => {
    await empty()
    await give({ who: 0, asset: 0, minor: 5, before: 2 * DAY })
    await closeAll()
    await expectClean()
    // A record of the audit log that nobody closed a day with, which a thief of the role can add.
    await database.owner.query(`
      create table kept_log as select * from audit_log where action = 'day.close' limit 1;
      update kept_log set id = gen_random_uuid(), subject_id = 'no day';
      insert into audit_log select * from kept_log`)
    expect((await verify(db)).disagreements.map(({ detail }) => detail)).toContainEqual(
      expect.stringContaining('no day: closed with none'),
    )
    await database.owner.query(`delete from audit_log where subject_id = 'no day'; drop table kept_log`)
    const changes = [
      'update day_sums set debit = debit + 1, credit = credit + 1',
      `insert into day_sums select customer_id, day, 'rewards', asset, debit, credit from day_sums where account = 'bank'`,
      'delete from day_sums',
      `update day_sums set debit = debit + 1 where customer_id = '${WHOLE_LEDGER}'`,
      `update closed_days set digest = 'x'`,
      `insert into closed_days (day, until) values ('2099-01-01', '2099-01-02T00:00:00Z')`,
      `insert into closed_days (day, until) select max(day) + 1, '2099-01-02T00:00:00Z' from closed_days`,
      'delete from closed_days where day = (select min(day) from closed_days where day > (select min(day) from closed_days))',
    ]
    for (const change of changes) {
      await database.owner.query(
        `create table kept_sums as select * from day_sums; create table kept_days as select * from closed_days`,
      )
      await database.owner.query(change)
      const { disagreements } = await verify(db)
      expect(disagreements.map(({ rule }) => rule).join(), change).toContain('closed day')
      await database.owner
        .query(`truncate day_sums, closed_days; insert into day_sums select * from kept_sums;
        insert into closed_days select * from kept_days; drop table kept_sums, kept_days`)
      await expectClean()
    }
  })
})

describe('the clock moves', () => {
  afterEach(() => database.owner.query('drop schema if exists sandbox_clock cascade'))

  test('forward and back: nothing is dated in a closed day, and no report changes', async () => {
    await empty()
    await give({ who: 0, asset: 0, minor: 5, before: DAY })
    await advanceClock(db, database.ownerUrl, 'P2D')
    await closeAll()
    // The process's clock does not agree yet.
    expect(await closingOf(db)()).toEqual([])
    const ahead = closingOf(db, undefined, () => Date.now() + 2 * 86_400_000)
    await expect
      .poll(async () => {
        await ahead()
        const { rows } = await db.query<{ last: string }>(
          'select max(day)::text as last from closed_days where digest is not null',
        )
        return rows[0]!.last
      })
      .toBe(dayOf(today + DAY))
    const closed = await reported(at(0), at(today + 2 * DAY))
    await advanceClock(db, database.ownerUrl, 'P-2D')
    const { customer_id, profile_id } = customers[0]!
    const posted = await move(db, customer_id, undefined, { to: profile_id, asset: 'USD', minor: 9n })
    expect(posted.micros).toBe(today + 2 * DAY)
    expect(await reported(at(0), at(today + 2 * DAY))).toEqual(closed)
    await expectClean()
    expect((await verify(db)).disagreements).toEqual([])
  })
})

test('each profile has its balances over a time', async () => {
  await empty()
  for (const before of [3 * DAY, 2 * DAY, 10]) await give({ who: 0, asset: 1, minor: 100, before })
  const found = []
  for await (const page of readProfileSums(
    { db, customerId: undefined },
    { from: at(today - 2 * DAY), to: at(today - 5) },
  ))
    found.push(...page)
  const { customer_id, profile_id } = customers[0]!
  expect(found).toEqual([
    {
      customer_id,
      profile_id,
      asset: 'USDG',
      opening: '0.0001',
      debit: '0',
      credit: '0.0002',
      closing: '0.0003',
    },
  ])
})
