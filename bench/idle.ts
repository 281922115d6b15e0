import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chmod, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openDatabase, transaction, type Database } from '../src/db/database.ts'
import { momentAt } from '../src/db/ids.ts'
import { EmbeddedPostgres } from '../src/db/embedded/server.ts'
import { openMasterKeys } from '../src/keys/master-keys.ts'
import { insertWebhook } from '../src/resources/webhooks/create-webhook.ts'
import { WebhookSecrets } from '../src/money/records/webhook-secrets.ts'
import { readSettings } from '../src/settings.ts'
import { TICKS_A_SECOND, ticksOf } from './cpu.ts'
import type { TableRow } from './write-tables.ts'

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const POLL_MS = 20
const START_MS_MAX = 120_000
/** The wait after the start, until all its work has ended. */
const SETTLE_MS = 60_000
/** The rest before each withdrawal, in which the worker finds no work. */
const BETWEEN_MS = 9_000
const WAKES = 10

const MODES = ['sandbox', 'live'] as const

/** Starts fresh services of each mode in turn, with the embedded PostgreSQL, and observes each for this many seconds. */
export async function measureIdle(rounds: number, seconds: number): Promise<TableRow[]> {
  const figures: TableRow[] = []
  for (let turn = 0; turn < rounds * MODES.length; turn++) {
    const mode = MODES[turn % MODES.length]!
    const round = Math.floor(turn / MODES.length) + 1
    const dataDir = await mkdtemp(join(tmpdir(), 'bursar-idle-'))
    // Under root, PostgreSQL runs as another user.
    await chmod(dataDir, 0o711)
    try {
      figures.push({ mode, round, ...(await measureOne(dataDir, seconds, mode)) })
    } finally {
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    }
  }
  return figures
}

