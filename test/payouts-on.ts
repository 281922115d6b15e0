import { expect } from 'vitest'
import { parseStoredAmount } from '../src/contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import type { Database } from '../src/db/database.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import type { Networks } from '../src/networks/network.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { credit, type TestCustomer, type TestService } from './support.ts'
import { hurryUnlocked } from './work-off.ts'

/* What the tests of a network's adapter order by the API, run as the worker does, and read from the records. */

/** Orders a withdrawal, from a balance that is credited for it unless `credited` is null. */
export async function order(
  { ledger }: Pick<TestService, 'ledger'>,
  customer: TestCustomer,
  asked: {
    crypto_network: CryptoNetwork
    asset: string
    amount: string
    destination_address: string
    memo?: string
  },
  credited: string | null = '1000',
): Promise<Transfer> {
  if (credited !== null) await credit(ledger, customer, asked.asset, credited)
  const body = { profile_id: customer.profile_id, ...asked }
  const { status, body: transfer } = await customer.call<Transfer>(
    'POST',
    '/v2/transfer/crypto-withdrawals',
    body,
  )
  expect({ status, transfer }).toMatchObject({ status: 200, transfer: { status: 'PENDING' } })
  return transfer
}

export const readTransfer = async (customer: TestCustomer, { id }: { id: string }): Promise<Transfer> =>
  (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body

/** How far the payout of a withdrawal is, and its bytes. */
export async function keptOf(db: Database, { id }: { id: string }) {
  const { rows } = await db.query<{
    state: string
    crypto_tx_hash: string
    raw_transaction: Buffer | null
    waiting_code: string | null
    waiting_detail: string | null
  }>(
    `
    select b.state, b.crypto_tx_hash, coalesce(b.raw_transaction, n.raw_transaction) as raw_transaction,
           b.waiting_code, b.waiting_detail
    from outgoing_transfers b
    left join network_transactions n on n.network = b.network and n.crypto_tx_hash = b.crypto_tx_hash
    where b.transfer_id = $1`,
    [id],
  )
  return rows[0]!
}

/** The codes of waiting, by which metrics and alerts classify. */
export const codesOf = (db: Database, transfers: readonly { id: string }[]): Promise<(string | null)[]> =>
  Promise.all(transfers.map(async (one) => (await keptOf(db, one)).waiting_code))

/** The reasons of waiting, for people. */
export const reasonsOf = (db: Database, transfers: readonly { id: string }[]): Promise<(string | null)[]> =>
  Promise.all(transfers.map(async (one) => (await keptOf(db, one)).waiting_detail))

/** One round of the worker on this database, with everything due. */
export async function work(db: Database, networks: Networks, worker: Database = db): Promise<void> {
  await hurryUnlocked(db, { endLeases: true })
  await settleWithdrawals(worker, networks)
}

const ROUNDS_MAX = 200

/** Runs the worker until these transfers, or all, have ended. Returns the number of rounds. */
export async function settle(
  db: Database,
  networks: Networks,
  betweenRounds: () => unknown,
  transfers?: readonly { id: string }[],
): Promise<number> {
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    await work(db, networks)
    await betweenRounds()
    const { rowCount } = await db.query(
      `select from transfers where status = 'PENDING' and ($1::uuid[] is null or id = any ($1))`,
      [transfers?.map(({ id }) => id) ?? null],
    )
    if (rowCount === 0) return round
  }
  const { rows } = await db.query(
    'select state, waiting_code, waiting_detail from outgoing_transfers where due_at is not null limit 3',
  )
  throw new Error(`the worker does not come to an end: ${JSON.stringify(rows)}`)
}

/** The sum of an account of the ledger in minor units: of these customers, or of all. */
export async function sumOn(
  db: Database,
  account: string,
  asset: string,
  customers?: readonly { customer_id: string }[],
): Promise<bigint> {
  const { rows } = await db.query<{ sum: string }>(
    `
    select coalesce(sum(amount), 0)::text as sum from entries
    where account = $1 and asset = $2 and ($3::uuid[] is null or customer_id = any ($3))`,
    [account, asset, customers?.map(({ customer_id }) => customer_id) ?? null],
  )
  return parseStoredAmount(rows[0]!.sum, decimalsOf(asset))
}
