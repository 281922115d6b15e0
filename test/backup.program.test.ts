/*
 * The procedures of docs/guides/backup.md, while clients withdraw and the worker settles. Invariants:
 * 1. a dump has every transfer that was acknowledged before the dump began; a base backup with the archived log has
 *    every acknowledged transfer;
 * 2. a restored database is whole: `bursar verify` is clean, and entries are append-only as before;
 * 3. a service on the restored database continues: the tokens' issuer and the client secrets stay, a used ref_id is
 *    refused, and each PENDING withdrawal is paid once;
 * 4. without the worker no withdrawal is paid, so that an operator can compare the database with the chains first.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { InstalledPostgres, POSTGRES_PROGRAMS } from './installed-postgres.ts'
import { BASE_URL, DESTINATION, ENVIRONMENT, PROGRAM, remoteCaller, spawnBursar } from './support.ts'
import type { BursarProcess, RemoteCaller } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

if (POSTGRES_PROGRAMS === undefined)
  console.warn(
    'skipped: most of test/backup.program.test.ts needs a PostgreSQL with its tools (Debian: postgresql)',
  )

const CLIENTS = 12
const SETTINGS = {
  // The token issuer stays the same although the port changes.
  BURSAR_BASE_URL: BASE_URL,
  BURSAR_WORKER_INTERVAL_MS: '100',
  // Slow enough that some withdrawals are pending in every backup.
  BURSAR_SIMULATED_CONFIRMATION_MS: '1000',
}

/** Clients that withdraw without a pause and remember the acknowledged transfers. */
class Clients {
  readonly acknowledged = new Map<string, Transfer>()
  #running = true
  #done: Promise<void>[]

  constructor(call: RemoteCaller, { profile_id }: SandboxCredentials) {
    this.#done = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let number = 0; this.#running; number++) {
        const answer = await call<Transfer>(
          'POST',
          '/v2/transfer/crypto-withdrawals',
          withdrawal(profile_id, `${client}-${number}`),
        )
        expect(answer.status).toBe(200)
        this.acknowledged.set(answer.body.ref_id!, answer.body)
      }
    })
  }

  /** Waits until this many more withdrawals are acknowledged. */
  async go(count: number): Promise<void> {
    const from = this.acknowledged.size
    await Promise.race([
      vi.waitUntil(() => this.acknowledged.size >= from + count, { timeout: 60_000 }),
      Promise.all(this.#done),
    ])
  }

  async stop(): Promise<void> {
    this.#running = false
    await Promise.all(this.#done)
  }
}

const withdrawal = (profile_id: string, ref_id: string) => ({
  profile_id,
  asset: 'USDP',
  balance_asset: 'USD',
  crypto_network: 'ETHEREUM',
  destination_address: DESTINATION,
  amount: '1.5',
  ref_id,
})

/** Returns a transfer without the fields that settlement changes. */
function withoutProgress(transfer: Transfer): Partial<Transfer> {
  const { status, updated_at, crypto_tx_hash, crypto_tx_index, ...record } = transfer
  return record
}

/** Runs `bursar verify --json` and throws unless its result is clean. */
async function verify(environment: Record<string, string>): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, 'verify', '--json'], {
    env: { ...ENVIRONMENT, ...environment },
  })
  expect(JSON.parse(stdout)).toMatchObject({ clean: true, disagreements: [] })
}

async function readCredentials(dataDir: string): Promise<SandboxCredentials> {
  return JSON.parse(await readFile(credentialsFile(dataDir), 'utf8')) as SandboxCredentials
}

async function start(environment: Record<string, string>): Promise<BursarProcess> {
  const service = await spawnBursar({ ...SETTINGS, ...environment })
  atEnd(() => service.end('SIGKILL'))
  return service
}

/** Compares the restored transfers with the acknowledged ones (invariants 2 and 3). Returns the caller that it used. */
async function requireWhole(
  service: BursarProcess,
  credentials: SandboxCredentials,
  acknowledged: Iterable<Transfer>,
): Promise<RemoteCaller> {
  const call = await remoteCaller(service.address, credentials)
  const left = [...acknowledged]
  while (left.length > 0) {
    await Promise.all(
      left.splice(0, 100).map(async (transfer) => {
        const body = withdrawal(credentials.profile_id, transfer.ref_id!)
        const again = await call<{ meta: { existing: Transfer } }>(
          'POST',
          '/v2/transfer/crypto-withdrawals',
          body,
        )
        expect(again.status).toBe(409)
        expect(withoutProgress(again.body.meta.existing)).toEqual(withoutProgress(transfer))
      }),
    )
  }
  return call
}

