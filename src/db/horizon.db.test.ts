/*
 * Invariants of the horizon:
 * 1. no record whose time is before it can appear later: while a transaction is under way that may insert one, the horizon is
 *    not after that transaction's beginning;
 * 2. it is read again by each statement, and never moves back;
 * 3. transactions that cannot write do not hold it;
 * 4. where PostgreSQL does not show the transactions, there is no horizon.
 */
import { expect, onTestFinished, test } from 'vitest'
import pg from 'pg'
import { untilOneWaits } from '../../test/cluster.ts'
import { asAdmin, ownDatabase } from '../../test/support.ts'
import { openDatabase, OWNER, READER, transaction, WRITER, type Database } from './database.ts'
import { HorizonUnknown, readHorizon } from './horizon.ts'
import { readClock } from './ids.ts'

const database = await ownDatabase(4)

const clockOf = (db: Database) => transaction(db, readClock)

/** A pool of one connection of its own, closed at the end of the test. */
function poolOf(url: string, applicationName?: string): Database {
  const pool = openDatabase(url, {
    max: 1,
    onError: () => undefined,
    ...(applicationName !== undefined && { applicationName }),
  })
  onTestFinished(() => pool.end())
  return pool
}

test('without a transaction, it is the clock', async () => {
  const { db } = database
  const before = await clockOf(db)
  const horizon = await readHorizon(db)
  const after = await clockOf(db)
  expect(horizon.micros).toBeGreaterThan(before.micros)
  expect(horizon.micros).toBeLessThan(after.micros)
  expect(horizon.readAt.micros).toBe(horizon.micros)
})

test('it stays at the beginning of a transaction under way, and moves on when that ends', async () => {
  const { db } = database
  for (const end of ['commit', 'rollback']) {
    const before = await clockOf(db)
    const tx = await db.connect()
    await tx.query('begin')
    const { micros } = await readClock(tx)
    const seen = []
    for (let reads = 0; reads < 3; reads++) seen.push(await readHorizon(db))
    for (const { micros: horizon, readAt } of seen) {
      expect(horizon).toBeGreaterThan(before.micros)
      expect(horizon).toBeLessThanOrEqual(micros)
      expect(readAt.micros).toBeGreaterThan(micros)
    }
    expect(new Set(seen.map((one) => one.micros)).size).toBe(1)
    await tx.query(end)
    tx.release()
    expect((await readHorizon(db)).micros).toBeGreaterThan(seen.at(-1)!.readAt.micros)
  }
})

test('two transactions hold it at the earlier one', async () => {
  const { db } = database
  const [first, second] = [await db.connect(), await db.connect()]
  await first.query('begin')
  const { micros } = await readClock(first)
  await second.query('begin')
  expect((await readHorizon(db)).micros).toBeLessThanOrEqual(micros)
  await second.query('commit')
  second.release()
  expect((await readHorizon(db)).micros).toBeLessThanOrEqual(micros)
  await first.query('commit')
  first.release()
  expect((await readHorizon(db)).micros).toBeGreaterThan(micros)
})

test('in a transaction that has looked before, it does not pass a transaction that began meanwhile', async () => {
  const { db } = database
  await transaction(db, async (tx) => {
    const first = await readHorizon(tx)
    const other = await db.connect()
    await other.query('begin')
    const { micros } = await readClock(other)
    // PostgreSQL repeats the sessions that it has collected in this transaction.
    const second = await readHorizon(tx)
    expect(second.micros).toBe(first.micros)
    expect(second.micros).toBeLessThan(micros)
    await other.query('commit')
    other.release()
  })
})

