import { parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { originOfLoop, type Origin } from '../../contract/actor.ts'
import type { AuditAction } from '../../contract/audit-actions.ts'
import { problem } from '../../contract/problems.ts'
import type { Transaction } from '../../db/database.ts'
import { grouped } from '../../db/rows.ts'
import {
  coldEntries,
  networkFeeEntries,
  onPlatform,
  type Entry,
  type PlatformAccount,
  type Posting,
} from '../../money/ledger/entries.ts'
import { ownRowMacs } from '../../audit/sealed-rows.ts'
import { LedgerTransaction, type ChangedTransfer } from '../../money/ledger/ledger-transaction.ts'
import { endApprovalsOf } from '../../governance/approvals/approval.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { endOrchestrations, type EndedTransfer } from '../../money/records/orchestration.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import type { PayoutNetwork } from '../../networks/network.ts'
import { keepTransactions, keepUsedBy } from '../../networks/network-transactions.ts'
import { isSimulatedPayment } from '../../networks/simulated/adapter.ts'
import type { Step } from './next-step.ts'
import { TakenMeanwhile, updateOutgoing } from '../../networks/outgoing-transfers.ts'
import { requireAccepted } from '../../money/movements/accepted-withdrawals.ts'

/**
 * Records the steps of one customer in the ledger, on the transfers, their orchestrations and in outgoing_transfers; the
 * caller's transaction commits them together. Throws TakenMeanwhile unless each withdrawal still has the state and the
 * transaction that it was claimed with. The cause is that of all steps: the worker's loop where it is absent.
 */
export async function record(
  tx: Transaction,
  customerId: string,
  steps: Step[],
  { origin, action }: Cause = SETTLEMENT,
): Promise<void> {
  // First, because this locks the rows and compares them with the claim.
  await updateOutgoing(tx, customerId, steps)
  for (const { withdrawal, usedBy } of steps) {
    if (usedBy === undefined) continue
    await keepUsedBy(tx, withdrawal, usedBy)
    const changes = { after: { used_by: usedBy } }
    await recordNow(
      tx,
      customerId,
      audited(origin, action ?? 'transfer.void', withdrawal.transfer_id, changes),
    )
  }
  const changed = steps.filter((step) => step.transfer !== undefined)
  if (changed.length > 0) {
    const completed = changed.filter((step) => step.transfer!.status === 'COMPLETED')
    const refused = changed.filter((step) => step.transfer!.status === 'FAILED')
    const postings = [...completed.map(settlement), ...(await refunds(tx, customerId, refused))]
    const keys = postings.flatMap(({ entries }) =>
      entries.flatMap(({ profile_id, asset }) => (profile_id === null ? [] : [{ profile_id, asset }])),
    )
    const ledger = await LedgerTransaction.open(tx, customerId, keys)
    ledger.post(...postings.map((posting) => ({ ...posting, origin, action })))
    // The others stay PENDING, with another secondary_status or hash: their status does not change.
    await ledger.write([], [...completed, ...refused].map(changedTransferOf))
    await updateTransfers(tx, customerId, changed, ledger.now.text)
    await endOrchestrations(tx, customerId, [...completed, ...refused].map(endOf), ledger.now, origin)
    await endApprovalsOf(tx, customerId, refused.map(idOf), ledger.now, origin)
  }
}

/** Records the steps of several customers in one transaction, in the order in which balances are locked. */
export async function recordAll(
  tx: Transaction,
  network: PayoutNetwork,
  steps: readonly Step[],
): Promise<void> {
  await keepTransactions(
    tx,
    network,
    steps.flatMap(({ withdrawal: { customer_id, transfer_id }, signed }) =>
      signed === undefined ? [] : { ...signed, customer_id, transfer_id },
    ),
  )
  const own = grouped(steps, ({ withdrawal }) => withdrawal.customer_id)
  for (const customerId of [...own.keys()].sort()) await record(tx, customerId, own.get(customerId)!)
}

export interface Cause {
  origin: Origin
  /** The action in the audit log, where it is not `transfer.complete`, `transfer.fail` or `transfer.void`. */
  action?: AuditAction
}

const SETTLEMENT: Cause = { origin: originOfLoop('settlement') }

type StepPosting = Omit<Posting, 'origin' | 'action'>

const idOf = ({ withdrawal }: Step) => withdrawal.transfer_id

const changedTransferOf = ({ withdrawal, transfer }: Step): ChangedTransfer => ({
  id: withdrawal.transfer_id,
  type: withdrawal.network === 'WIRE' ? 'WIRE_WITHDRAWAL' : 'CRYPTO_WITHDRAWAL',
  status: transfer!.status,
})

function endOf({ withdrawal: { transfer_id }, transfer }: Step): EndedTransfer {
  const { status, secondary_status, status_details = {} } = transfer!
  if (status === 'COMPLETED') return { transfer_id, status }
  const [why] = Object.values(status_details)
  const reason = why?.message ?? secondary_status?.detail ?? 'the network refused it'
  return { transfer_id, status: 'FAILED', detail: `the destination transfer failed: ${reason}` }
}

/**
 * The entries of a completed transfer: the amount in flight leaves custody (for a wire, the bank; in a simulation, its own
 * account). A transfer of the platform moves from custody to cold storage; a consolidation stays in custody.
 */
function settlement(step: Step): StepPosting {
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

function leftFrom({ network, raw_transaction }: Step['withdrawal']): PlatformAccount {
  if (network === 'WIRE') return 'bank'
  const simulated = raw_transaction !== null && isSimulatedPayment({ raw_transaction })
  return simulated ? `simulated:${network}` : `custody:${network}`
}

function feeEntries({ withdrawal: { network }, networkFee }: Step): Entry[] {
  if (networkFee === undefined || network === 'WIRE') return []
  const { asset, amount } = networkFee
  return networkFeeEntries(network, asset, parseAmount(amount, decimalsOf(asset))!)
}

/**
 * The reversed entries of the creation: the profile gets back its total, in the asset that was debited. A transfer of the
 * platform has none. The service's database role can insert withdrawals and entries, and set back what has ended. So only
 * the total of an accepted withdrawal is given back, and none that was paid.
 */
async function refunds(tx: Transaction, customerId: string, steps: Step[]): Promise<StepPosting[]> {
  if (steps.length === 0) return []
  if (customerId !== PLATFORM_ID) {
    await requireAccepted(tx, await ownRowMacs(), customerId, steps.map(idOf))
  }
  const { rows } = await tx.query<
    Omit<Entry, 'amount'> & { transfer_id: string; amount: string; total: string; event: string }
  >({
    text: `
      select e.transfer_id, e.event, e.account, e.profile_id, e.asset, e.amount, t.total
      from entries e
      join transfers t on t.customer_id = $1 and t.id = e.transfer_id
      where e.customer_id = $1 and e.transfer_id = any ($2::uuid[]) and e.event in ('CREATED', 'SETTLED')
      order by e.transfer_id, e.position`,
    values: [customerId, steps.map(idOf)],
  })
  return steps.map((step) => {
    const { transfer_id } = step.withdrawal
    const created = rows.filter((row) => row.transfer_id === transfer_id)
    if (created.some(({ event }) => event === 'SETTLED'))
      throw problem.unavailable(`withdrawal ${transfer_id} was paid before; nothing is given back for it`)
    const [debit, ...more] = created.filter(({ profile_id }) => profile_id !== null)
    const minorOf = (amount: string) => parseStoredAmount(amount, decimalsOf(debit!.asset))
    if (more.length > 0 || (debit && minorOf(debit.amount) !== -minorOf(debit.total)))
      throw problem.unavailable(
        `withdrawal ${transfer_id} has entries that its creation did not post; nothing is given back for it`,
      )
    const turned = created.map(({ account, profile_id, asset, amount }) => {
      return { account, profile_id, asset, amount: -parseStoredAmount(amount, decimalsOf(asset)) }
    })
    return { transfer_id, event: 'REFUNDED', entries: [...turned, ...feeEntries(step)] }
  })
}

const UPDATE = `
      update transfers t
      set status = c.status, secondary_status = c.secondary_status, status_details = c.status_details,
          crypto_tx_hash = c.crypto_tx_hash, crypto_tx_index = c.crypto_tx_index, updated_at = $2
      from json_to_recordset($3) as c (id uuid, status text, secondary_status jsonb, status_details jsonb,
                                       crypto_tx_hash text, crypto_tx_index text)
      where t.customer_id = $1 and t.id = any ($4::uuid[]) and t.id = c.id and t.status = 'PENDING'`

async function updateTransfers(tx: Transaction, customerId: string, steps: Step[], now: string) {
  const { rowCount } = await tx.query(UPDATE, [
    customerId,
    now,
    JSON.stringify(steps.map(({ withdrawal, transfer }) => ({ id: withdrawal.transfer_id, ...transfer }))),
    steps.map(idOf),
  ])
  if (rowCount !== steps.length) throw new TakenMeanwhile(steps.length - rowCount!)
}
