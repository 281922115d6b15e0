/*
 * No customer stops another: each operation is asked by one customer as hard as its rate allows, with the worst arguments and a
 * long history, while another customer's reads stay quick and its withdrawals go on. An operation without arguments here fails
 * the test. Idle and attacked phases alternate, so that a busy machine slows both.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { OPERATIONS } from '../src/program/app.ts'
import { withRecords, type ExampleRecords } from '../src/contract/example-records.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { demoRecords } from '../src/program/demo/demo-records.ts'
import type { Operation } from '../src/http/operation.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import {
  cloneDatabase,
  ROW_MACS,
  credit,
  spawnBursar,
  withdrawalOf,
  type BursarProcess,
  type TestDatabase,
} from './support.ts'
import { partOf } from './seed.ts'

/** Transfers, events and entries of the attacker's last day, each. */
const HISTORY = 60_000
const IDLE_MS = 150
const ATTACKED_MS = 450
/** The default rate of a client. */
const PER_SECOND = 200
/** How much slower than an idle read the slowest of a hundred may be; and what is quick in any case, on a busy machine. */
const TIMES_MAX = 10
const QUICK_MS = 400
/** Noise of the machine does not hit the same operation three times. */
const TRIES = 3

/** A filter of lists that no record fits. */
const NOTHING = '00000000-0000-4000-8000-000000000000'
const list = (...filters: string[]) => [
  'limit=1000',
  'limit=1000&order=ASC',
  ...filters.map((one) => `limit=1000&${one}`),
]
/** The arguments of the operation's example: its cost does not depend on them. */
const EXAMPLE = ['']

/** The clock and the reset are of the whole sandbox: their scope stops everybody. */
const ATTACKS = OPERATIONS.filter(({ url }) => url !== '/v2/sandbox/clock' && url !== '/v2/sandbox/reset')

