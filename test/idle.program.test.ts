import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { LISTEN } from '../src/db/changes.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { ROW_MACS, credit, remoteCaller, spawnBursar, withdraw, ownDatabase } from './support.ts'
import { atEnd } from './at-end.ts'

/*
 * Processes that were used, and are not used any more, leave the database alone: after the last change
 * 1. no process notifies the others again;
 * 2. the processes commit no more than their looks at the clock: some twelve transactions a second for the three here.
 */

/** How long the database is watched. */
const WATCHED_MS = 4_000
/** How often it is watched until the processes are quiet. */
const WATCHES_MAX = 8
/** Commits a second: 9 were measured with three processes. An API process that heard itself made 40 more. */
const COMMITS_MAX = 16

const database = await ownDatabase()

async function start(environment: Record<string, string>) {
  const process = await spawnBursar({ DATABASE_URL: database.url, ...environment })
  atEnd(() => process.end('SIGKILL'))
  return process.address
}

const commits = async () => {
  const { rows } = await database.owner.query<{ commits: string }>(
    'select xact_commit as commits from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0]!.commits)
}

test('processes that are not used any more send no notification and commit next to nothing', async () => {
  const api = { BURSAR_WORKER: 'false' }
  const [address] = await Promise.all([
    start(api),
    start(api),
    start({ BURSAR_SIMULATED_CONFIRMATION_MS: '0' }),
  ])
  const { customer_id, profile_id } = await createCustomer(database.db, 'Test')
  const client = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
  await credit(new Ledger(database.db), { customer_id, profile_id }, 'USD', '1000')

  let heard = 0
  const listener = new pg.Client({ connectionString: database.url })
  await listener.connect()
  atEnd(() => listener.end())
  listener.on('notification', () => heard++)
  await listener.query(LISTEN)

  const call = await remoteCaller(address, client)
  const { id } = await withdraw({ profile_id, call })
  await vi.waitUntil(() => heard > 0, { timeout: 60_000, interval: 100 })
  const isCompleted = async () =>
    (await call('GET', `/v2/transfer/transfers/${id}`)).body.status === 'COMPLETED'
  await vi.waitUntil(isCompleted, { timeout: 60_000, interval: 200 })

  // What follows from the payment ends some seconds after it.
  let seen: { told: number; isQuiet: boolean }
  for (let watched = 0; watched < WATCHES_MAX; watched++) {
    const [told, committed, since] = [heard, await commits(), performance.now()]
    await pause(WATCHED_MS)
    const seconds = (performance.now() - since) / 1_000
    seen = { told: heard - told, isQuiet: (await commits()) - committed <= COMMITS_MAX * seconds }
    if (seen.told === 0 && seen.isQuiet) break
  }
  expect(seen!).toEqual({ told: 0, isQuiet: true })
})
