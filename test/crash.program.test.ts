/*
 * Bursar with its embedded PostgreSQL is killed with SIGKILL under load: the process, PostgreSQL or both; or PostgreSQL hangs.
 * Invariants:
 * 1. every acknowledged transfer exists once, with the record of the answer;
 * 2. a transfer whose answer was lost exists once or not at all, and a retry with its ref_id finds out which;
 * 3. no transfer is half-posted: `bursar verify` and `bursar audit verify` are clean, at once and in the end;
 * 4. PENDING transfers go on to their end, and each is paid once;
 * 5. while PostgreSQL does not answer, requests get 503 or no answer, and never a false success.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openDatabase, type Database } from '../src/db/database.ts'
import { EmbeddedPostgres } from '../src/db/embedded/server.ts'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { magicAddress, type MagicOutcome } from '../src/networks/simulated/magic-addresses.ts'
import { EVERY_STEP } from './every-step.ts'
import { SEED } from './seed.ts'
import { BASE_URL, DESTINATION, outputOf, remoteCaller, spawnBursar } from './support.ts'
import type { BursarProcess, RemoteCaller } from './support.ts'
import { atEnd } from './at-end.ts'

const LOADERS = 24
/** Withdrawals of each client without a pause. Then it makes few: on a busy machine a test lasts longer, and must not get more work by that. */
const HASTY = 30
/** Tests that are tried again must not repeat a ref_id. */
let loads = 0
/** Some withdrawals go to destinations that drop a payment once, or refuse it. */
const DESTINATIONS: (MagicOutcome | undefined)[] = [
  ...Array<undefined>(6).fill(undefined),
  'DROPPED_ONCE',
  'INVALID_DESTINATION_ADDRESS',
]

/** The results of both checks when nothing is wrong. */
const CLEAN = { ledger: { clean: true, disagreements: [] }, audit: { clean: true, faults: [] } }

function killIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** One data folder and the process that works on it. */
class Deployment {
  dataDir = ''
  process!: BursarProcess
  call!: RemoteCaller
  #credentials!: SandboxCredentials
  /** The folder of PostgreSQL: below `dataDir`, or elsewhere if root runs the test. */
  #cluster = ''

  async setUp(): Promise<void> {
    this.dataDir = await mkdtemp(join(tmpdir(), 'bursar-crash-'))
    // PostgreSQL needs access: root runs it as another user.
    await chmod(this.dataDir, 0o755)
    await this.start()
    const { memo_id } = this.#credentials
    const deposit = { amount: '1000000', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }
    expect((await this.call('POST', '/v2/sandbox/fiat-deposits', deposit)).status).toBe(200)
    await this.attached(async ({ adminUrl }) => {
      const admin = new pg.Client({ connectionString: adminUrl })
      await admin.connect()
      const { rows } = await admin.query<{ data_directory: string }>('show data_directory')
      this.#cluster = rows[0]!.data_directory
      await admin.end()
    })
  }