/** The worst queries of each operation, which take turns. Path and body are those of the example, or in `WORST_BODY`. */
const WORST: Record<string, string[]> = {
  'POST /v2/transfer/crypto-withdrawals': EXAMPLE,
  'GET /v2/orchestration/orchestrations': list('status=FAILED&source_asset=BTC', `profile_id=${NOTHING}`),
  'GET /v2/statements': list(),
  'POST /v2/sandbox/fiat-deposits': EXAMPLE,
  'GET /v2/identity/accounts/:id': EXAMPLE,
  'GET /v2/markets/:market/historical-prices': [
    'max_data_points=1000',
    'pagination.limit=1000&pagination.offset=100000',
  ],
  'POST /v2/profiles': EXAMPLE,
  'GET /v2/profiles': list('nickname=nobody'),
  'GET /v2/profiles/:id': EXAMPLE,
  'PUT /v2/profiles/:id': EXAMPLE,
  'PUT /v2/profiles/:id/deactivate': EXAMPLE,
  'GET /v2/balances/history': ['days=365', ''],
  'GET /v2/profiles/:id/balances': ['', 'at=2026-01-01T00:00:00Z'],
  'GET /v2/profiles/:id/balances/:asset': EXAMPLE,
  'GET /v2/profiles/:id/entries': list('assets=BTC'),
  'GET /v2/profiles/:id/statement': ['', 'asset=BTC'],
  'GET /v2/reports/trial-balance': ['', 'by=profile'],
  'GET /v2/reports/accounts': ['', 'from=2026-01-01'],
  'GET /v2/reports/general-ledger': ['limit=1000', 'limit=1&account=none'],
  'GET /v2/reports/activity': ['by=profile', 'by=day'],
  'GET /v2/reports/closed-days': EXAMPLE,
  'GET /v2/reports/liabilities': ['', 'at=2026-01-01T00:00:00Z'],
  'GET /v2/profiles/:id/liability-proof': ['', 'at=2026-01-01T00:00:00Z'],
  'POST /v2/sandbox/profiles/:id/deposit': EXAMPLE,
  'POST /v2/sandbox/customers': EXAMPLE,
  'POST /v2/identity/identities': EXAMPLE,
  'GET /v2/identity/identities': list('include_details=true&include_institution_members=true'),
  'GET /v2/identity/identities/:id': ['include_details=true&include_institution_members=true'],
  'PUT /v2/identity/identities/:id': EXAMPLE,
  'POST /v2/identity/institution-members': EXAMPLE,
  'DELETE /v2/identity/institution-members/:id': EXAMPLE,
  'PUT /v2/identity/identities/:id/sandbox-status': EXAMPLE,
  'POST /v2/identity/accounts': EXAMPLE,
  'GET /v2/identity/accounts': list('order_by=UPDATED_AT'),
  'PUT /v2/identity/accounts': EXAMPLE,
  'POST /v2/identity/account-members': EXAMPLE,
  'DELETE /v2/identity/account-members/:id': EXAMPLE,
  'GET /v2/transfer/transfers/:id': EXAMPLE,
  'GET /v2/transfer/transfers/:id/history': EXAMPLE,
  'GET /v2/transfer/transfers/:id/verification': EXAMPLE,
  'GET /v2/transfer/volumes': ['', 'created_at.gte=1970-01-01T00:00:00Z&assets=BTC'],
  'GET /v2/search': ['q=0x52908400098527886E0F7030069857D2E4169EE7', 'q=history-1', 'q=0x529084', 'q=26.5'],
  'GET /v2/transfer/transfers': list(
    'statuses=FAILED',
    'type=FIAT_DEPOSIT',
    'order_by=UPDATED_AT&statuses=FAILED',
    'destination_addresses=nowhere&amount.gte=26',
  ),
  'POST /v2/transfer/transfers/:id/cancel': EXAMPLE,
  'POST /v2/transfer/internal': EXAMPLE,
  'POST /v2/transfer/paxos': EXAMPLE,
  'POST /v2/conversion/stablecoins': EXAMPLE,
  'GET /v2/conversion/stablecoins': list(),
  'GET /v2/conversion/stablecoins/:id': EXAMPLE,
  'POST /v2/transfer/deposit-addresses': EXAMPLE,
  'GET /v2/transfer/deposit-addresses': list('addresses=nowhere'),
  'POST /v2/transfer/fiat-deposit-instructions': EXAMPLE,
  'GET /v2/transfer/fiat-deposit-instructions': list(),
  'GET /v2/transfer/fiat-deposit-instructions/:id': EXAMPLE,
  'POST /v2/transfer/fiat-accounts': EXAMPLE,
  'GET /v2/transfer/fiat-accounts': list('include_deleted=true'),
  'GET /v2/transfer/fiat-accounts/:id': EXAMPLE,
  'PUT /v2/transfer/fiat-accounts/:id': EXAMPLE,
  'POST /v2/transfer/fiat-withdrawals': EXAMPLE,
  'POST /v2/transfer/fees/crypto-withdrawal': EXAMPLE,
  'POST /v2/orchestration/rules': EXAMPLE,
  'GET /v2/orchestration/rules': list(),
  'DELETE /v2/orchestration/rules/:id': EXAMPLE,
  'DELETE /v2/transfer/fiat-accounts/:id': EXAMPLE,
  'POST /v2/orchestration/orchestrations': EXAMPLE,
  'GET /v2/orchestration/orchestrations/:id': EXAMPLE,
  'GET /v2/markets': EXAMPLE,
  'GET /v2/all-markets/prices': EXAMPLE,
  'GET /v2/markets/:market/ticker': EXAMPLE,
  'GET /v2/markets/:market/historical-candles': ['limit=1000', 'max_data_points=1000'],
  'GET /v2/assets': EXAMPLE,
  'GET /v2/networks': EXAMPLE,
  'GET /v2/statements/payments': list(),
  'GET /v2/rewards/statements': list(),
  'GET /v2/rewards/statements/:id': EXAMPLE,
  'GET /v2/statements/:id/explanation': EXAMPLE,
  'GET /v2/rewards/rates': EXAMPLE,
  'POST /v2/transfer/crypto-withdrawals/bulk': EXAMPLE,
  'GET /v2/api-creds/credentials': list(),
  'POST /v2/api-creds/credentials/:client_id/rotate': EXAMPLE,
  'DELETE /v2/api-creds/credentials/:client_id': EXAMPLE,
  'PUT /v2/transfer/crypto-destination-address': EXAMPLE,
  'GET /v2/transfer/crypto-destination-addresses': list('addresses=nowhere'),
  'GET /v2/events': ['', 'order=DESC', `object_id=${NOTHING}`, 'type=transfer.wire_deposit.failed'],
  'GET /v2/audit-log': list('actions=webhook.delete', `subject_type=transfer&subject_ids=${NOTHING}`),
  'GET /v2/audit-log/verification': EXAMPLE,
  'GET /v2/events/:id': EXAMPLE,
  'POST /v2/webhooks': EXAMPLE,
  'GET /v2/webhooks': list(),
  'GET /v2/webhooks/:id': EXAMPLE,
  'PUT /v2/webhooks/:id': EXAMPLE,
  'DELETE /v2/webhooks/:id': EXAMPLE,
  'POST /v2/webhooks/:id/rotate-secret': EXAMPLE,
  'POST /v2/webhooks/:id/test': EXAMPLE,
  'POST /v2/webhooks/:id/recover': EXAMPLE,
  'GET /v2/webhooks/:id/deliveries': ['limit=100', 'limit=100&status=FAILED'],
  'GET /v2/webhooks/:id/deliveries/:delivery_id/attempts': EXAMPLE,
  'POST /v2/events/:id/resend': EXAMPLE,
  'GET /v2/policy': EXAMPLE,
  'PUT /v2/policy': EXAMPLE,
  'GET /v2/policy/versions': EXAMPLE,
  'GET /v2/transfer/limits/utilizations': EXAMPLE,
  'GET /v2/approvals': list(),
  'GET /v2/approvals/:id': EXAMPLE,
  'POST /v2/approvals/:id/approve': EXAMPLE,
  'POST /v2/approvals/:id/reject': EXAMPLE,
}

