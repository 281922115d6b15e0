import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startSilentProxy } from '../../test/silent-proxy.ts'
import { ownDatabase } from '../../test/support.ts'
import { CHECKER, connectionLost, openDatabase, transaction } from './database.ts'
import { ServerCheck } from './server-check.ts'
import { atEnd } from '../../test/at-end.ts'

const database = await ownDatabase(1)

const SILENT_MS = 600

/** A pool whose server is checked, through a proxy that can fall silent. */
async function openChecked(hostname = '127.0.0.1') {
  const proxy = await startSilentProxy(database.url)
  const address = Object.assign(new URL(proxy.address), { hostname }).href
  const changes: ('silent' | 'answers')[] = []
  const check = new ServerCheck(address, {
    ...{ everyMs: 20, silentMs: SILENT_MS },
    onChange: (isSilent) => changes.push(isSilent ? 'silent' : 'answers'),
  })
  const db = openDatabase(address, { max: 3, onError: () => undefined, socket: check.socket })
  atEnd(async () => {
    await db.end()
    await check.stop()
    await proxy.close()
  })
  return { proxy, db, changes }
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

async function msOf(work: Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work
  return performance.now() - start
}

test.each(['127.0.0.1', 'localhost'])(
  'a server at %s that falls silent loses its connections, and new ones fail at once until it answers',
  async (hostname) => {
    const { proxy, db, changes } = await openChecked(hostname)
    // Three connections; the third is idle below.
    await Promise.all([1, 2, 3].map(() => db.query('select 1')))
    const running = failureOf(db.query('select pg_sleep(60)'))
    const between = failureOf(
      transaction(db, async (tx) => {
        await tx.query('select 1')
        proxy.fallSilent()
        await tx.query('select 2')
      }),
    )
    const lost = [await running, await between]
    expect(changes).toEqual(['silent'])
    expect(lost.map(connectionLost)).toEqual([true, true])
    // Without the check, a connection is tried for ten seconds.
    expect(await msOf(failureOf(db.query('select 1')))).toBeLessThan(SILENT_MS)
    const refused = await failureOf(transaction(db, async (tx) => void (await tx.query('select 1'))))
    expect(connectionLost(refused)).toBe(true)
    proxy.speak()
    await expect.poll(() => changes).toEqual(['silent', 'answers'])
    expect((await db.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  },
)

test('a slow statement, a process that stands still, and a server that refuses are not silence', async () => {
  const { proxy, db, changes } = await openChecked()
  const slow = db.query(`select pg_sleep(${(2 * SILENT_MS) / 1000})`)
  await pause(100)
  // The event loop stands still for longer than the server may be silent.
  const until = performance.now() + 2 * SILENT_MS
  while (performance.now() < until);
  await slow
  const [{ pid }] = (await db.query<{ pid: number }>('select pg_backend_pid() as pid')).rows as [
    { pid: number },
  ]
  // Another session ends the check's own one.
  await database.db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = $1`,
    [CHECKER],
  )
  await pause(100)
  expect((await db.query<{ pid: number }>('select pg_backend_pid() as pid')).rows).toEqual([{ pid }])
  await proxy.close()
  await expect.poll(() => failureOf(db.query('select 1'))).toMatchObject({ code: 'ECONNREFUSED' })
  await pause(2 * SILENT_MS)
  expect(changes).toEqual([])
})

test.each([
  // A name service may take longer than a connection.
  [
    'whose name cannot be looked up',
    { hostname: 'nowhere.invalid' },
    /ENOTFOUND|EAI_AGAIN|connection timeout/,
  ],
  ['without TLS', { search: '?sslmode=verify-full' }, /does not support SSL/],
])(
  'a server %s is not silent: connections fail with their own reason',
  async (_, change, reason) => {
    const changes: boolean[] = []
    const address = Object.assign(new URL(database.url), change).href
    const onChange = (isSilent: boolean) => void changes.push(isSilent)
    const check = new ServerCheck(address, { everyMs: 20, silentMs: SILENT_MS, onChange })
    const db = openDatabase(address, { max: 1, onError: () => undefined, socket: check.socket })
    atEnd(async () => {
      await db.end()
      await check.stop()
    })
    await pause(SILENT_MS)
    expect(String(await failureOf(db.query('select 1')))).toMatch(reason)
    expect(changes).toEqual([])
  },
  30_000,
)

test('the server ends sessions of a machine that is gone half a minute after their last statement', async () => {
  const { db } = await openChecked()
  const { rows } = await db.query(`
    select current_setting('tcp_keepalives_idle')::int + current_setting('tcp_keepalives_interval')::int
           * current_setting('tcp_keepalives_count')::int as seconds, current_setting('tcp_user_timeout') as unread`)
  expect(rows).toEqual([{ seconds: 25, unread: '25000' }])
})

test('the check has ended its session when it has stopped', async () => {
  const check = new ServerCheck(database.url, { everyMs: 20, onChange: () => undefined })
  const sessions = async () => {
    const { rows } = await database.db.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity where datname = current_database() and application_name = $1`,
      [CHECKER],
    )
    return rows[0]!.count
  }
  await expect.poll(sessions).toBe(1)
  await check.stop()
  await expect.poll(sessions).toBe(0)
})