async function measureOne(dataDir: string, seconds: number, mode: (typeof MODES)[number]): Promise<TableRow> {
  const begunAt = performance.now()
  const settings = { BURSAR_MODE: mode, BURSAR_DATA_DIR: dataDir, PORT: '0', BURSAR_METRICS_PORT: '0' }
  const service = spawn(process.execPath, [PROGRAM, 'serve', '--json'], {
    env: {
      ...process.env,
      ...settings,
      ...(mode === 'live' && { BURSAR_MASTER_KEY: randomBytes(32).toString('hex') }),
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const pid = service.pid!
  const ended = once(service, 'exit')
  try {
    const signal = AbortSignal.timeout(START_MS_MAX)
    const [line] = (await once(createInterface(service.stdout), 'line', { signal })) as [string]
    const { credentials_file } = JSON.parse(line) as { credentials_file?: string }
    const readyMs = performance.now() - begunAt
    const startTicks = await ticksOf(pid)
    await pause(SETTLE_MS)
    const postgres = await EmbeddedPostgres.start({ dataDir, log: () => undefined })
    const db = openDatabase(postgres.url, { max: 2, onError: () => undefined })
    try {
      const before = { ticks: await ticksOf(pid), commits: await commitsOf(db) }
      await pause(seconds * 1_000)
      const after = { ticks: await ticksOf(pid), commits: await commitsOf(db) }
      const memory = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1]
      const wakes =
        credentials_file === undefined
          ? { 'ms to the signature': '-', 'ms to the delivery': '-' }
          : await measureWakes(
              db,
              dataDir,
              JSON.parse(await readFile(credentials_file, 'utf8')) as Credentials,
            )
      return {
        'ready s': Number((readyMs / 1000).toFixed(1)),
        'CPU s of the start': startTicks / TICKS_A_SECOND,
        'MB on disk': Math.round((await bytesIn(dataDir)) / 1e6),
        'MB of Node': Math.round(Number(memory) / 1024),
        // Without the commit of the query itself.
        'commits a second': Number(((after.commits - before.commits - 1) / seconds).toFixed(1)),
        '% of a core': Number((((after.ticks - before.ticks) / TICKS_A_SECOND / seconds) * 100).toFixed(1)),
        ...wakes,
      }
    } finally {
      await db.end()
      await postgres.stop()
    }
  } finally {
    service.kill('SIGTERM')
    await ended
  }
}

interface Credentials {
  base_url: string
  client_id: string
  client_secret: string
  profile_id: string
  customer_id: string
}

/** Orders withdrawals one by one, with rests in between. Returns the slowest signature and the slowest first event. */
async function measureWakes(
  db: Database,
  dataDir: string,
  { base_url, client_id, client_secret, profile_id, customer_id }: Credentials,
): Promise<TableRow> {
  const secrets = new WebhookSecrets(await openMasterKeys({ ...readSettings({}), dataDir }))
  const receiver = await openReceiver()
  try {
    const endpoint = { name: 'idle', url: receiver.url, event_types: ['*'] }
    await transaction(db, (tx) => insertWebhook(tx, secrets, customer_id, endpoint))
    const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
    const granted = await fetch(`${base_url}/oauth2/token`, { method: 'POST', body })
    const { access_token } = (await granted.json()) as { access_token: string }
    const signed: number[] = []
    const delivered: number[] = []
    for (let wake = 0; wake < WAKES; wake++) {
      await pause(BETWEEN_MS)
      receiver.take()
      const answer = await fetch(`${base_url}/v2/transfer/crypto-withdrawals`, {
        method: 'POST',
        headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          profile_id,
          asset: 'USDP',
          balance_asset: 'USD',
          crypto_network: 'ETHEREUM',
          amount: '1',
          destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
        }),
      })
      if (!answer.ok)
        throw new Error(`a withdrawal was answered with ${answer.status}: ${await answer.text()}`)
      const { id } = (await answer.json()) as { id: string }
      signed.push(await msToSignature(db, customer_id, id))
      let waits: number[] = []
      while (waits.length === 0) {
        await pause(POLL_MS)
        waits = receiver.take()
      }
      delivered.push(waits[0]!)
    }
    return {
      'ms to the signature': Math.round(Math.max(...signed)),
      'ms to the delivery': Math.round(Math.max(...delivered)),
    }
  } finally {
    await receiver.close()
  }
}

async function msToSignature(db: Database, customerId: string, id: string): Promise<number> {
  for (;;) {
    const { rows } = await db.query<{ ms: number }>(
      `select (extract(epoch from o.signed_at - t.created_at) * 1000)::float8 as ms
       from outgoing_transfers o join transfers t on t.customer_id = o.customer_id and t.id = o.transfer_id
       where o.customer_id = $1 and o.transfer_id = $2 and o.signed_at is not null`,
      [customerId, id],
    )
    if (rows[0] !== undefined) return rows[0].ms
    await pause(POLL_MS)
  }
}

/** The commits of the database so far, including those of idle sessions. */
async function commitsOf(db: Database): Promise<number> {
  const { rows } = await db.query<{ commits: string }>(
    'select xact_commit as commits from pg_stat_database where datname = current_database()',
  )
  return Number(rows[0]!.commits)
}

async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = files.map(({ parentPath, name }) =>
    // PostgreSQL may have removed the file since.
    stat(join(parentPath, name)).then(
      ({ blocks }) => blocks * 512,
      () => 0,
    ),
  )
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

interface Receiver {
  url: string
  /** Returns the milliseconds from event to delivery of each delivery since the last call. */
  take(): number[]
  close(): Promise<void>
}

/** Opens an HTTP server that answers each delivery at once. The database has the clock of this machine. */
async function openReceiver(): Promise<Receiver> {
  let waits: number[] = []
  const server = createServer((request, reply) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      reply.statusCode = 204
      reply.end()
      const { time } = JSON.parse(Buffer.concat(parts).toString()) as { time: string }
      waits.push(performance.timeOrigin + performance.now() - momentAt(time).micros / 1000)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    take() {
      const taken = waits
      waits = []
      return taken
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
