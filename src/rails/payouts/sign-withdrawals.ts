import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { valueIn } from '../../contract/assets/usd-value.ts'
import { ifAllAnswer, type Transaction } from '../../db/database.ts'
import { freezesOfSigning } from '../../money/records/freezes.ts'
import { usdPrices } from '../../money/records/usd-prices.ts'
import type { BroadcastWithdrawal, Payer, SignedTransaction, Signing } from '../../networks/network.ts'
import { signedBefore, type SignedBefore } from '../../networks/network-transactions.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { BEHIND_ANOTHER, deferred, reasonOfFailure, type WaitingReason } from '../../networks/waiting.ts'
import type { Rail } from '../context.ts'
import { checkBeforeSigning } from './check-before-signing.ts'
import { behindOthers, ofEachCustomer, signAlone } from './lease.ts'
import {
  deferredStep,
  replacedStep,
  stepAfterCheck,
  stepAfterReview,
  stepAfterSigning,
  type Step,
} from './next-step.ts'
import { payingTogether, type Claimed, type KeptWithdrawal } from './claimed-withdrawals.ts'

/**
 * Reviews new withdrawals, and signs them and those that waited. `tx` must store the signed bytes: the nonces and coins that
 * signing uses are committed or rolled back with them. Each withdrawal is checked again first (`checkBeforeSigning`).
 * Returns their steps, and records none.
 */
export async function reviewAndSign(tx: Transaction, rail: Rail, claimed: Claimed[]): Promise<Step[]> {
  const steps: Step[] = []
  const toSign: Claimed[] = []
  for (const withdrawal of claimed.filter(({ state }) => state === 'NEW')) {
    const step = stepAfterReview(withdrawal, rail.adapter.review(withdrawal))
    if (step === undefined) toSign.push(withdrawal)
    else steps.push(step)
  }
  toSign.push(...claimed.filter(({ state }) => state === 'HELD'))
  if (toSign.length > 0) steps.push(...(await sign(tx, rail, toSign)))
  return steps
}

async function sign(tx: Transaction, rail: Rail, withdrawals: Claimed[]): Promise<Step[]> {
  const { network, adapter } = rail
  const sorted = [...withdrawals].sort((a, b) => (a.transfer_id < b.transfer_id ? -1 : 1))
  const behind = adapter.signsAlone ? await selectBehind(tx, rail, sorted) : new Set<string>()
  const ahead = sorted.filter(({ transfer_id }) => !behind.has(transfer_id))
  const decisions = new Map(
    await ofEachCustomer(ahead, (customer_id, own) =>
      checkBeforeSigning(tx, { customer_id, network }, own, adapter),
    ),
  )
  const steps: Step[] = sorted
    .filter(({ transfer_id }) => behind.has(transfer_id))
    .map((withdrawal) => deferredStep(withdrawal, BEHIND_ANOTHER, adapter))
  const before = adapter.asksNode
    ? await signedBefore(
        tx,
        network,
        ahead.map(({ transfer_id }) => transfer_id),
      )
    : new Map<string, SignedBefore[]>()
  const checked: Claimed[] = []
  const forgotten: BroadcastWithdrawal[] = []
  for (const withdrawal of ahead) {
    const signed = before.get(withdrawal.transfer_id) ?? []
    const open = await notVoid(withdrawal, signed, adapter)
    if (open !== undefined) forgotten.push({ ...withdrawal, ...open.transaction, replaced: [] })
    const step =
      open === undefined
        ? stepAfterCheck(withdrawal, decisions.get(withdrawal.transfer_id)!, adapter)
        : deferredStep(withdrawal, open.reason, adapter)
    if (step === undefined) checked.push(withdrawal)
    else steps.push(step)
  }
  await broadcastForgotten(forgotten, adapter)
  if (checked.length === 0) return steps
  const toSign = adapter.comparesFees ? await withWorth(tx, rail, checked) : checked
  const signings = await adapter.sign(tx, toSign).catch((error: unknown): Signing[] => {
    if (!(error instanceof NodeFailure)) throw error
    // Bytes that the adapter signed before the failure are not kept, and so are never broadcast.
    return checked.map(() => deferred(reasonOfFailure(error)))
  })
  steps.push(...checked.map((withdrawal, index) => stepAfterSigning(withdrawal, signings[index]!, adapter)))
  return steps
}

