/*
 * Invariants of the weekly partitions:
 * 1. there are partitions for this week and the next four, and rows of the default partition move to them;
 * 2. weeks that are wholly older than the settings are dropped, no others, and event_history says so first;
 * 3. the service's role can neither drop anything by itself nor keep less than 7 days;
 * 4. no writer waits longer than the lock timeout, and no row is lost.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { CLUSTER, untilOneWaits } from '../../../test/cluster.ts'
import { type TestDatabase, ownDatabase } from '../../../test/support.ts'
import { openDatabase, transaction, type Database, type Queryable } from '../../db/database.ts'
import { firstIdAt, idsAt, momentAt, readClock } from '../../db/ids.ts'
import { keepPartitions } from './keep-partitions.ts'
import { partitionStatus } from './partition-status.ts'

const DAY_MS = 86_400_000
const SETTINGS = { eventsKeptDays: 90, webhookAttemptsKeptDays: 30 }
const PARENTS = ['events', 'webhook_attempts', 'webhook_deliveries'] as const

async function clone(): Promise<TestDatabase> {
  const database = await ownDatabase()
  return database
}

/** Monday, 00:00 UTC, of the week of a moment. */
const mondayOf = (ms: number) => ms - ((ms - 4 * DAY_MS) % (7 * DAY_MS))
const nameOf = (parent: string, monday: number) =>
  `${parent}_${new Date(monday).toISOString().slice(0, 10).replaceAll('-', '')}`