test('a transaction that cannot write does not hold it', async () => {
  const { db } = database
  const began = await clockOf(db)
  await transaction(
    db,
    async (tx) => {
      await tx.query('select from profiles')
      const { rows } = await tx.query(
        "select current_setting('application_name') as name, current_setting('transaction_read_only') as read_only",
      )
      expect(rows).toEqual([{ name: READER, read_only: 'on' }])
      const { micros, readAt } = await readHorizon(db)
      expect(micros).toBe(readAt.micros)
      expect(micros).toBeGreaterThan(began.micros)
    },
    'isolation level repeatable read read only',
  )
  // The same connection counts again in its next transaction.
  const pool = poolOf(database.url)
  await transaction(
    pool,
    async (tx) => void (await tx.query('select')),
    'isolation level repeatable read read only',
  )
  await transaction(pool, async (tx) => {
    const { micros } = await readClock(tx)
    expect((await readHorizon(db)).micros).toBeLessThanOrEqual(micros)
  })
})

test.each([
  ['pg_dump', 'select count(*) from profiles', false],
  ['pg_dump', 'select pg_current_xact_id()', true],
  ['psql', 'select count(*) from profiles', true],
])('another program, %s after %j: it holds the horizon: %j', async (name, statement, holds) => {
  const pool = poolOf(database.url, name)
  await transaction(pool, async (tx) => {
    await tx.query(statement)
    const { micros } = await readClock(tx)
    const horizon = await readHorizon(database.db)
    expect(horizon.micros < micros).toBe(holds)
  })
})

test('a long statement outside of transactions holds it, too', async () => {
  const { db, url } = database
  const holder = await db.connect()
  onTestFinished(() => holder.release())
  await holder.query('select pg_advisory_lock(1)')
  let waiting: Promise<unknown> | undefined
  await untilOneWaits(url, () => (waiting = db.query('select pg_advisory_lock(1), pg_advisory_unlock(1)')))
  const { micros } = await clockOf(db)
  expect((await readHorizon(db)).micros).toBeLessThan(micros)
  await holder.query('select pg_advisory_unlock(1)')
  await waiting
  expect((await readHorizon(db)).micros).toBeGreaterThan(micros)
})

test("another database's transactions do not hold it", async () => {
  const other = await ownDatabase(1)
  await transaction(other.db, async (tx) => {
    const { micros } = await readClock(tx)
    expect((await readHorizon(database.db)).micros).toBeGreaterThan(micros)
  })
})

// ---------------------------------------------------------------------------------------------- no horizon

test('where activities are not tracked, there is none', async () => {
  const { pathname, username } = new URL(database.url)
  // Of this role only: the sessions of a cluster's own programs last.
  const sessions = `role ${username} in database ${pathname.slice(1)}`
  await asAdmin(`alter ${sessions} set track_activities = off`)
  onTestFinished(() => asAdmin(`alter ${sessions} reset track_activities`))
  // Also when only another session has it off, because that one may write.
  const untracked = poolOf(database.url)
  await untracked.query('select')
  const unknown = new HorizonUnknown('track_activities is off in PostgreSQL: it must be on')
  await expect(readHorizon(untracked)).rejects.toThrow(unknown)
  await expect(readHorizon(database.db)).rejects.toThrow(unknown)
  await untracked.end()
  untracked.end = () => Promise.resolve()
  await expect.poll(() => readHorizon(database.db)).toBeDefined()
})

test('where Bursar runs as another role that may insert records, there is none', async () => {
  const role = new URL(database.ownerUrl).username
  const refused = `the database role ${role} runs Bursar too, and its transactions cannot be seen`
  const [ours, theirs] = [poolOf(database.ownerUrl, OWNER), poolOf(database.ownerUrl, WRITER)]
  await ours.query('select')
  await readHorizon(database.db)
  await theirs.query('select')
  await expect(readHorizon(database.db)).rejects.toThrow(refused)

  // A role that may only read is no danger.
  const reader = `reader_${process.pid}`
  const url = new URL(database.url)
  await asAdmin([`create role ${reader} login password 'reader'`])
  onTestFinished(() => asAdmin(`drop role ${reader}`))
  url.username = reader
  url.password = 'reader'
  const client = new pg.Client({ connectionString: url.href, application_name: WRITER })
  await client.connect()
  await theirs.end()
  theirs.end = () => Promise.resolve()
  await expect.poll(() => readHorizon(database.db).catch(() => undefined)).toBeDefined()
  await client.end()
})
