/*
 * Two API processes, each with a worker, on one database; 64 clients spread over both. Invariants:
 * 1. the balance is never below zero;
 * 2. of all requests with one ref_id at most one succeeds, and exactly one if the funds last;
 * 3. every other request gets 409 with the current record of the winner;
 * 4. the balance falls by the sum of the successes, and by nothing else;
 * 5. a guaranteed fee is used once.
 */
import { afterAll, expect, test, vi } from 'vitest'
import { parseAmount } from '../src/contract/assets/amount.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { verifyAuditChains } from '../src/money/verify/audit-chains.ts'
import { verify } from '../src/money/verify/verify.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { ROW_MACS, BASE_URL, credit, remoteCaller, spawnBursar, ownDatabase } from './support.ts'
import type { BursarProcess } from './support.ts'
import { ownFolder } from './at-end.ts'

const CLIENTS = 64

const processes: BursarProcess[] = []

const database = await ownDatabase()
const dataDir = await ownFolder()
const customer = await createCustomer(database.db, 'Test')
const client = await createApiClient(database.db, ROW_MACS, customer.customer_id, SCOPES)
const start = async () => {
  const started = await spawnBursar({
    DATABASE_URL: database.url,
    BURSAR_DATA_DIR: dataDir,
    // Both processes name the same token issuer.
    BURSAR_BASE_URL: BASE_URL,
    BURSAR_WORKER_INTERVAL_MS: '20',
    BURSAR_SIMULATED_CONFIRMATION_MS: '100',
  })
  processes.push(started)
  return remoteCaller(started.address, client)
}
/** One per process. */
const callers = await Promise.all([start(), start()])
afterAll(() => Promise.all(processes.map((process) => process.end('SIGKILL'))))

interface Answer {
  status: number
  body: Transfer & { type: string; meta: Record<string, unknown> }
}

