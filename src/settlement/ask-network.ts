import { ifAllAnswer, type Transaction } from '../db/database.ts'
import { freezesOfSigning } from '../records/freezes.ts'
import { NodeFailure } from '../networks/node-failure.ts'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  Network,
  NetworkAdapter,
  SignedTransaction,
  Signing,
} from '../networks/network.ts'
import { signedBefore } from '../networks/network-transactions.ts'
import { BEHIND_ANOTHER, reasonOfFailure, type WaitingReason } from '../networks/waiting.ts'
import { checkBeforeSigning, type SigningDecision } from './check-before-signing.ts'
import { behindOthers, byCustomer, signAlone } from './lease.ts'
import { payingTogether, type Claimed, type Kept } from './outgoing-transfers.ts'
import {
  deferredStep,
  mayBeReplaced,
  overriddenBy,
  replacedStep,
  stepAfterBroadcast,
  stepAfterCheck,
  stepAfterReview,
  stepAfterSigning,
  stepAfterStatus,
  type Step,
} from './next-step.ts'

/** Asks a network's adapter about claimed withdrawals, and turns its answers into steps. Records nothing. */

/**
 * Reviews new withdrawals, and signs them and those that waited. The transaction that is given must keep the signed bytes:
 * nonces and coins that signing uses are kept or lost with it. Each withdrawal is checked again first (`checkBeforeSigning`).
 */