  get #environment() {
    return {
      BURSAR_DATA_DIR: this.dataDir,
      // The token issuer stays the same although the port changes.
      BURSAR_BASE_URL: BASE_URL,
      BURSAR_WORKER_INTERVAL_MS: '20',
      BURSAR_SIMULATED_CONFIRMATION_MS: '200',
    }
  }

  async start(): Promise<void> {
    this.process = await spawnBursar(this.#environment)
    const file = await readFile(credentialsFile(this.dataDir), 'utf8')
    this.#credentials = JSON.parse(file) as SandboxCredentials
    this.call = await remoteCaller(this.process.address, this.#credentials)
  }

  async postmaster(): Promise<number> {
    return Number((await readFile(join(this.#cluster, 'postmaster.pid'), 'utf8')).split('\n')[0])
  }

  /** Stops or continues all processes of PostgreSQL: it keeps its connections, and answers nothing. */
  async hangPostgres(signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const postmaster = await this.postmaster()
    const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
    const all = stdout.split('\n').map((line) => line.trim().split(/ +/).map(Number))
    // The postmaster first: then it starts no other process. One of them may end by itself meanwhile.
    process.kill(postmaster, signal)
    for (const [pid, parent] of all) if (parent === postmaster) killIfThere(pid!, signal)
  }

  get postgresRuns(): boolean {
    return existsSync(join(this.#cluster, 'postmaster.pid'))
  }

  /** Runs work on the same PostgreSQL, as another process would. */
  async attached<T>(work: (postgres: EmbeddedPostgres) => Promise<T>): Promise<T> {
    const postgres = await EmbeddedPostgres.start({ dataDir: this.dataDir, log: () => undefined })
    try {
      return await work(postgres)
    } finally {
      await postgres.stop()
    }
  }

  async query<T>(work: (db: Database) => Promise<T>): Promise<T> {
    return this.attached(async ({ url }) => {
      const db = openDatabase(url, { max: 2, onError: () => undefined })
      try {
        return await work(db)
      } finally {
        await db.end()
      }
    })
  }

  /** Returns the results of the commands `bursar verify` and `bursar audit verify`. */
  async verify(): Promise<{ ledger: unknown; audit: unknown }> {
    const outcomeOf = async (...command: string[]): Promise<unknown> =>
      JSON.parse(await outputOf([...command, '--json'], this.#environment))
    return { ledger: await outcomeOf('verify'), audit: await outcomeOf('audit', 'verify') }
  }

  withdrawal(number: number, ref_id: string) {
    const outcome = DESTINATIONS[number % DESTINATIONS.length]
    return {
      profile_id: this.#credentials.profile_id,
      asset: 'USDP',
      balance_asset: 'USD',
      crypto_network: 'ETHEREUM',
      destination_address: outcome === undefined ? DESTINATION : magicAddress('ETHEREUM', outcome)!,
      amount: `1.${1 + (number % 9)}`,
      ref_id,
    }
  }

  async tearDown(): Promise<void> {
    await (this.process as BursarProcess | undefined)?.end('SIGKILL')
    if (this.#cluster !== '' && this.postgresRuns) {
      const pid = await this.postmaster()
      const commandLine = await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(
        () => ({ stdout: '' }),
      )
      if (commandLine.stdout.includes(this.#cluster)) process.kill(pid, 'SIGQUIT')
      await vi.waitUntil(() => !this.postgresRuns, { timeout: 20_000 }).catch(() => undefined)
    }
    await rm(this.dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Clients that withdraw, and remember each answer. */
class Load {
  /** Requests by ref_id, with the answered transfer if an answer came. */
  readonly asked = new Map<string, { body: object; answer: Transfer | undefined }>()
  readonly statuses = new Map<number | 'none', number>()
  #running = true
  #clients: Promise<void>[]

  constructor(deployment: Deployment, name: string) {
    const load = ++loads
    // A failing test leaves no load running for the next test.
    atEnd(async () => void (this.#running = false))
    this.#clients = Array.from({ length: LOADERS }, async (_, client) => {
      for (let number = 0; this.#running; number++) {
        const body = deployment.withdrawal(number, `${name}-${load}-${client}-${number}`)
        const asked: { body: object; answer: Transfer | undefined } = { body, answer: undefined }
        this.asked.set(body.ref_id, asked)
        const answer = await deployment
          .call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', body)
          .catch(() => undefined)
        this.#count(answer?.status ?? 'none')
        if (answer?.status === 200) asked.answer = answer.body
        if (number >= HASTY) await pause(250)
        else if (answer?.status !== 200) await pause(20)
      }
    })
  }

  #count(status: number | 'none') {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
  }

  get acknowledged(): number {
    return this.statuses.get(200) ?? 0
  }

  async stop(): Promise<void> {
    this.#running = false
    await Promise.all(this.#clients)
    // Invariant 5: no other status was answered.
    const others = [...this.statuses.keys()].filter((status) => ![200, 503, 'none'].includes(status))
    expect(others).toEqual([])
  }
}

/** Leaves out the fields that settlement changes. */
function withoutProgress(transfer: Transfer): Partial<Transfer> {
  const { status, status_details, updated_at, crypto_tx_hash, crypto_tx_index, ...record } = transfer
  return record
}

/** The transfer id of each ref_id so far on the deployment. */
const kept = new Map<string, string>()

/** Compares the records with the answers to this load and all earlier loads: invariants 1 to 4. */
async function requireNothingLost(deployment: Deployment, load: Load): Promise<void> {
  expect(await deployment.verify()).toMatchObject(CLEAN)

  // A repeated request gets 409 with the record. If its answer was lost, the repeat may also create the transfer.
  const repeat = async ([refId, { body, answer }]: [
    string,
    { body: object; answer?: Transfer | undefined },
  ]) => {
    const repeated = await deployment.call<Transfer & { meta: { existing: Transfer } }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      body,
    )
    expect(repeated.status).toBeOneOf(answer === undefined ? [200, 409] : [409])
    const record = repeated.status === 200 ? repeated.body : repeated.body.meta.existing
    expect(record).toMatchObject(body)
    if (answer !== undefined) expect(withoutProgress(record)).toEqual(withoutProgress(answer))
    kept.set(refId, record.id)
  }
  const asked = [...load.asked]
  while (asked.length > 0) await Promise.all(asked.splice(0, 200).map(repeat))

  await deployment.query(async (db) => {
    const open = async () => (await db.query(`select 1 from transfers where status = 'PENDING'`)).rowCount
    await vi.waitUntil(async () => (await open()) === 0, { timeout: 60_000, interval: 100 })

    const transfers = await db.query<{
      id: string
      ref_id: string | null
      status: string
      destination_address: string
    }>(`select id, ref_id, status, destination_address from transfers where type = 'CRYPTO_WITHDRAWAL'`)
    // Transfers without a ref_id are the demo's: its first wire triggered a rule.
    const asked = transfers.rows.filter(({ ref_id }) => ref_id !== null)
    expect(new Map(asked.map(({ id, ref_id }) => [ref_id, id]))).toEqual(kept)
    expect(asked).toHaveLength(kept.size)
    expect(transfers.rows).toHaveLength(kept.size + 1)

    const refused = magicAddress('ETHEREUM', 'INVALID_DESTINATION_ADDRESS')
    const isRefused = (transfer: { destination_address: string }) => transfer.destination_address === refused
    const wrong = transfers.rows.filter((one) => one.status !== (isRefused(one) ? 'FAILED' : 'COMPLETED'))
    expect(wrong).toEqual([])

    const chain = await db.query<{ transfer_id: string }>(
      `select convert_from(raw_transaction, 'UTF8')::json ->> 'transfer_id' as transfer_id from simulated_chain`,
    )
    const paid = transfers.rows.filter((one) => !isRefused(one)).map(({ id }) => id)
    expect(chain.rows.map(({ transfer_id }) => transfer_id).sort()).toEqual(paid.sort())
  })
  expect(await deployment.verify()).toMatchObject(CLEAN)
}

/** Rounds of load, each ended by a kill after a random time: one of each kind by day, so many with TEST_EVERY_STEP=1. */
const rounds = (count: number) =>
  fc
    .sample(fc.noBias(fc.integer({ min: 100, max: 900 })), {
      numRuns: EVERY_STEP ? count : 1,
      seed: SEED + count,
    })
    .map((ms, round) => ({ ms, round }))

describe(`kill -9 (TEST_SEED=${SEED})`, () => {
  const deployment = new Deployment()
  beforeAll(() => deployment.setUp())
  afterAll(() => deployment.tearDown())

  test.each(rounds(3))('of the process after $ms ms of load loses nothing', async ({ ms, round }) => {
    const load = new Load(deployment, `process-${round}`)
    await pause(ms)
    await deployment.process.end('SIGKILL')
    await load.stop()
    expect(deployment.postgresRuns).toBe(true)
    expect(load.statuses.get('none')).toBeGreaterThan(0)
    await deployment.start()
    await requireNothingLost(deployment, load)
  })

  test.each(rounds(2))(
    'of the process and PostgreSQL after $ms ms of load loses nothing',
    async ({ ms, round }) => {
      const load = new Load(deployment, `both-${round}`)
      await pause(ms)
      process.kill(await deployment.postmaster(), 'SIGKILL')
      await deployment.process.end('SIGKILL')
      await load.stop()
      await deployment.start()
      await requireNothingLost(deployment, load)
    },
  )

  test.each(rounds(3))(
    'of PostgreSQL after $ms ms of load is a pause and loses nothing',
    async ({ ms, round }) => {
      const load = new Load(deployment, `postgres-${round}`)
      await pause(ms)
      const killed = await deployment.postmaster()
      process.kill(killed, 'SIGKILL')
      await vi.waitUntil(() => (load.statuses.get(503) ?? 0) + (load.statuses.get('none') ?? 0) > 0, {
        timeout: 30_000,
      })
      expect((await fetch(`${deployment.process.address}/health/live`)).status).toBe(200)
      const before = load.acknowledged
      await vi.waitUntil(() => load.acknowledged > before + LOADERS, { timeout: 60_000 })
      await load.stop()
      expect(await deployment.postmaster()).not.toBe(killed)
      expect((await fetch(`${deployment.process.address}/health/ready`)).status).toBe(200)
      await requireNothingLost(deployment, load)
    },
  )

  test('a PostgreSQL that hangs is a pause: 503 within seconds, and nothing is lost', async () => {
    const load = new Load(deployment, 'hung')
    await vi.waitUntil(() => load.acknowledged > LOADERS, { timeout: 30_000 })
    await deployment.hangPostgres('SIGSTOP')
    atEnd(() => deployment.hangPostgres('SIGCONT'))
    // Sooner than the time limit of a request.
    await vi.waitUntil(() => (load.statuses.get(503) ?? 0) > 2 * LOADERS, { timeout: 20_000 })
    expect((await fetch(`${deployment.process.address}/health/ready`)).status).toBe(503)
    await deployment.hangPostgres('SIGCONT')
    const before = load.acknowledged
    await vi.waitUntil(() => load.acknowledged > before + LOADERS, { timeout: 30_000 })
    await load.stop()
    await requireNothingLost(deployment, load)
  })

  test('is survived: Bursar then stops on request, with its PostgreSQL', async () => {
    await deployment.process.end('SIGTERM')
    expect(deployment.postgresRuns).toBe(false)
    // The invariants were checked on more than a handful of transfers.
    expect(kept.size).toBeGreaterThan(200)
  })
})