/** Adds to withdrawals what their fees are worth of the network's own asset. */
async function withWorth(
  tx: Transaction,
  { network, adapter }: Rail,
  withdrawals: Claimed[],
): Promise<Claimed[]> {
  const prices = await usdPrices(tx, adapter.paysDepositsOnly === true)
  const own = NETWORKS[network as CryptoNetwork].gasAsset
  return withdrawals.map((withdrawal) => {
    const { asset, fee } = withdrawal
    const worth = valueIn(own, { asset, minor: parseStoredAmount(fee, decimalsOf(asset)) }, prices)
    return { ...withdrawal, fee_worth: worth === undefined ? null : formatAmount(worth, decimalsOf(own)) }
  })
}

/** The withdrawals that must wait behind others of their profiles. Nobody else signs from here to the commit. */
async function selectBehind(
  tx: Transaction,
  { network }: Rail,
  withdrawals: Claimed[],
): Promise<Set<string>> {
  await signAlone(tx, network)
  return new Set(
    await ofEachCustomer(withdrawals, (customer_id, own) => behindOthers(tx, { customer_id, network }, own)),
  )
}

/**
 * The reason of a withdrawal that is unsigned by its customer's records, although the shared wallet has a transaction for
 * it. The customer's part of the database has lost what it had committed, as a standby may have. The withdrawal is neither
 * signed again nor refunded.
 */
const signedAs = (hash: string): WaitingReason => ({
  code: 'UNKNOWN_SPENDS',
  detail:
    `${hash} was signed for it, and its own record lacks that: the node of its customer was restored from an older state; ` +
    `'bursar withdrawal mark-paid' gives it that transaction`,
})

/**
 * A transaction that was signed for a withdrawal before and may still be mined, and why; undefined where none can be. The chain is
 * asked once more: the rows of the database may be forged, and a deep reorganisation may have taken the other transaction
 * back.
 */
async function notVoid(
  withdrawal: Claimed,
  signed: readonly SignedBefore[],
  adapter: Payer,
): Promise<{ transaction: SignedTransaction; reason: WaitingReason } | undefined> {
  const open = signed.findLast(({ used_by }) => used_by === null)
  if (open !== undefined) return { transaction: open, reason: signedAs(open.crypto_tx_hash) }
  const replaced = signed.map(({ crypto_tx_hash }) => crypto_tx_hash)
  for (const { used_by, ...transaction } of signed) {
    const end = await adapter
      .usedBy?.({ ...withdrawal, ...transaction, replaced }, used_by!)
      .catch((error: unknown) => {
        if (!(error instanceof NodeFailure)) throw error
        return { state: 'UNRESOLVED', reason: reasonOfFailure(error) } as const
      })
    if (end?.state !== 'VOID')
      return { transaction, reason: end?.reason ?? signedAs(transaction.crypto_tx_hash) }
  }
  return undefined
}

/**
 * Broadcasts the transactions that were signed for such withdrawals: perhaps nobody has yet. Only then can `mark-paid` find
 * them, and only then are later nonces of the wallet mined.
 */
async function broadcastForgotten(withdrawals: BroadcastWithdrawal[], adapter: Payer): Promise<void> {
  if (withdrawals.length === 0) return
  await adapter.broadcast(withdrawals).catch((error: unknown) => {
    // The next attempt to sign broadcasts them again.
    if (!(error instanceof NodeFailure)) throw error
  })
}

/**
 * Replaces stuck transactions for higher fees. This is signing: the node is asked while the signing lock is held, because
 * the nonce or the inputs must be committed or rolled back with the new bytes. A frozen customer's transaction is replaced
 * all the same: it may be paid already, and others may wait behind its nonce.
 */
export async function replaceStuck(
  tx: Transaction,
  { network, adapter }: Rail,
  stuck: KeptWithdrawal[],
): Promise<Step[]> {
  if (stuck.length === 0 || adapter.replace === undefined) return []
  await signAlone(tx, network)
  if ((await freezesOfSigning(tx, { network })).length > 0) return []
  // A transaction whose other payments' records cannot be read is replaced later.
  const together =
    adapter.paysMany === undefined
      ? stuck
      : ((await ifAllAnswer(tx, () => payingTogether(tx, network, stuck))) ?? [])
  const replacements = together.length === 0 ? [] : await adapter.replace(tx, together)
  return together.flatMap((withdrawal, index): Step | [] => {
    const signed = replacements[index]
    return signed === undefined ? [] : replacedStep(withdrawal, signed)
  })
}
