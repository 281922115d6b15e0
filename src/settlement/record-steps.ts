import { parseAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import type { Transaction } from '../db/database.ts'
import {
  coldEntries,
  networkFeeEntries,
  onPlatform,
  type Entry,
  type PlatformAccount,
  type Posting,
} from '../ledger/entries.ts'
import { LedgerTransaction } from '../ledger/ledger-transaction.ts'
import { endOrchestrations, type EndedTransfer } from '../records/orchestration.ts'
import { PLATFORM_ID } from '../records/treasury.ts'
import type { SecondaryStatus, StatusDetails } from '../contract/transfer-status.ts'
import type { Network, NetworkFee, SignedTransaction, Withdrawal } from '../networks/network.ts'
import type { WaitingReason } from '../networks/waiting.ts'
import { isSimulated } from '../networks/simulated/adapter.ts'
import type { Claimed, State } from './lease.ts'

/** What became of a claimed withdrawal: its next state, and what changes on the transfer. */
export interface Step {
  /** As it was claimed: it must still be so. */
  withdrawal: Withdrawal & Pick<Claimed, 'state' | 'crypto_tx_hash' | 'raw_transaction'>
  state: Exclude<State, 'NEW'> | 'DONE'
  signed?: SignedTransaction
  /** What is signed replaces what was. */
  replaces?: true
  /** Why it could not be signed yet, or was not taken. */
  waitingReason?: WaitingReason
  /** What its transaction has really cost. */
  networkFee?: NetworkFee | undefined
  /** When to look again; none when done. */
  dueInMs?: number
  /** The transfer's new values; absent when it stays as it is. */
  transfer?: {
    status: 'PENDING' | 'COMPLETED' | 'FAILED'
    secondary_status?: SecondaryStatus | undefined
    status_details?: StatusDetails | undefined
    crypto_tx_hash?: string
    crypto_tx_index?: string
  }
}

/** Between the claim and now, somebody else took a withdrawal further: nothing of these steps may be recorded. */
export class TakenMeanwhile extends Error {
  constructor(count: number) {
    super(`${count} withdrawals were taken further by another worker or an operator meanwhile`)
    this.name = 'TakenMeanwhile'
  }
}

/**
 * Writes the steps of one customer: ledger, transfers, outgoing transfers. The caller's transaction commits them together. Each
 * withdrawal must be as it was claimed, in its state and with its transaction: throws TakenMeanwhile otherwise.
 */
export async function record(tx: Transaction, customerId: string, steps: Step[]): Promise<void> {
  // First: it locks the rows, and finds out whether they are as they were.
  await updateBroadcasts(tx, customerId, steps)
  const changed = steps.filter((step) => step.transfer !== undefined)
  if (changed.length > 0) {
    const completed = changed.filter((step) => step.transfer!.status === 'COMPLETED')
    const refused = changed.filter((step) => step.transfer!.status === 'FAILED')
    const postings = [...completed.map(settlement), ...(await refunds(tx, customerId, refused))]
    const keys = postings.flatMap(({ entries }) =>
      entries.flatMap(({ profile_id, asset }) => (profile_id === null ? [] : [{ profile_id, asset }])),
    )
    const ledger = await LedgerTransaction.open(tx, customerId, keys)
    ledger.post(...postings)
    await ledger.write()
    await updateTransfers(tx, customerId, changed, ledger.now.text)
    await endOrchestrations(tx, customerId, [...completed, ...refused].map(endOf), ledger.now.text)
  }
}

function endOf({ withdrawal: { transfer_id }, transfer }: Step): EndedTransfer {
  const { status, secondary_status, status_details = {} } = transfer!
  if (status === 'COMPLETED') return { transfer_id, status }
  const [why] = Object.values(status_details)
  const reason = why?.message ?? secondary_status?.detail ?? 'the network refused it'
  return { transfer_id, status: 'FAILED', detail: `the destination transfer failed: ${reason}` }
}

/**
 * In flight to custody (for a wire, to the bank; in a simulation, to its own): the money has left. The platform's own goes
 * from custody to cold storage; what it consolidates stays in custody.
 */
function settlement(step: Step): Posting {
  const { withdrawal } = step
  const { customer_id, transfer_id, asset, network, consolidation_fee_max = null } = withdrawal
  const amount = parseAmount(withdrawal.amount, decimalsOf(asset))!
  if (customer_id === PLATFORM_ID && network !== 'WIRE') {
    const moved = consolidation_fee_max === null ? coldEntries(network, asset, amount) : []
    return { transfer_id, event: 'SETTLED', entries: [...moved, ...feeEntries(step)] }
  }
  const entries = [
    onPlatform(`in_flight:${network}`, asset, -amount),
    onPlatform(leftFrom(withdrawal), asset, amount),
    ...feeEntries(step),
  ]
  return { transfer_id, event: 'SETTLED', entries }
}

/** Where the money was that has left. */
function leftFrom({ network, raw_transaction }: Step['withdrawal']): PlatformAccount {
  if (network === 'WIRE') return 'bank'
  const simulated = raw_transaction !== null && isSimulated({ raw_transaction })
  return simulated ? `simulated:${network}` : `custody:${network}`
}

function feeEntries({ withdrawal: { network }, networkFee }: Step): Entry[] {
  if (networkFee === undefined || network === 'WIRE') return []
  const { asset, amount } = networkFee
  return networkFeeEntries(network, asset, parseAmount(amount, decimalsOf(asset))!)
}

/**
 * The creation's entries turned around: the profile gets back its total, in the asset that was debited. What the platform
 * moves for itself has none.
 */
async function refunds(tx: Transaction, customerId: string, steps: Step[]): Promise<Posting[]> {
  if (steps.length === 0) return []
  const { rows } = await tx.query<Omit<Entry, 'amount'> & { transfer_id: string; amount: string }>({
    text: `
      select transfer_id, account, profile_id, asset, amount
      from entries
      where customer_id = $1 and transfer_id = any ($2::uuid[]) and event = 'CREATED'
      order by transfer_id, position`,
    values: [customerId, steps.map(({ withdrawal }) => withdrawal.transfer_id)],
  })
  return steps.map((step) => {
    const { transfer_id } = step.withdrawal
    const created = rows.filter((row) => row.transfer_id === transfer_id)
    const turned = created.map(({ account, profile_id, asset, amount }) => {
      return { account, profile_id, asset, amount: -parseStoredAmount(amount, decimalsOf(asset)) }
    })
    return { transfer_id, event: 'REFUNDED', entries: [...turned, ...feeEntries(step)] }
  })
}

async function updateTransfers(
  tx: Transaction,
  customerId: string,
  steps: Step[],
  now: string,
): Promise<void> {
  const { rowCount } = await tx.query({
    text: `
      update transfers t
      set status = c.status, secondary_status = c.secondary_status, status_details = c.status_details,
          crypto_tx_hash = c.crypto_tx_hash, crypto_tx_index = c.crypto_tx_index, updated_at = $2
      from (
        select *, (select ctid from transfers where customer_id = $1 and id = c.id and status = 'PENDING') as place
        from json_to_recordset($3) as c (id uuid, status text, secondary_status jsonb, status_details jsonb,
                                         crypto_tx_hash text, crypto_tx_index text)
      ) c
      where t.ctid = c.place`,
    values: [
      customerId,
      now,
      JSON.stringify(steps.map(({ withdrawal, transfer }) => ({ id: withdrawal.transfer_id, ...transfer }))),
    ],
  })
  if (rowCount !== steps.length) throw new TakenMeanwhile(steps.length - rowCount!)
}

/** Keeps the bytes of transactions that pay several of these withdrawals, once. */
export async function keepTransactions(
  tx: Transaction,
  network: Network,
  signed: readonly SignedTransaction[],
  kind: 'WITHDRAWALS' | 'MARKED' = 'WITHDRAWALS',
): Promise<void> {
  const once = [...new Map(signed.map((one) => [one.crypto_tx_hash, one])).values()]
  const shared = once.filter(({ payments }) => payments !== undefined)
  if (shared.length === 0) return
  await tx.query(
    `
    insert into network_transactions (network, crypto_tx_hash, raw_transaction, kind, payments, signed_at)
    select $1, hash, raw, $2, payments, clock_timestamp()
    from unnest($3::text[], $4::bytea[], $5::int[]) as s (hash, raw, payments)
    on conflict (network, crypto_tx_hash) do nothing`,
    [
      network,
      kind,
      shared.map(({ crypto_tx_hash }) => crypto_tx_hash),
      shared.map(({ raw_transaction }) => raw_transaction),
      shared.map(({ payments }) => payments),
    ],
  )
}

async function updateBroadcasts(tx: Transaction, customerId: string, steps: Step[]): Promise<void> {
  await keepReplaced(
    tx,
    customerId,
    steps.flatMap(({ withdrawal, replaces }) => (replaces ? withdrawal.transfer_id : [])),
  )
  const { rowCount } = await tx.query({
    text: `
      update outgoing_transfers b
      set state = s.state,
          leased_until = null,
          raw_transaction = case when s.crypto_tx_hash is null then b.raw_transaction else s.raw_transaction end,
          crypto_tx_hash = coalesce(s.crypto_tx_hash, b.crypto_tx_hash),
          crypto_tx_index = coalesce(s.crypto_tx_index, b.crypto_tx_index),
          due_at = clock_timestamp() + make_interval(secs => s.due_in_ms::float8 / 1000),
          waiting_code = s.waiting_code,
          waiting_detail = s.waiting_detail,
          -- It keeps the hot wallet's money by how long that is too little, and not by how long it was frozen before.
          waiting_since = case when s.waiting_code is null then null
                               when s.waiting_code = 'HOT_WALLET_SHORT' and b.waiting_code <> 'HOT_WALLET_SHORT'
                               then clock_timestamp()
                               else coalesce(b.waiting_since, clock_timestamp()) end
      from (
        select *, (select ctid from outgoing_transfers where customer_id = $1 and transfer_id = s.transfer_id) as place
        from unnest($2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::int[], $7::text[], $8::text[], $9::text[], $10::text[],
                    $11::text[])
          as s (transfer_id, state, raw_transaction, crypto_tx_hash, due_in_ms, waiting_code, waiting_detail, was, hash_was,
                crypto_tx_index)
      ) s
      where b.ctid = s.place and b.state = s.was and b.crypto_tx_hash is not distinct from s.hash_was`,
    values: [
      customerId,
      steps.map((step) => step.withdrawal.transfer_id),
      steps.map((step) => step.state),
      // Of one that pays several, network_transactions has the bytes.
      steps.map(({ signed }) => (signed?.payments === undefined ? (signed?.raw_transaction ?? null) : null)),
      steps.map((step) => step.signed?.crypto_tx_hash ?? null),
      steps.map((step) => step.dueInMs ?? null),
      steps.map((step) => step.waitingReason?.code ?? null),
      steps.map((step) => step.waitingReason?.detail ?? null),
      // A claim begins a new one as HELD.
      steps.map(({ withdrawal: { state } }) => (state === 'NEW' ? 'HELD' : state)),
      steps.map(({ withdrawal }) => withdrawal.crypto_tx_hash),
      steps.map((step) => step.signed?.crypto_tx_index ?? null),
    ],
  })
  if (rowCount !== steps.length) throw new TakenMeanwhile(steps.length - rowCount!)
}

/** What was signed before stays on record: it may have got through. */
export async function keepReplaced(
  tx: Transaction,
  customerId: string,
  transferIds: string[],
): Promise<void> {
  if (transferIds.length === 0) return
  await tx.query(
    `
    insert into replaced_transactions (customer_id, transfer_id, crypto_tx_hash, raw_transaction, replaced_at)
    select customer_id, transfer_id, crypto_tx_hash, raw_transaction, clock_timestamp()
    from outgoing_transfers
    where customer_id = $1 and transfer_id = any ($2::uuid[])`,
    [customerId, transferIds],
  )
}
