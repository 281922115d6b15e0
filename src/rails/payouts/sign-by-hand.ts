import type { Origin } from '../../contract/actor.ts'
import { Refusal } from '../../contract/refusal.ts'
import type { AuditAction } from '../../contract/audit-actions.ts'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { byCustomer, grouped } from '../../db/rows.ts'
import type { BroadcastWithdrawal, NetworkAdapter } from '../../networks/network.ts'
import { freeWhatHasEnded, keepTransactions, selectPayees } from '../../networks/network-transactions.ts'
import type { OpenByHand, SignedByHand } from '../../networks/signed-by-hand.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { freezesOfSigning } from '../../money/records/freezes.ts'
import { signAlone } from './lease.ts'
import { checkBeforeSigning } from './check-before-signing.ts'
import { replacedStep, type Step } from './next-step.ts'
import {
  JOIN_TRANSFER,
  SELECT_CLAIMED,
  withReplaced,
  type ClaimedRow,
  type KeptWithdrawal,
} from './claimed-withdrawals.ts'
import { recordAll } from './record-steps.ts'
import { signOnlyAccepted } from './sign-only-accepted.ts'
import { objectionsTo } from '../../money/movements/accepted-withdrawals.ts'

/** Payments that a person signs outside of Bursar, by operators' commands: what is asked for, its PSBT, and what was signed. */

/** A network as these commands work with it. */
export interface ByHand {
  db: Database
  network: CryptoNetwork
  adapter: NetworkAdapter
  macs: RowMacs
  origin: Origin
}

/** A transaction that waits to be signed. Amounts are decimal strings. */
interface WaitingPsbt {
  /** The hash of its transaction, signed or not. */
  id: string
  crypto_network: CryptoNetwork
  payments: number
  amount: string
  fee: string
  waits_seconds: number
}

/** The transactions that wait to be signed by hand, the oldest first. Of several with the same coins, the newest. */
export async function listPsbts({ db, network, adapter }: Pick<ByHand, 'db' | 'network' | 'adapter'>) {
  const { open, price } = byHandOf(network, adapter)
  await freeWhatHasEnded(db, network, adapter.endedTopUps)
  const psbts: WaitingPsbt[] = []
  for (const asked of (await open(db)).filter(({ isAsked, isNewest }) => isAsked && isNewest)) {
    const { txid: id, payments, age_ms } = asked
    const { amount, fee } = await price(asked)
    const waits_seconds = Math.floor(age_ms / 1_000)
    psbts.push({ id, crypto_network: network, payments, amount, fee, waits_seconds })
  }
  return psbts
}

/** The PSBT of a transaction that waits to be signed, in base64. Throws a Refusal as `requireSignable` does. */
export async function exportPsbt(byHand: ByHand, id: string): Promise<string> {
  const { open, exportPsbt: psbtOf } = byHandOf(byHand.network, byHand.adapter)
  const asked = (await open(byHand.db)).find(
    ({ txid, isAsked, used_by }) => txid === id && isAsked && used_by === null,
  )
  if (asked === undefined) throw new Refusal(`there is no PSBT ${id} of ${byHand.network}`)
  const withdrawals = await withdrawalsOf(byHand.db, byHand.network, asked)
  await requireSignable(byHand, withdrawals)
  await requireCleared(byHand, withdrawals)
  const psbt = await psbtOf(asked)
  await transaction(byHand.db, async (tx) => {
    await requireNoFreeze(tx, byHand)
    await recordEach(tx, byHand, withdrawals, 'transfer.export', id)
  })
  return psbt
}

/**
 * Records what a person has signed, by compare-and-set; the worker broadcasts it. A repeat changes nothing. The PSBTs of several signers
 * are combined. Throws a Refusal that names the rule where they are not exactly the transaction that was asked for, where signatures
 * are missing, and as `requireSignable` does; TakenMeanwhile when a worker took a withdrawal further.
 */
