/*
 * Behind PgBouncer (docs/guides/going-live.md). Invariants:
 * 1. in session mode everything works, with PgBouncer's settings as they are;
 * 2. in transaction mode `serve` ends before it changes anything, and `doctor` fails: both say what to change.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../src/db/database.ts'
import { hasOwnSessions } from '../src/db/own-sessions.ts'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { CLUSTER } from './cluster.ts'
import { freePort } from './free-port.ts'
import { runBursar, ownDatabase, ownBursar } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

const HAS_PGBOUNCER = spawnSync('pgbouncer', ['--version']).status === 0

/** Starts PgBouncer in front of a test database, and returns the addresses of both roles behind it. */
async function startPgBouncer(database: { url: string; ownerUrl: string }, mode: 'session' | 'transaction') {
  const folder = await ownFolder()
  const port = await freePort()
  const target = new URL(database.url)
  const users = [database.url, database.ownerUrl].map((url) => new URL(url))
  await writeFile(
    join(folder, 'users.txt'),
    users.map(({ username, password }) => `"${username}" "${decodeURIComponent(password)}"\n`).join(''),
  )
  await writeFile(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${target.searchParams.get('host') ?? target.hostname} port=${target.port || '5432'}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'users.txt')}
pool_mode = ${mode}
default_pool_size = 50
max_client_conn = 200
`,
  )
  await chmod(folder, 0o755)
  for (const name of ['users.txt', 'pgbouncer.ini']) await chmod(join(folder, name), 0o644)
  // PgBouncer refuses to run as root.
  const asNobody = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn('pgbouncer', [...asNobody, join(folder, 'pgbouncer.ini')], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  atEnd(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await expect
    .poll(async () => {
      const socket = connect(port, '127.0.0.1')
      return once(socket, 'connect').then(
        () => socket.destroy() !== undefined,
        () => false,
      )
    })
    .toBe(true)
  const behind = (address: string) => {
    const url = new URL(address)
    url.searchParams.delete('host')
    ;[url.hostname, url.port] = ['127.0.0.1', String(port)]
    return url.href
  }
  return { url: behind(database.url), ownerUrl: behind(database.ownerUrl) }
}

describe.skipIf(!HAS_PGBOUNCER || CLUSTER.length > 0)('behind PgBouncer', () => {
  test('in session mode, nothing fails and the books are right', async () => {
    const database = await ownDatabase(2)
    const { url, ownerUrl } = await startPgBouncer(database, 'session')
    const folder = await ownFolder()
    const environment = {
      DATABASE_URL: url,
      BURSAR_MIGRATIONS_DATABASE_URL: ownerUrl,
      BURSAR_DATA_DIR: folder,
    }
    const service = await ownBursar(environment)
    const demo = JSON.parse(await readFile(credentialsFile(folder), 'utf8')) as SandboxCredentials
    const { client_id, client_secret, profile_id } = demo
    const form = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
    const signed = await fetch(`${service.address}/oauth2/token`, { method: 'POST', body: form })
    const { access_token } = (await signed.json()) as { access_token: string }
    const call = async (path: string, body?: object) => {
      const answer = await fetch(`${service.address}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: (await answer.json()) as { items: { status: string }[] } }
    }
    const withdrawal = {
      ...{ profile_id, asset: 'USDP', balance_asset: 'USD', crypto_network: 'ETHEREUM', amount: '1' },
      destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
    }
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        at % 4 === 0
          ? call('/v2/transfer/crypto-withdrawals', withdrawal)
          : at % 4 === 1
            ? call(`/v2/sandbox/profiles/${profile_id}/deposit`, { asset: 'USD', amount: '1' })
            : call(
                at % 4 === 2
                  ? '/v2/transfer/transfers?order=ASC&limit=5'
                  : `/v2/profiles/${profile_id}/balances`,
              ),
      ),
    )
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    const waiting = '/v2/transfer/transfers?statuses=PENDING&type=CRYPTO_WITHDRAWAL&limit=1'
    await expect.poll(async () => (await call(waiting)).body.items, { timeout: 60_000 }).toEqual([])
    const verified = await runBursar(['verify', '--json'], environment)
    expect(JSON.parse(verified.stdout)).toMatchObject({ clean: true })
    const found = await runBursar(['doctor'], environment)
    expect(found.stdout).toMatch(/OK +sessions/)
    expect(found.stdout).not.toMatch(/^FAIL/m)
  })

  test('transaction mode is refused at the start, and by doctor, with what to change', async () => {
    const database = await ownDatabase(2)
    const { url, ownerUrl } = await startPgBouncer(database, 'transaction')
    const environment = { DATABASE_URL: url, BURSAR_MIGRATIONS_DATABASE_URL: ownerUrl, PORT: '0' }
    const served = await runBursar(['serve'], environment)
    expect(served.code).not.toBe(0)
    expect(served.stderr).toMatch(/^DATABASE_URL: a pooler .*pool_mode = session/m)
    expect((await database.db.query('select 1 from deployment')).rows).toEqual([])
    const found = await runBursar(['doctor'], environment)
    expect(found.stdout).toMatch(/^FAIL +sessions.*pooler/m)
  })

  test('shared connections are found while others use them too', async () => {
    const database = await ownDatabase(2)
    const { url } = await startPgBouncer(database, 'transaction')
    const pools = Array.from({ length: 3 }, () => openDatabase(url, { max: 4, onError: () => undefined }))
    atEnd(async () => void (await Promise.all(pools.map((pool) => pool.end()))))
    const [asking, ...others] = pools
    let isDone = false
    const busy = others.map(async (pool) => {
      while (!isDone) await pool.query('select 1')
    })
    expect(await hasOwnSessions(asking!)).toBe(false)
    isDone = true
    await Promise.all(busy)
  })
})

test('a database without a pooler has its own sessions', async () => {
  const database = await ownDatabase(4)
  expect(await hasOwnSessions(database.db)).toBe(true)
})