/** Sends the withdrawals of the list, 64 at a time, each client to one process. Returns the answers in order. */
async function withdrawAll(bodies: object[]): Promise<Answer[]> {
  const answers: Answer[] = []
  let next = 0
  const client = async (number: number) => {
    const call = callers[number % callers.length]!
    while (next < bodies.length) {
      const index = next++
      answers[index] = await call('POST', '/v2/transfer/crypto-withdrawals', bodies[index])
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
  return answers
}

const withdrawal = (amount: string, ref_id: string) => ({
  profile_id: customer.profile_id,
  asset: 'USDP',
  balance_asset: 'USD',
  crypto_network: 'SOLANA',
  destination_address: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
  amount,
  ref_id,
})

const cents = (text: string) => parseAmount(text, 2)!
const sumOf = (transfers: Transfer[]) => transfers.reduce((sum, { total }) => sum + cents(total), 0n)

async function available(asset = 'USD'): Promise<bigint> {
  const balance = await callers[0]<{ available: string }>(
    'GET',
    `/v2/profiles/${customer.profile_id}/balances/${asset}`,
  )
  expect(balance.status).toBe(200)
  return cents(balance.body.available)
}

const fund = (amount: string) => credit(new Ledger(database.db), customer, 'USD', amount)

/** Leaves out the fields that settlement changes; the others stay as first answered. */
function withoutProgress(transfer: Transfer): Partial<Transfer> {
  const { status, updated_at, crypto_tx_hash, crypto_tx_index, ...rest } = transfer
  expect(['PENDING', 'COMPLETED']).toContain(status)
  expect(updated_at >= transfer.created_at).toBe(true)
  expect(status === 'COMPLETED').toBe(crypto_tx_hash !== undefined && crypto_tx_index !== undefined)
  return rest
}

/** Returns the winner of each ref_id. Fails if a ref_id has two. */
function winnersOf(answers: Answer[]): Map<string, Transfer> {
  const winners = new Map<string, Transfer>()
  for (const { status, body } of answers) {
    if (status !== 200) continue
    expect(winners.has(body.ref_id!), `${body.ref_id} succeeded twice`).toBe(false)
    winners.set(body.ref_id!, body)
  }
  return winners
}

function requireExisting({ status, body }: Answer, winner: Transfer): void {
  expect({ status, type: body.type }).toEqual({ status: 409, type: `${BASE_URL}/problems/already-exists` })
  expect(withoutProgress(body.meta.existing as Transfer)).toEqual(withoutProgress(winner))
}

/** Both workers settle the accepted transfers. Then the ledger is balanced and each transfer was paid once. */
async function requireSettled(accepted: Transfer[]): Promise<void> {
  const open = "select 1 from transfers where status = 'PENDING'"
  await vi.waitUntil(async () => (await database.db.query(open)).rowCount === 0, { timeout: 30_000 })
  expect((await verify(database.db)).disagreements).toEqual([])
  expect((await verifyAuditChains(database.db)).faults).toEqual([])
  const chain = await database.db.query<{ transfer_id: string }>(
    `select convert_from(raw_transaction, 'UTF8')::json ->> 'transfer_id' as transfer_id from simulated_chain`,
  )
  const paid = chain.rows.map(({ transfer_id }) => transfer_id)
  expect(new Set(paid).size).toBe(paid.length)
  expect(paid).toEqual(expect.arrayContaining(accepted.map(({ id }) => id)))
}

test('with enough funds, each ref_id succeeds once and every loser gets the record', async () => {
  const REF_IDS = 300
  const ATTEMPTS = 4
  await fund('1000')
  const before = await available()
  // Consecutive attempts at a ref_id have different amounts, so that several are under way simultaneously.
  const bodies = Array.from({ length: REF_IDS * ATTEMPTS }, (_, index) =>
    withdrawal(`1.${11 + (index % ATTEMPTS)}`, `enough-${Math.floor(index / ATTEMPTS)}`),
  )
  const answers = await withdrawAll(bodies)

  const winners = winnersOf(answers)
  expect(winners.size).toBe(REF_IDS)
  const losers = answers.filter(({ status }) => status !== 200)
  expect(losers).toHaveLength(REF_IDS * (ATTEMPTS - 1))
  answers.forEach((answer, index) => {
    const winner = winners.get(`enough-${Math.floor(index / ATTEMPTS)}`)!
    if (answer.status === 200) expect(answer.body).toMatchObject(bodies[index]!)
    else requireExisting(answer, winner)
  })
  expect(before - (await available())).toBe(sumOf([...winners.values()]))
  await requireSettled([...winners.values()])
})

test('with funds for some, the balance falls until no request fits, and never below zero', async () => {
  const REF_IDS = 200
  await fund('50')
  const before = await available()
  // Another client reads the balance meanwhile.
  const seen: bigint[] = []
  let spending = true
  const watching = (async () => {
    while (spending) seen.push(await available())
  })()

  const amounts = ['1.9', '2.4', '7.05']
  const once = Array.from({ length: REF_IDS }, (_, ref) =>
    withdrawal(amounts[ref % amounts.length]!, `some-${ref}`),
  )
  // Each request twice in a row while funds last, and once more after that: a repeat must still get its 409.
  const bodies = [...once.flatMap((body) => [body, body]), ...once]
  const answers = await withdrawAll(bodies).finally(() => (spending = false))
  await watching

  const winners = winnersOf(answers)
  expect(winners.size).toBeGreaterThan(0)
  expect(winners.size).toBeLessThan(REF_IDS)
  answers.forEach((answer, index) => {
    if (answer.status === 200) return
    const winner = winners.get(bodies[index]!.ref_id)
    // The balance only falls, so a request that was refused for funds cannot succeed later.
    if (winner !== undefined) return requireExisting(answer, winner)
    const { available, needed } = answer.body.meta as { available: string; needed: string }
    expect(answer).toMatchObject({ status: 403, body: { type: `${BASE_URL}/problems/insufficient-funds` } })
    expect(cents(available)).toBeLessThan(cents(needed))
    expect(cents(available)).toBeGreaterThanOrEqual(0n)
  })
  const after = await available()
  expect(before - after).toBe(sumOf([...winners.values()]))
  const cheapestRefused = answers
    .filter(({ status }) => status === 403)
    .reduce((least, { body }) => {
      const needed = cents(String(body.meta.needed))
      return needed < least ? needed : least
    }, before)
  expect(after).toBeLessThan(cheapestRefused)
  for (const balance of seen) expect(balance >= after && balance <= before).toBe(true)
  await requireSettled([...winners.values()])
})

test('a guaranteed fee is used by one withdrawal', async () => {
  await fund('1000')
  const terms = withdrawal('2', 'quote')
  const quote = await callers[1]<{ id: string; fee: string }>('POST', '/v2/transfer/fees/crypto-withdrawal', {
    asset: terms.asset,
    crypto_network: terms.crypto_network,
    destination_address: terms.destination_address,
    amount: terms.amount,
  })
  expect(quote.status).toBe(200)
  const answers = await withdrawAll(
    Array.from({ length: CLIENTS }, (_, index) => ({
      ...withdrawal('2', `quote-${index}`),
      fee_id: quote.body.id,
    })),
  )
  const winners = [...winnersOf(answers).values()]
  expect(winners).toHaveLength(1)
  for (const { status, body } of answers) {
    if (status === 200) continue
    expect({ status, type: body.type }).toEqual({ status: 403, type: `${BASE_URL}/problems/expired` })
  }
  await requireSettled(winners)
})