export async function importPsbts(
  byHand: ByHand,
  psbts: readonly string[],
): Promise<{ id: string; payments: number; changed: boolean }> {
  const { db, network, adapter } = byHand
  const { open, readPsbts } = byHandOf(network, adapter)
  const waiting = await open(db)
  const { asked, signed } = await readPsbts(waiting, psbts)
  const { txid: id, payments } = asked
  if (waiting.some(({ isAsked, txid }) => !isAsked && txid === id)) return { id, payments, changed: false }
  const withdrawals = await withdrawalsOf(db, network, asked)
  await requireSignable(byHand, withdrawals)
  const steps = withdrawals.map(({ now, ...kept }): Step => {
    const { crypto_tx_index } = kept
    const mine = { ...signed, payments, ...(crypto_tx_index !== undefined && { crypto_tx_index }) }
    const withdrawal = { ...kept, ...now }
    // What nobody has signed needs no place among the replaced.
    return now.state === 'ASKED'
      ? { withdrawal, state: 'SIGNED', signed: mine, dueInMs: 0 }
      : replacedStep(withdrawal, mine)
  })
  await transaction(db, async (tx) => {
    await signAlone(tx, network)
    await requireNoFreeze(tx, byHand)
    await recordAll(tx, network, steps)
    await recordEach(tx, byHand, withdrawals, 'transfer.sign', id)
  })
  return { id, payments, changed: true }
}

/**
 * Asks for the same payments at the current fee: a further PSBT of the same coins, so that only one of the two can be mined. What was
 * signed before stays, and is followed. Returns the new id. Throws a Refusal where no higher fee is needed or possible.
 */
export async function replacePsbt(byHand: ByHand, id: string): Promise<string> {
  const { db, network, macs } = byHand
  const adapter = signOnlyAccepted(byHand.adapter, macs)
  const { open } = byHandOf(network, adapter)
  return transaction(db, async (tx) => {
    await signAlone(tx, network)
    await requireNoFreeze(tx, byHand)
    const waiting = await open(tx)
    const named = waiting.find(({ txid }) => txid === id)
    const newest = waiting.find(
      ({ isNewest, inputs }) => isNewest && named?.inputs.some((input) => inputs.includes(input)),
    )
    if (newest === undefined) throw new Refusal(`no transaction ${id} of ${network} is under way`)
    const withdrawals = await withdrawalsOf(tx, network, newest)
    const replacements = await adapter.replace!(tx, withdrawals)
    const kept = replacements.flatMap((signed, index) => {
      const { customer_id, transfer_id } = withdrawals[index]!
      return signed?.isAsked === true ? [{ ...signed, customer_id, transfer_id }] : []
    })
    if (kept.length !== withdrawals.length)
      throw new Refusal(
        `${newest.txid} is not replaced: it pays the current fee, its change does not cover more, or the node takes no other`,
      )
    const isStored = ({ crypto_tx_hash }: OpenByHand) => crypto_tx_hash === kept[0]!.crypto_tx_hash
    // It was asked for at this fee before, and an earlier one was signed instead.
    if (!waiting.some(isStored)) await keepTransactions(tx, network, kept)
    await recordEach(tx, byHand, withdrawals, 'transfer.replace', newest.txid)
    return (await open(tx)).find(isStored)!.txid
  })
}

function byHandOf(network: CryptoNetwork, { byHand }: NetworkAdapter): SignedByHand<BroadcastWithdrawal> {
  if (byHand === undefined) throw new Refusal(`transactions of ${network} are not signed by hand`)
  return byHand
}

type AskedNow = BroadcastWithdrawal & {
  now: Pick<KeptWithdrawal, 'state' | 'crypto_tx_hash' | 'raw_transaction'>
}