/** What is asked beside the operations: what has no end, no token or no record. */
const OTHERS: Record<string, Omit<Attack, 'name'>> = {
  stream: {
    method: 'GET',
    paths: ['/v2/events/stream'],
    headers: { 'last-event-id': '00000000-0000-7000-8000-000000000000' },
  },
  keys: { method: 'GET', paths: ['/oauth2/jwks'] },
  document: { method: 'GET', paths: ['/openapi.json'] },
  console: { method: 'GET', paths: ['/console/'] },
  problem: { method: 'GET', paths: ['/problems/insufficient-funds', '/v2/nowhere'] },
}

interface Attack {
  name: string
  method: string
  paths: string[]
  body?: string
  headers?: Record<string, string>
}

const nameOf = ({ method, url }: Operation) => `${method} ${url}`

let database: TestDatabase
let bursar: BursarProcess
let dataDir: string
let records: ExampleRecords
let mallory: string
let victim: { customer_id: string; profile_id: string; token: string }
let attacker: Worker

const tokenOf = async (client: { client_id: string; client_secret: string }): Promise<string> => {
  const answer = await fetch(`${bursar.address}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', ...client }),
  })
  return ((await answer.json()) as { access_token: string }).access_token
}

beforeAll(async () => {
  database = await cloneDatabase()
  dataDir = await mkdtemp(join(tmpdir(), 'bursar-neighbours-'))
  bursar = await spawnBursar({
    DATABASE_URL: database.url,
    BURSAR_DATA_DIR: dataDir,
    BURSAR_RATE_LIMIT_PER_SECOND: String(PER_SECOND),
    BURSAR_SIMULATED_CONFIRMATION_MS: '0',
    BURSAR_SIMULATED_PRICE_DAYS: '1',
    BURSAR_LOG_LEVEL: 'error',
  })
  records = (await demoRecords(database.db))!
  const credentials = JSON.parse(await readFile(join(dataDir, 'sandbox-credentials.json'), 'utf8')) as {
    client_id: string
    client_secret: string
  }
  mallory = await tokenOf(credentials)
  const { customer_id, profile_id } = await createCustomer(database.db, 'Victim')
  await credit(new Ledger(database.db), { customer_id, profile_id }, 'USD', '1000000')
  const client = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
  victim = { customer_id, profile_id, token: await tokenOf(client) }
  await insertHistory(records)
  attacker = new Worker(ATTACKER, { eval: true, workerData: { address: bursar.address, token: mallory } })
})
afterAll(async () => {
  await attacker?.terminate()
  await bursar?.end('SIGKILL')
  await database?.drop()
  await rm(dataDir, { recursive: true, force: true })
})

/** The attacker has a thread of its own: what it reads does not delay what the victim measures. */
const ATTACKER = `
const { parentPort, workerData: { address, token } } = require('node:worker_threads')
const http = require('node:http')
let agent, timer, statuses
parentPort.on('message', ({ attack, perSecond }) => {
  if (attack === undefined) {
    clearInterval(timer)
    agent.destroy()
    return parentPort.postMessage([...statuses])
  }
  agent = new http.Agent({ keepAlive: true, maxSockets: 200 })
  statuses = new Set()
  let sent = 0
  const send = () => {
    const { method, paths, body, headers } = attack
    const request = http.request(address + paths[sent++ % paths.length], {
      method, agent,
      headers: { authorization: 'Bearer ' + token, ...headers, ...(body && { 'content-type': 'application/json' }) },
    })
    request.on('response', (answer) => { statuses.add(answer.statusCode); answer.on('error', () => undefined).resume() })
    request.on('error', () => undefined)
    request.end(body)
  }
  for (let n = 0; n < perSecond / 4; n++) send()
  timer = setInterval(() => { for (let n = 0; n < perSecond / 50; n++) send() }, 20)
})`

/** A day's transfers, events and entries of the attacker, in statements of their own. */
async function insertHistory({ customer_id, profile_id }: ExampleRecords): Promise<void> {
  // An id of each moment of the last hour, and the time that it names: the same for each of the statements.
  const first = Date.now() - 3_600_000
  const made = `
    select n, (lpad(to_hex(millis), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8000' || lpad(to_hex(n), 12, '0'))::uuid as id,
           timestamptz 'epoch' + millis * interval '1 millisecond' as at
    from (select n, ${first} + n * 50 as millis
          from generate_series(1, ${HISTORY}) as n) t`
  for (const statement of [
    `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total,
                            created_at, updated_at, ref_id, destination_address, crypto_network,
                            crypto_tx_hash, crypto_tx_index, auto_conversion, notional_value)
     select $1, id, $2, 'CRYPTO_WITHDRAWAL', 'DEBIT', 'COMPLETED', 'USDP', 1.25, 1, 2.25, at, at, 'history-' || n,
            '0x52908400098527886E0F7030069857D2E4169EE7', 'ETHEREUM', '0x' || lpad(to_hex(n), 64, '0'), '0', '{}', 2.25
     from (${made}) made where $2::uuid is not null`,
    `insert into events (customer_id, id, created_at, type, object_id, is_test)
     select $1, id, at, 'transfer.crypto_withdrawal.completed', id, false from (${made}) made where $2::uuid is not null`,
    `insert into entries (customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version,
                          created_at)
     select $1, id, 'SETTLED', 7, 'profile', $2, 'USDC', 1, n, n, at from (${made}) made`,
  ])
    await database.owner.query(statement, [customer_id, profile_id])
  await database.owner.query('analyze')
}

function attackOf(operation: Operation): Attack {
  const { method, url, example } = operation
  const params = (example?.params ?? {}) as Record<string, string>
  const path = url.replaceAll(/:(\w+)/g, (_, name: string) => params[name] ?? NOTHING)
  const [body] = Object.values(example?.bodies ?? {}) as object[]
  const withdrawal = withdrawalOf(records)
  const text =
    nameOf(operation) === 'POST /v2/transfer/crypto-withdrawals/bulk'
      ? JSON.stringify({
          withdrawals: Array.from({ length: PER_SECOND }, (_, n) => ({ ...withdrawal, ref_id: `bulk-${n}` })),
        })
      : JSON.stringify(body)
  return {
    name: nameOf(operation),
    method,
    paths: (WORST[nameOf(operation)] ?? []).map((query) =>
      withRecords(query === '' ? path : `${path}?${query}`, records),
    ),
    ...(text !== undefined && { body: withRecords(text, records) }),
  }
}

/** Asks the victim's reads one after the other for this long; returns how long each took. */
async function reads(ms: number): Promise<number[]> {
  const paths = [
    `/v2/profiles/${victim.profile_id}/balances`,
    '/v2/transfer/transfers?limit=10',
    `/v2/profiles/${victim.profile_id}`,
  ]
  const took: number[] = []
  const end = performance.now() + ms
  for (let n = 0; performance.now() < end; n++) {
    const began = performance.now()
    const answer = await fetch(bursar.address + paths[n % paths.length]!, {
      headers: { authorization: `Bearer ${victim.token}` },
    })
    await answer.arrayBuffer()
    const ms = performance.now() - began
    took.push(answer.status === 200 ? ms : Infinity)
    // At half of the victim's own rate: it is to feel the attacker's limits, not its own.
    await pause(Math.max(0, 2_000 / PER_SECOND - ms))
  }
  return took
}

const p99 = (took: readonly number[]) => {
  const sorted = took.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))]!
}

let withdrawals = 0
async function withdraw(): Promise<number> {
  const answer = await fetch(`${bursar.address}/v2/transfer/crypto-withdrawals`, {
    method: 'POST',
    headers: { authorization: `Bearer ${victim.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...withdrawalOf(victim), ref_id: `victim-${++withdrawals}` }),
  })
  await answer.arrayBuffer()
  return answer.status
}