export async function reviewAndSign(
  tx: Transaction,
  network: Network,
  claimed: Claimed[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  const steps: Step[] = []
  const toSign: Claimed[] = []
  for (const withdrawal of claimed.filter(({ state }) => state === 'NEW')) {
    const step = stepAfterReview(withdrawal, adapter.review(withdrawal))
    if (step === undefined) toSign.push(withdrawal)
    else steps.push(step)
  }
  toSign.push(...claimed.filter(({ state }) => state === 'HELD'))
  if (toSign.length > 0) steps.push(...(await sign(tx, network, toSign, adapter)))
  return steps
}

async function sign(
  tx: Transaction,
  network: Network,
  withdrawals: Claimed[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  const inOrder = [...withdrawals].sort((a, b) => (a.transfer_id < b.transfer_id ? -1 : 1))
  const behind = adapter.signsAlone ? await selectBehind(tx, network, inOrder) : new Set<string>()
  const ahead = inOrder.filter(({ transfer_id }) => !behind.has(transfer_id))
  const decisions = await checkEach(tx, network, ahead, adapter)
  const steps: Step[] = inOrder
    .filter(({ transfer_id }) => behind.has(transfer_id))
    .map((withdrawal) => deferredStep(withdrawal, BEHIND_ANOTHER, adapter))
  const before = adapter.asksNode
    ? await signedBefore(
        tx,
        network,
        ahead.map(({ transfer_id }) => transfer_id),
      )
    : new Map<string, SignedTransaction>()
  const checked: Claimed[] = []
  const forgotten: BroadcastWithdrawal[] = []
  for (const withdrawal of ahead) {
    const signed = before.get(withdrawal.transfer_id)
    if (signed !== undefined) forgotten.push({ ...withdrawal, ...signed, replaced: [] })
    const step =
      signed === undefined
        ? stepAfterCheck(withdrawal, decisions.get(withdrawal.transfer_id)!, adapter)
        : deferredStep(withdrawal, signedAs(signed.crypto_tx_hash), adapter)
    if (step === undefined) checked.push(withdrawal)
    else steps.push(step)
  }
  await broadcastForgotten(forgotten, adapter)
  if (checked.length === 0) return steps
  const signings = await adapter.sign(tx, checked).catch((error: unknown): Signing[] => {
    if (!(error instanceof NodeFailure)) throw error
    // What the adapter signed before the failure is not kept, and so is never broadcast.
    const reason = reasonOfFailure(error)
    return checked.map(() => ({ outcome: 'DEFERRED', reason }))
  })
  steps.push(...checked.map((withdrawal, index) => stepAfterSigning(withdrawal, signings[index]!, adapter)))
  return steps
}

/**
 * A withdrawal that no record of its customer says was signed, and that the shared wallet has a transaction for: its node
 * has lost what it had committed, as a standby may have. It is neither signed again nor refunded.
 */
const signedAs = (hash: string): WaitingReason => ({
  code: 'UNKNOWN_SPENDS',
  detail:
    `${hash} was signed for it, and its own record lacks that: the node of its customer was restored from an older state; ` +
    `'bursar withdrawal mark-paid' gives it that transaction`,
})

/**
 * Broadcasts what was signed for such withdrawals: perhaps nobody has yet. Only then can `mark-paid` find it, and only then are
 * later nonces of its wallet mined.
 */
async function broadcastForgotten(
  withdrawals: BroadcastWithdrawal[],
  adapter: NetworkAdapter,
): Promise<void> {
  if (withdrawals.length === 0) return
  await adapter.broadcast(withdrawals).catch((error: unknown) => {
    // It is tried again with the next try to sign.
    if (!(error instanceof NodeFailure)) throw error
  })
}

/** Whether each may be signed, as its customer stands now. */
async function checkEach(
  tx: Transaction,
  network: Network,
  withdrawals: Claimed[],
  adapter: NetworkAdapter,
): Promise<Map<string, SigningDecision>> {
  const decisions = new Map<string, SigningDecision>()
  for (const [customer_id, own] of byCustomer(withdrawals))
    for (const [id, decision] of await checkBeforeSigning(tx, { customer_id, network }, own, adapter))
      decisions.set(id, decision)
  return decisions
}

/** The withdrawals that must wait behind others of their profiles. Nobody else signs from here to the commit. */
async function selectBehind(tx: Transaction, network: Network, withdrawals: Claimed[]): Promise<Set<string>> {
  await signAlone(tx, network)
  const behind = new Set<string>()
  for (const [customer_id, own] of byCustomer(withdrawals))
    for (const transferId of await behindOthers(tx, { customer_id, network }, own)) behind.add(transferId)
  return behind
}

/** What became of kept transactions; `stuck`, the withdrawals whose transactions may be replaced. */
interface Followed {
  steps: Step[]
  stuck: Kept[]
}

/**
 * Broadcasts signed transactions, and asks how far the others are. A transaction that was not taken is asked about, too: it
 * may be mined already, may never be, or may need a replacement. Where the network's status call fails, the failure goes
 * to `failures`: what was broadcast is a step all the same, and the rest is asked about again.
 */
export async function follow(kept: Kept[], adapter: NetworkAdapter, failures: unknown[]): Promise<Followed> {
  const sent = await broadcast(
    kept.filter(({ state }) => state === 'SIGNED'),
    adapter,
  )
  const notTaken = sent.filter(({ state }) => state === 'SIGNED')
  const asked = [
    ...kept.filter(({ state }) => state === 'BROADCAST'),
    ...notTaken.map(({ withdrawal }) => withdrawal),
  ]
  const { steps, stuck } = await checkStatus(asked, adapter).catch((error: unknown): Followed => {
    failures.push(error)
    return { steps: [], stuck: [] }
  })
  return { steps: overriddenBy<Step['withdrawal']>(sent, steps), stuck }
}

async function broadcast(withdrawals: Kept[], adapter: NetworkAdapter): Promise<Step<Kept>[]> {
  if (withdrawals.length === 0) return []
  const answers = await adapter.broadcast(withdrawals).catch((error: unknown): BroadcastAnswer[] => {
    if (!(error instanceof NodeFailure)) throw error
    const reason = reasonOfFailure(error)
    return withdrawals.map(() => ({ accepted: false, reason }))
  })
  return withdrawals.map((withdrawal, index) => stepAfterBroadcast(withdrawal, answers[index]!, adapter))
}

async function checkStatus(asked: Kept[], adapter: NetworkAdapter): Promise<Followed> {
  if (asked.length === 0) return { steps: [], stuck: [] }
  const statuses = await adapter.checkStatus(asked)
  return {
    steps: asked.flatMap((withdrawal, index) => stepAfterStatus(withdrawal, statuses[index]!, adapter) ?? []),
    stuck: asked.filter((withdrawal, index) => mayBeReplaced(withdrawal, statuses[index]!, adapter)),
  }
}

/**
 * Replaces stuck transactions for higher fees. This is signing: the node is asked while the signing lock is held, because the
 * nonce or the inputs must be kept or lost with the new bytes. A frozen customer's transaction is replaced all the same: it
 * may be paid already, and others may wait behind its nonce.
 */
export async function replaceStuck(
  tx: Transaction,
  network: Network,
  stuck: Kept[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  if (stuck.length === 0 || adapter.replace === undefined) return []
  await signAlone(tx, network)
  if ((await freezesOfSigning(tx, { network })).length > 0) return []
  // A transaction whose other payments' records cannot be read is replaced later.
  const all =
    adapter.paysMany === undefined
      ? stuck
      : ((await ifAllAnswer(tx, () => payingTogether(tx, network, stuck))) ?? [])
  const replacements = all.length === 0 ? [] : await adapter.replace(tx, all)
  return all.flatMap((withdrawal, index): Step | [] => {
    const signed = replacements[index]
    return signed === undefined ? [] : replacedStep(withdrawal, signed)
  })
}