/** The withdrawals that a transaction pays. Throws a Refusal where one has ended, or waits to be signed anew. */
async function withdrawalsOf(
  db: Queryable,
  network: CryptoNetwork,
  { crypto_tx_hash, raw_transaction, txid }: OpenByHand,
): Promise<AskedNow[]> {
  const { customer_ids, transfer_ids } = (await selectPayees(db, network, [crypto_tx_hash])).get(
    crypto_tx_hash,
  )!
  const payees = transfer_ids.map((id, index) => ({ id, customer_id: customer_ids[index]! }))
  const found: AskedNow[] = []
  for (const [customerId, own] of grouped(payees, ({ customer_id }) => customer_id)) {
    const { rows } = await db.query<ClaimedRow>(
      `
      ${SELECT_CLAIMED}
      from (
        select * from outgoing_transfers
        where customer_id = $1 and transfer_id = any ($2::uuid[]) and state in ('ASKED', 'SIGNED', 'BROADCAST')
      ) b ${JOIN_TRANSFER}
      order by b.transfer_id`,
      [customerId, own.map(({ id }) => id)],
    )
    for (const { replaced: _, ...withdrawal } of (await withReplaced(
      db,
      customerId,
      rows,
    )) as KeptWithdrawal[]) {
      const { state, crypto_tx_hash: hash, raw_transaction: raw } = withdrawal
      const now = { state, crypto_tx_hash: hash, raw_transaction: raw }
      found.push({ ...withdrawal, crypto_tx_hash, raw_transaction, replaced: [], now })
    }
  }
  if (found.length !== payees.length)
    throw new Refusal(`${txid} is not under way: payments of it have ended, or are signed anew`)
  return found
}

/** Throws a Refusal unless these withdrawals are what was accepted, and their transaction pays them and nobody else. */
async function requireSignable({ db, network, adapter, macs }: ByHand, withdrawals: readonly AskedNow[]) {
  for (const [index, objection] of (await objectionsTo(db, macs, withdrawals)).entries())
    if (objection !== undefined)
      throw new Refusal(
        `withdrawal ${withdrawals[index]!.transfer_id} is not what was accepted: ${objection}`,
      )
  await byHandOf(network, adapter).requireSame(db, [...withdrawals])
}

/**
 * Throws a Refusal where a withdrawal may not be signed by the present state of its customer: whoever has the service's database role
 * can make one ASKED that nobody approved. A freeze of one customer stops no PSBT that pays others, too.
 */
async function requireCleared(byHand: ByHand, withdrawals: readonly AskedNow[]): Promise<void> {
  const { db, adapter, network } = byHand
  await transaction(db, (tx) => requireNoFreeze(tx, byHand))
  let frozen = 0
  for (const [customer_id, own] of byCustomer(withdrawals)) {
    const decisions = await transaction(db, (tx) =>
      checkBeforeSigning(tx, { customer_id, network }, own, adapter),
    )
    for (const [id, decision] of decisions) {
      if (decision.outcome === 'SIGN') continue
      const why = decision.outcome === 'DEFERRED' ? decision.reason : undefined
      if (why?.code !== 'FROZEN' || ++frozen === withdrawals.length)
        throw new Refusal(`withdrawal ${id} is not signed now: ${why?.detail ?? 'it is refused'}`)
    }
  }
}

/** Throws a Refusal while everything or the network is frozen. What was asked for a frozen customer is in one transaction with others. */
async function requireNoFreeze(tx: Transaction, { network }: ByHand): Promise<void> {
  const [frozen] = await freezesOfSigning(tx, { network })
  if (frozen !== undefined) throw new Refusal(`nothing is signed on ${network}: ${frozen.detail}`)
}

async function recordEach(
  tx: Transaction,
  { origin }: ByHand,
  withdrawals: readonly AskedNow[],
  action: AuditAction,
  crypto_tx_hash: string,
): Promise<void> {
  for (const [customerId, own] of byCustomer(withdrawals))
    await recordNow(
      tx,
      customerId,
      ...own.map(({ transfer_id }) => audited(origin, action, transfer_id, { after: { crypto_tx_hash } })),
    )
}