const partitionsOf = async (db: Queryable, parent: string) => {
  const { rows } = await db.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1`,
    [parent],
  )
  return rows.map(({ name }) => name).filter((name) => !name.endsWith('_default'))
}

/** Makes a partition as `keep_partitions` did in that week. */
const makePartition = (owner: Queryable, parent: string, monday: number) =>
  owner.query(
    `create table ${nameOf(parent, monday)} partition of ${parent}
     for values from ('${firstIdAt(monday * 1000)}') to ('${firstIdAt((monday + 7 * DAY_MS) * 1000)}')`,
  )

/** Inserts events of this moment, as the service does. */
async function insertEvents(db: Queryable, ms: number, count = 1): Promise<void> {
  const moment = momentAt(new Date(ms).toISOString().replace('Z', '000Z'))
  const newId = idsAt(moment)
  await db.query(
    `insert into events (customer_id, created_at, is_test, id, type, object_id)
     select $1, $2, false, id, 'orchestration.completed', id from unnest($3::uuid[]) as id`,
    [randomUUID(), moment.text, Array.from({ length: count }, newId)],
  )
}

const countOf = async (db: Queryable, table: string) => {
  const { rows } = await db.query<{ count: number }>(`select count(*)::integer as count from ${table}`)
  return rows[0]!.count
}

const nowOf = async (db: Database) => Math.floor((await transaction(db, readClock)).micros / 1000)

test('the migration makes the partitions of this week and the next four; a round then does nothing', async () => {
  const { db } = await clone()
  const monday = mondayOf(await nowOf(db))
  const weeks = [0, 1, 2, 3, 4].map((week) => monday + week * 7 * DAY_MS)
  for (const parent of PARENTS)
    expect(await partitionsOf(db, parent)).toEqual(weeks.map((week) => nameOf(parent, week)))
  expect(await keepPartitions(db, SETTINGS)).toEqual({ done: [], postponed: [] })
  expect(await partitionStatus(db)).toEqual(
    PARENTS.map((table) => ({ table, isBehind: false, stray: 0 })).sort((a, b) =>
      a.table < b.table ? -1 : 1,
    ),
  )
})

test('partitions that are missing are made, with the indexes of their table, and rows of the default one move', async () => {
  const { db, owner } = await clone()
  const now = await nowOf(db)
  const made = nameOf('events', mondayOf(now))
  await owner.query(`drop table ${made}, ${nameOf('events', mondayOf(now) + 28 * DAY_MS)}`)
  await insertEvents(db, now, 500)
  await insertEvents(db, now + 7 * DAY_MS)
  expect((await partitionStatus(db))[0]).toEqual({ table: 'events', isBehind: true, stray: 500 })
  expect(await keepPartitions(db, SETTINGS)).toEqual({
    done: [`made ${made}`, `made ${nameOf('events', mondayOf(now) + 28 * DAY_MS)}`],
    postponed: [],
  })
  expect(await countOf(owner, made)).toBe(500)
  expect(await countOf(owner, 'events_default')).toBe(0)
  expect(await countOf(db, 'events')).toBe(501)
  expect((await partitionStatus(db))[0]).toEqual({ table: 'events', isBehind: false, stray: 0 })
  const { rows } = await owner.query(
    `select count(*)::integer as attached from pg_index i join pg_inherits on inhrelid = indexrelid
     where indrelid = $1::regclass`,
    [made],
  )
  expect(rows).toEqual([{ attached: 3 }])
  // The new partition belongs to the owner of its table, and the service has no grant on it.
  const { rows: relations } = await owner.query<{ acl: string | null; owner: string }>(
    `select p.relacl::text as acl, p.relowner = t.relowner as owned
     from pg_class p, pg_class t where p.oid = $1::regclass and t.oid = 'events'::regclass`,
    [made],
  )
  expect(relations).toEqual([{ acl: null, owned: true }])
})

test('more than 10,000 rows of a week stay in the default partition', async () => {
  const { db, owner } = await clone()
  const now = await nowOf(db)
  await owner.query(`drop table ${nameOf('events', mondayOf(now))}`)
  await insertEvents(db, now, 10_001)
  expect(await keepPartitions(db, SETTINGS)).toEqual({ done: [], postponed: [] })
  expect(await countOf(owner, 'events_default')).toBe(10_001)
})

test('weeks that are wholly older than the settings are dropped, and no others', async () => {
  const { db, owner } = await clone()
  const now = await nowOf(db)
  const ages = [10, 31, 38, 83, 91, 98, 400]
  const mondays = [...new Set(ages.map((days) => mondayOf(now - days * DAY_MS)))].sort((a, b) => a - b)
  for (const parent of PARENTS) for (const monday of mondays) await makePartition(owner, parent, monday)
  for (const monday of mondays) await insertEvents(db, monday + 3 * DAY_MS)
  const kept = (days: number) =>
    mondays.filter((monday) => monday >= mondayOf(now - 3_600_000 - days * DAY_MS))
  const { done, postponed } = await keepPartitions(db, SETTINGS)
  expect(postponed).toEqual([])
  const made = async (parent: string) =>
    (await partitionsOf(db, parent)).filter((name) => name < nameOf(parent, mondayOf(now)))
  expect(await made('events')).toEqual(kept(90).map((monday) => nameOf('events', monday)))
  expect(await made('webhook_deliveries')).toEqual(
    kept(90).map((monday) => nameOf('webhook_deliveries', monday)),
  )
  expect(await made('webhook_attempts')).toEqual(kept(30).map((monday) => nameOf('webhook_attempts', monday)))
  expect(kept(90).length).toBeLessThan(mondays.length)
  expect(done).toHaveLength(3 * mondays.length - 2 * kept(90).length - kept(30).length)
  expect(await countOf(db, 'events')).toBe(kept(90).length)
})

test('the history of events is complete from the oldest week that is kept', async () => {
  const { db, owner } = await clone()
  await owner.query(`update event_history set complete_from = now() - interval '2 years'`)
  await keepPartitions(db, SETTINGS)
  const { rows } = await db.query<{ complete_from: string }>('select complete_from from event_history')
  expect(Date.parse(rows[0]!.complete_from)).toBe(mondayOf((await nowOf(db)) - 90 * DAY_MS))
  await owner.query(`update event_history set complete_from = now()`)
  const before = await db.query('select complete_from from event_history')
  await keepPartitions(db, SETTINGS)
  expect((await db.query('select complete_from from event_history')).rows).toEqual(before.rows)
})

test('old rows of the default partition are deleted, and younger ones are kept', async () => {
  const { db } = await clone()
  const now = await nowOf(db)
  for (const days of [400, 399.9, 120, 60]) await insertEvents(db, Math.floor(now - days * DAY_MS), 3)
  expect((await partitionStatus(db))[0]).toEqual({ table: 'events', isBehind: false, stray: 12 })
  const { done } = await keepPartitions(db, SETTINGS)
  // In three steps: an hour of them at a time.
  expect(done).toEqual(['deleted old rows of events_default'])
  expect(await countOf(db, 'events')).toBe(3)
})

test.each<[string, unknown[], string]>([
  ['less than a week', ['events', 6], 'kept_days must be 7 or more'],
  ['no number', ['events', null], 'kept_days must be 7 or more'],
  ['a negative number', ['events', -400], 'kept_days must be 7 or more'],
  ['a ledger table', ['entries', 90], 'entries has no weekly partitions'],
  ['a partition', ['events_default', 90], 'events_default has no weekly partitions'],
  ['SQL', ["events'; drop table entries; --", 90], 'has no weekly partitions'],
  ['no table', [null, 90], 'null has no weekly partitions'],
])('keep_partitions refuses %s, and changes nothing', async (_, args, reason) => {
  const { db } = await clone()
  const before = await partitionsOf(db, 'events')
  await expect(db.query('select keep_partitions($1, $2)', args)).rejects.toMatchObject({
    code: '22023',
    message: expect.stringContaining(reason) as string,
  })
  expect(await partitionsOf(db, 'events')).toEqual(before)
})

test("the service's role cannot drop a partition, attach one or write to one", async () => {
  const { db } = await clone()
  const [first] = await partitionsOf(db, 'events')
  for (const statement of [
    `drop table ${first!}`,
    `alter table events detach partition ${first!}`,
    `truncate ${first!}`,
    `delete from ${first!}`,
    'create table events_20200106 partition of events default',
  ])
    await expect(db.query(statement), statement).rejects.toMatchObject({ code: '42501' })
})

test('no writer fails or waits longer than the lock timeout, also beside a transaction that does not end', async () => {
  const { db, owner } = await clone()
  const now = await nowOf(db)
  const [thisWeek, lastWeek] = [
    nameOf('events', mondayOf(now)),
    nameOf('events', mondayOf(now) + 28 * DAY_MS),
  ]
  const old = [112, 105, 98].map((days) => mondayOf(now - days * DAY_MS))
  await owner.query(`drop table ${thisWeek}, ${lastWeek}`)
  for (const monday of old) await makePartition(owner, 'events', monday)

  let isRunning = true
  const waits: number[] = []
  const writing = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (isRunning) {
        const start = performance.now()
        await transaction(db, (tx) => insertEvents(tx, now))
        waits.push(performance.now() - start)
        await pause(2)
      }
    }),
  )
  const stop = async () => {
    isRunning = false
    await writing
  }
  /** Runs a round while a transaction that has written an event is open. */
  const besideFrozen = () =>
    transaction(db, async (tx) => {
      await insertEvents(tx, now)
      return keepPartitions(db, SETTINGS)
    })
  /** Runs rounds until one is not postponed. */
  const finish = async () => {
    const done: string[] = []
    for (let round = 1; round <= 100; round++) {
      const kept = await keepPartitions(db, SETTINGS)
      done.push(...kept.done)
      if (kept.postponed.length === 0) return done
    }
    throw new Error(`not done after 100 rounds: ${done.join()}`)
  }
  try {
    await pause(50)
    // The week that is written now waits for writers.
    expect(await besideFrozen()).toEqual({ done: [], postponed: ['events'] })
    expect(await finish()).toEqual([
      `made ${thisWeek}`,
      `made ${lastWeek}`,
      ...old.map((monday) => `dropped ${nameOf('events', monday)}`),
    ])
    // A later week waits for nobody; to drop one waits for all. On a cluster a writer locks the default partition, too.
    await owner.query(`drop table ${lastWeek}`)
    await makePartition(owner, 'events', old[0]!)
    const made = [`made ${lastWeek}`]
    const [beside, after] = CLUSTER.length === 0 ? [made, []] : [[], made]
    expect(await besideFrozen()).toEqual({ done: beside, postponed: ['events'] })
    expect(await finish()).toEqual([...after, `dropped ${nameOf('events', old[0]!)}`])
    await pause(50)
  } finally {
    await stop()
  }
  expect(await countOf(db, 'events')).toBe(waits.length + 2)
  expect(await countOf(owner, 'events_default')).toBe(0)
  // 100 ms, and the time that a busy machine takes.
  expect(Math.max(...waits)).toBeLessThan(2_000)
})

test.skipIf(CLUSTER.length === 0)(
  "no writer waits longer for a step that waits for another node's transaction",
  async () => {
    const { url, db, owner } = await clone()
    const now = await nowOf(db)
    const lastWeek = nameOf('events', mondayOf(now) + 28 * DAY_MS)
    await owner.query(`drop table ${lastWeek}`)
    const worker = Object.assign(new URL(url), { host: new URL(CLUSTER[1]!).host })
    const node = openDatabase(worker.href, { max: 2, onError: () => undefined })
    try {
      await transaction(node, async (tx) => {
        await insertEvents(tx, now)
        const round = keepPartitions(db, SETTINGS)
        await untilOneWaits(url, () => undefined)
        const start = performance.now()
        await transaction(node, (other) => insertEvents(other, now))
        expect(performance.now() - start).toBeLessThan(2_000)
        expect(await round).toEqual({ done: [], postponed: ['events'] })
      })
    } finally {
      await node.end()
    }
    expect((await keepPartitions(db, SETTINGS)).done).toEqual([`made ${lastWeek}`])
    expect(await countOf(db, 'events')).toBe(2)
  },
)

test('a large default partition stops nothing: no partition is made until it is emptied', async () => {
  const { db, owner } = await clone()
  const monday = mondayOf(await nowOf(db))
  await owner.query(`drop table ${nameOf('events', monday + 28 * DAY_MS)}`)
  await insertEvents(db, monday + 28 * DAY_MS, 20)
  // 1,900 random characters a row, which do not compress.
  await owner.query(`
    insert into events (customer_id, created_at, is_test, id, type, object_id, object)
    select customer_id, created_at, false, (left(id::text, 24) || lpad(to_hex(n), 12, '0'))::uuid, type, object_id,
           to_jsonb((select string_agg(md5(random()::text || m), '') from generate_series(1, 60) m))
    from (select * from events_default limit 1) one, generate_series(1, 20000) n`)
  expect(await keepPartitions(db, SETTINGS)).toEqual({ done: [], postponed: [] })
  expect(await partitionsOf(db, 'events')).not.toContain(nameOf('events', monday + 28 * DAY_MS))
  await insertEvents(db, monday + 28 * DAY_MS + 1)

  // As the guide says: with the service stopped, as the owner.
  await owner.query('create table events_aside as select * from events_default')
  await owner.query('truncate events_default')
  expect((await keepPartitions(db, SETTINGS)).done).toEqual([
    `made ${nameOf('events', monday + 28 * DAY_MS)}`,
  ])
  await owner.query('insert into events select * from events_aside')
  expect(await countOf(owner, 'events_default')).toBe(0)
  expect(await countOf(db, 'events')).toBe(20_021)
})