interface OnChain {
  [column: string]: unknown
  transfers: string
  /** Number of withdrawals with a transaction on the simulated chain. */
  paid: string
  transactions: string
  pending: string
}

async function onChain(server: InstalledPostgres): Promise<OnChain> {
  const [row] = await server.query(
    `
    select (select count(*) from transfers where type = 'CRYPTO_WITHDRAWAL') as transfers,
           (select count(*) from transfers where status = 'PENDING') as pending,
           count(distinct convert_from(raw_transaction, 'UTF8')::json ->> 'transfer_id') as paid,
           count(*) as transactions
    from simulated_chain`,
    'bursar',
  )
  return row as unknown as OnChain
}

/** Waits until no withdrawal is pending, and expects exactly one payment of each. */
async function requirePaidOnce(server: InstalledPostgres): Promise<void> {
  await vi.waitUntil(async () => (await onChain(server)).pending === '0', { timeout: 60_000, interval: 100 })
  const { transfers, paid, transactions } = await onChain(server)
  expect({ paid, transactions }).toEqual({ paid: transfers, transactions: transfers })
}

describe.skipIf(POSTGRES_PROGRAMS === undefined)('made under load', () => {
  const PASSWORD = 'correct-horse'
  /** Statements that a new server needs before a dump is restored. */
  const CREATE = [
    `create role bursar_owner login password '${PASSWORD}'`,
    `create role bursar login password '${PASSWORD}'`,
    `create database bursar owner bursar_owner template template0 encoding 'UTF8' locale 'C'`,
  ]
  const urlOn = ({ port }: InstalledPostgres, role = 'bursar') =>
    `postgres://${role}:${PASSWORD}@127.0.0.1:${port}/bursar`
  const ownerUrlOn = (server: InstalledPostgres) => urlOn(server, 'bursar_owner')

  /** Runs `bursar migrate` as the owner. */
  const migrate = (server: InstalledPostgres) =>
    promisify(execFile)(process.execPath, [PROGRAM, 'migrate'], {
      env: {
        ...ENVIRONMENT,
        DATABASE_URL: urlOn(server),
        BURSAR_MIGRATIONS_DATABASE_URL: ownerUrlOn(server),
      },
    })

  let dataDir: string
  let credentials: SandboxCredentials
  let source: InstalledPostgres
  /** Paths of the dump, the base backup and the archived log. */
  let dump: string
  let base: string
  let archive: string
  let before: Transfer[]
  let acknowledged: Map<string, Transfer>
  let schema: string

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'bursar-backup-'))
    source = await InstalledPostgres.start({ wal_level: 'replica', max_wal_senders: '4' })
    ;[dump, base, archive] = [
      join(source.folder, 'bursar.dump'),
      join(source.folder, 'base'),
      await source.folderFor('archive'),
    ]
    await source.configure({
      archive_mode: 'on',
      archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`,
      archive_timeout: '60',
    })
    await source.end('SIGINT')
    await source.launch()
    for (const statement of CREATE) await source.query(statement)
    await migrate(source)
    const service = await spawnBursar({ ...SETTINGS, DATABASE_URL: urlOn(source), BURSAR_DATA_DIR: dataDir })
    try {
      credentials = await readCredentials(dataDir)
      const call = await remoteCaller(service.address, credentials)
      const { memo_id } = credentials
      const deposit = { amount: '1000000', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }
      expect((await call('POST', '/v2/sandbox/fiat-deposits', deposit)).status).toBe(200)

      const clients = new Clients(call, credentials)
      await clients.go(40)
      await source.run('pg_basebackup', ['--pgdata', base, '--checkpoint=fast', '--wal-method=stream'])
      await clients.go(60)
      before = [...clients.acknowledged.values()]
      await source.run('pg_dump', ['--format=custom', '--file', dump, ownerUrlOn(source)])
      // More withdrawals were acknowledged meanwhile, so the dump was made under load.
      expect(clients.acknowledged.size).toBeGreaterThan(before.length)
      await clients.go(60)
      await clients.stop()
      acknowledged = clients.acknowledged
    } finally {
      await service.end('SIGKILL')
    }
    schema = await schemaOf(source)
    // From here on the machine is lost, and only the archived log remains.
    const [switched] = await source.query('select pg_walfile_name(pg_switch_wal()) as name')
    await vi.waitUntil(
      async () => {
        const [archived] = await source.query('select last_archived_wal as name from pg_stat_archiver')
        return String(archived!.name) >= String(switched!.name)
      },
      { timeout: 30_000, interval: 100 },
    )
    await source.end('SIGQUIT')
  })
  afterAll(async () => {
    await source?.remove()
    await rm(dataDir, { recursive: true, force: true })
  })

  /** Returns tables, constraints, indexes and privileges. Newer pg_dump versions add lines with a random word. */
  const schemaOf = async (server: InstalledPostgres) =>
    (await server.run('pg_dump', ['--schema-only', ownerUrlOn(server)])).replaceAll(
      /^\\(un)?restrict .*$/gm,
      '',
    )

  /** Starts an empty server as docs/guides/backup.md does. It is removed at the end of the test. */
  async function emptyServer(): Promise<InstalledPostgres> {
    const server = await InstalledPostgres.start()
    atEnd(() => server.remove())
    for (const statement of CREATE) await server.query(statement)
    return server
  }

  const restore = (server: InstalledPostgres, ...options: string[]) =>
    server.run('pg_restore', [
      '--exit-on-error',
      '--single-transaction',
      ...options,
      '--dbname',
      ownerUrlOn(server),
      dump,
    ])

  test('a dump restores every transfer acknowledged before it began, and the service continues', async () => {
    const server = await emptyServer()
    await restore(server)
    const environment = { DATABASE_URL: urlOn(server), BURSAR_DATA_DIR: dataDir }
    await verify(environment)
    expect(await schemaOf(server)).toBe(schema)
    await migrate(server)
    expect(await schemaOf(server)).toBe(schema)

    // The dump is older than the last withdrawals, and some of its withdrawals were pending.
    const restored = await onChain(server)
    expect(Number(restored.transfers)).toBeLessThan(acknowledged.size)
    expect(Number(restored.pending)).toBeGreaterThan(0)

    const cautious = await start({ ...environment, BURSAR_WORKER: 'false' })
    const call = await requireWhole(cautious, credentials, before)
    const more = withdrawal(credentials.profile_id, 'after the restore')
    expect((await call('POST', '/v2/transfer/crypto-withdrawals', more)).status).toBe(200)
    await pause(500)
    expect(await onChain(server)).toMatchObject({ paid: restored.paid, transactions: restored.transactions })
    await cautious.end('SIGTERM')

    await start(environment)
    await requirePaidOnce(server)
    await verify(environment)
    expect(cautious.log()).not.toContain('the database role')
  })

  test('a dump restored without privileges starts no service until `bursar migrate` grants them', async () => {
    const server = await emptyServer()
    await restore(server, '--no-privileges')
    expect(await schemaOf(server)).not.toBe(schema)
    const environment = { DATABASE_URL: urlOn(server), BURSAR_DATA_DIR: dataDir, BURSAR_WORKER: 'false' }
    await expect(start(environment)).rejects.toThrow(
      /may not read the schema's version: run "bursar migrate"/,
    )
    await migrate(server)
    expect(await schemaOf(server)).toBe(schema)
    const service = await start(environment)
    expect(service.log()).not.toContain('the database role')
  })

  test('a base backup and the archived log have every acknowledged transfer', async () => {
    const server = await InstalledPostgres.onBackup(base, source)
    atEnd(() => server.remove())
    await server.configure({ restore_command: `cp ${archive}/%f %p`, archive_mode: 'off' })
    await server.recover()
    await server.launch()
    const environment = { DATABASE_URL: urlOn(server), BURSAR_DATA_DIR: dataDir }
    await verify(environment)
    expect(await schemaOf(server)).toBe(schema)
    const service = await start(environment)
    await requireWhole(service, credentials, acknowledged.values())
    await requirePaidOnce(server)
    // The demo's own withdrawal, and the clients' withdrawals.
    expect((await onChain(server)).transfers).toBe(String(acknowledged.size + 1))
    await verify(environment)
  })
})

test('a copy of the folder of a stopped Bursar with its embedded PostgreSQL is a backup', async () => {
  const folder = await ownFolder()
  await promisify(execFile)('chmod', ['755', folder])
  const [dataDir, copy] = [join(folder, 'data'), join(folder, 'copy')]
  const first = await start({ BURSAR_DATA_DIR: dataDir })
  const credentials = await readCredentials(dataDir)
  const call = await remoteCaller(first.address, credentials)
  const { memo_id, profile_id } = credentials
  const deposit = { amount: '100', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }
  expect((await call('POST', '/v2/sandbox/fiat-deposits', deposit)).status).toBe(200)
  const made = await call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', withdrawal(profile_id, 'one'))
  expect(made.status).toBe(200)
  await first.end('SIGTERM')

  // `cp -a`: as root, the server's files belong to another user.
  await promisify(execFile)('cp', ['-a', dataDir, copy])
  await rm(dataDir, { recursive: true, force: true })
  const second = await start({ BURSAR_DATA_DIR: copy })
  await requireWhole(second, credentials, [made.body])
  await second.end('SIGTERM')
  await verify({ BURSAR_DATA_DIR: copy })
})