const answerOf = (worker: Worker) =>
  new Promise<number[]>((resolve) => worker.once('message', (statuses: number[]) => resolve(statuses)))

const idle: number[] = []

/** Attacks once. Returns what the victim felt: undefined where that is little. */
async function feltOf(attack: Attack): Promise<string | undefined> {
  const before = await reads(IDLE_MS)
  idle.push(...before)
  attacker.postMessage({ attack, perSecond: PER_SECOND })
  const [took, status] = await Promise.all([reads(ATTACKED_MS), pause(ATTACKED_MS / 2).then(withdraw)])
  const ended = answerOf(attacker)
  attacker.postMessage({})
  const statuses = await ended
  const most = Math.max(QUICK_MS, TIMES_MAX * Math.max(p99(idle), p99(before)))
  if (statuses.includes(500)) return `${attack.name}: 500`
  if (status !== 200) return `${attack.name}: a withdrawal of the victim is ${status}`
  return p99(took) <= most
    ? undefined
    : `${attack.name}: ${Math.round(p99(took))} ms, ${Math.round(most)} at most`
}

test('each operation has its worst arguments', () => {
  expect(Object.keys(WORST).toSorted()).toEqual(ATTACKS.map(nameOf).toSorted())
})

test('no operation of one customer stops another', async () => {
  const attacks = [
    ...ATTACKS.map(attackOf),
    ...Object.entries(OTHERS).map(([name, other]) => ({ name, ...other })),
  ]
  // The first requests of a process are slow.
  await reads(1_000)
  const felt: string[] = []
  for (const attack of partOf(attacks)) {
    let last: string | undefined
    for (let tried = 0; tried < TRIES && (tried === 0 || last !== undefined); tried++)
      last = await feltOf(attack)
    if (last !== undefined) felt.push(last)
  }
  expect(felt).toEqual([])
  const pending = async () =>
    (
      await database.owner.query(`select 1 from transfers where customer_id = $1 and status <> 'COMPLETED'`, [
        victim.customer_id,
      ])
    ).rowCount
  await expect.poll(pending, { timeout: 60_000, interval: 200 }).toBe(0)
})
