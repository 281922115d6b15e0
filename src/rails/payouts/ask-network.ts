import { ifAllAnswer, type Queryable, type Transaction } from '../../db/database.ts'
import { inParts, RecordFailure } from '../../db/each-alone.ts'
import { freezesOfSigning } from '../../money/records/freezes.ts'
import { unjudged } from '../../networks/judge-alone.ts'
import { NodeFailure, NodeRefusal } from '../../networks/node-failure.ts'
import type { SigningEvidence } from '../../contract/approval.ts'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  PayoutNetwork,
  Payer,
  PaymentStatus,
  Signing,
  Withdrawal,
} from '../../networks/network.ts'
import { signedBefore, type SignedBefore } from '../../networks/network-transactions.ts'
import { BEHIND_ANOTHER, reasonOfFailure, type WaitingReason } from '../../networks/waiting.ts'
import { evidenceOf } from '../../governance/approvals/signing-evidence.ts'
import { checkBeforeSigning } from './check-before-signing.ts'
import { ofEachCustomer } from '../../db/rows.ts'
import { behindOthers, signAlone } from './lease.ts'
import { payingTogether, type Claimed, type KeptWithdrawal } from './outgoing-transfers.ts'
import {
  deferredStep,
  mayBeReplaced,
  overriddenBy,
  replacedStep,
  stepAfterBroadcast,
  stepAfterCheck,
  stepAfterReview,
  stepAfterSigner,
  stepAfterSigning,
  stepAfterStatus,
  type Step,
} from './next-step.ts'

/** Asks a network's adapter about claimed withdrawals, and turns its answers into steps. Records nothing. */

/**
 * Reviews new withdrawals, and signs them and those that waited. `tx` must store the signed bytes: the nonces and coins that
 * signing uses are committed or rolled back with them. Each withdrawal is checked again first (`checkBeforeSigning`).
 */
export async function reviewAndSign(
  tx: Transaction,
  network: PayoutNetwork,
  claimed: Claimed[],
  adapter: Payer,
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
  network: PayoutNetwork,
  withdrawals: Claimed[],
  adapter: Payer,
): Promise<Step[]> {
  const inOrder = [...withdrawals].sort((a, b) => (a.transfer_id < b.transfer_id ? -1 : 1))
  const behind = adapter.signsAlone ? await selectBehind(tx, network, inOrder) : new Set<string>()
  const ahead = inOrder.filter(({ transfer_id }) => !behind.has(transfer_id))
  const decisions = new Map(
    await ofEachCustomer(ahead, (customer_id, own) =>
      checkBeforeSigning(tx, { customer_id, network }, own, adapter),
    ),
  )
  const steps: Step[] = inOrder
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
    const open = signed.findLast(({ used_by }) => used_by === null)
    if (open !== undefined) forgotten.push({ ...withdrawal, ...open, replaced: [] })
    const reason = open ? signedAs(open.crypto_tx_hash) : await whyNotVoid(withdrawal, signed, adapter)
    const step =
      reason === undefined
        ? stepAfterCheck(withdrawal, decisions.get(withdrawal.transfer_id)!, adapter)
        : deferredStep(withdrawal, reason, adapter)
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
 * The reason of a withdrawal that is unsigned by its customer's records, although the shared wallet has a transaction for it.
 * The customer's database node has lost what it had committed, as a standby may have. The withdrawal is neither signed again
 * nor refunded.
 */
const signedAs = (hash: string): WaitingReason => ({
  code: 'UNKNOWN_SPENDS',
  detail:
    `${hash} was signed for it, and its own record lacks that: the node of its customer was restored from an older state; ` +
    `'bursar withdrawal mark-paid' gives it that transaction`,
})

/**
 * Why a transaction that was signed for a withdrawal before may still be mined; undefined where none can be. The chain is asked
 * once more: the rows of the database may be forged, and a deep reorganisation may have taken the other transaction back.
 */
async function whyNotVoid(
  withdrawal: Claimed,
  signed: readonly SignedBefore[],
  adapter: Payer,
): Promise<WaitingReason | undefined> {
  const replaced = signed.map(({ crypto_tx_hash }) => crypto_tx_hash)
  for (const { used_by, ...one } of signed) {
    const end = await adapter
      .usedBy?.({ ...withdrawal, ...one, replaced }, used_by!)
      .catch((error: unknown) => {
        if (!(error instanceof NodeFailure)) throw error
        return { state: 'UNRESOLVED', reason: reasonOfFailure(error) } as const
      })
    if (end?.state !== 'VOID') return end?.reason ?? signedAs(one.crypto_tx_hash)
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

/** The withdrawals that must wait behind others of their profiles. Nobody else signs from here to the commit. */
async function selectBehind(
  tx: Transaction,
  network: PayoutNetwork,
  withdrawals: Claimed[],
): Promise<Set<string>> {
  await signAlone(tx, network)
  return new Set(
    await ofEachCustomer(withdrawals, (customer_id, own) => behindOthers(tx, { customer_id, network }, own)),
  )
}

/**
 * What became of stored transactions. `answered` are the steps of those that the signer process was asked about, and `stuck` the
 * withdrawals whose transactions may be replaced.
 */
interface Followed {
  answered: Step[]
  steps: Step[]
  stuck: KeptWithdrawal[]
}

/**
 * Broadcasts signed transactions, and asks how far the others are. A transaction that the node did not accept is asked about,
 * too: it may be mined already, may never be, or may need a replacement. Failures go to `failures`. A broadcast transaction has
 * its step all the same, and one that could not be asked about is asked about again.
 */
export async function follow(
  db: Queryable,
  kept: KeptWithdrawal[],
  adapter: Payer,
  failures: unknown[],
): Promise<Followed> {
  const answered = await askSigner(
    db,
    kept.filter(({ state }) => state === 'ASKED'),
    adapter,
  )
  const sent = await broadcast(
    kept.filter(({ state }) => state === 'SIGNED'),
    adapter,
    failures,
  )
  // What people sign by hand is asked about with the question itself.
  const unsigned = answered.filter(
    ({ state, waitingReason }) =>
      state === 'ASKED' && waitingReason?.code !== 'NOT_ACCEPTED' && adapter.byHand === undefined,
  )
  await rebroadcastReplaced(
    db,
    unsigned.map(({ withdrawal }) => withdrawal),
    adapter,
  )
  const notTaken = sent.filter(({ state }) => state === 'SIGNED')
  const asked = [
    ...kept.filter(({ state }) => state === 'BROADCAST'),
    ...notTaken.map(({ withdrawal }) => withdrawal),
    ...unsigned.map(({ withdrawal }) => ({ ...withdrawal, isAsked: true as const })),
  ]
  const { steps, stuck } = await checkStatus(db, asked, adapter, failures).catch(
    (error: unknown): Checked => {
      failures.push(error)
      return { steps: [], stuck: [] }
    },
  )
  // What waits for the signer ends by what it replaced, or by what has used its nonce. Otherwise it goes on waiting, with what
  // the chain says of it.
  const told = steps.flatMap((step): typeof steps => {
    const { withdrawal, state, waitingReason } = step
    if (withdrawal.state !== 'ASKED' || state === 'DONE' || state === 'HELD') return [step]
    return waitingReason === undefined ? [] : [{ ...step, state: 'ASKED' }]
  })
  const isTold = new Set(told.map(({ withdrawal }) => withdrawal.transfer_id))
  return {
    answered: answered.filter(({ withdrawal }) => !isTold.has(withdrawal.transfer_id)),
    steps: overriddenBy<Step['withdrawal']>(sent, told),
    stuck: stuck.filter(({ state }) => state !== 'ASKED'),
  }
}

/** What the signer process is told of each of these withdrawals, by transfer id. */
export const evidenceOfEach = async (
  db: Queryable,
  withdrawals: readonly Withdrawal[],
): Promise<Map<string, SigningEvidence>> =>
  new Map(
    await ofEachCustomer(withdrawals, (customerId, own) =>
      evidenceOf(
        db,
        customerId,
        own.map(({ transfer_id }) => transfer_id),
      ),
    ),
  )

/** Asks the signer process, which gets with each withdrawal what was accepted and who has approved it. */
async function askSigner(
  db: Queryable,
  asked: KeptWithdrawal[],
  adapter: Payer,
): Promise<Step<KeptWithdrawal>[]> {
  if (asked.length === 0) return []
  if (adapter.askSigner === undefined) {
    const reason = { code: 'NO_SIGNING_KEY', detail: 'no signer is configured, and one was asked' } as const
    return asked.map((withdrawal) => stepAfterSigner(withdrawal, { reason }, adapter))
  }
  const evidence = await evidenceOfEach(db, asked)
  const answers = await adapter.askSigner(
    db,
    asked.map((one) => ({ ...one, evidence: evidence.get(one.transfer_id)! })),
  )
  return asked.map((withdrawal, index) => stepAfterSigner(withdrawal, answers[index]!, adapter))
}

/**
 * Broadcasts what was signed last of withdrawals whose replacement is not: it may pay them yet, and a node may have dropped it.
 * What was voided is left out, whatever its bytes are: those of the new question may pay in its place.
 */
async function rebroadcastReplaced(db: Queryable, asked: KeptWithdrawal[], adapter: Payer): Promise<void> {
  const replacing = asked.filter(({ replaced }) => replaced.length > 0)
  if (replacing.length === 0 || adapter.rebroadcast === undefined) return
  const ids = replacing.map(({ transfer_id }) => transfer_id)
  const signed = await signedBefore(db, replacing[0]!.network, ids)
  const last = replacing.flatMap(
    ({ transfer_id, crypto_tx_hash, replaced }) =>
      signed
        .get(transfer_id)
        ?.findLast(
          ({ crypto_tx_hash: hash, used_by }) =>
            used_by === null && hash !== crypto_tx_hash && replaced.includes(hash),
        ) ?? [],
  )
  await adapter.rebroadcast(last).catch((error: unknown) => {
    if (!(error instanceof NodeFailure)) throw error
  })
}

type Checked = Omit<Followed, 'answered'>

async function broadcast(
  withdrawals: KeptWithdrawal[],
  adapter: Payer,
  failures: unknown[],
): Promise<Step<KeptWithdrawal>[]> {
  const answers = await inParts<KeptWithdrawal, BroadcastAnswer | undefined>(
    withdrawals,
    (some) =>
      adapter.broadcast(some).catch((error: unknown): BroadcastAnswer[] => {
        if (!(error instanceof NodeFailure)) throw error
        const reason = reasonOfFailure(error)
        return some.map(() => ({ accepted: false, reason }))
      }),
    (withdrawal, error): undefined => void failures.push(failureOf(withdrawal, error)),
  )
  return withdrawals.map((withdrawal, index) => stepAfterBroadcast(withdrawal, answers[index], adapter))
}

const failureOf = ({ transfer_id }: { transfer_id: string }, error: unknown) =>
  new RecordFailure(`withdrawal ${transfer_id}`, error)

async function checkStatus(
  db: Queryable,
  asked: KeptWithdrawal[],
  adapter: Payer,
  failures: unknown[],
): Promise<Checked> {
  const statuses = await statusOfEach(db, asked, adapter)
  const errors = statuses.flatMap((status) => (status?.state === 'UNRESOLVED' ? (status.error ?? []) : []))
  // The node refuses every call: that says nothing about one withdrawal.
  if (errors.length === asked.length && errors.length > 1 && errors.every(isRefusal)) {
    failures.push(errors[0])
    return { steps: [], stuck: [] }
  }
  const answered = asked.flatMap((withdrawal, index) => {
    const status = statuses[index]
    return status === undefined ? [] : { withdrawal, status }
  })
  for (const { withdrawal, status } of answered)
    if (status.state === 'UNRESOLVED' && status.error !== undefined)
      failures.push(failureOf(withdrawal, status.error))
  return {
    steps: answered.flatMap(({ withdrawal, status }) => stepAfterStatus(withdrawal, status, adapter) ?? []),
    stuck: answered.flatMap(({ withdrawal, status }) =>
      mayBeReplaced(withdrawal, status, adapter) ? withdrawal : [],
    ),
  }
}

const isRefusal = (error: unknown) => error instanceof NodeRefusal

/**
 * The status of each withdrawal. One whose transaction failed has failed only if no other transaction that was signed for it
 * may pay it. The service's database role can change the rows that name a withdrawal's own transaction, but not those that
 * record what was signed.
 */
export async function statusOfEach<Asked extends BroadcastWithdrawal>(
  db: Queryable,
  asked: readonly Asked[],
  adapter: Pick<Payer, 'checkStatus' | 'asksNode'>,
): Promise<(PaymentStatus | undefined)[]> {
  const statuses = await transactionStatuses(asked, adapter)
  const failed = asked.filter((_, index) => endsUnpaid(statuses[index]))
  if (failed.length === 0 || adapter.asksNode !== true) return statuses
  const ids = failed.map(({ transfer_id }) => transfer_id)
  const signed = await signedBefore(db, failed[0]!.network, ids)
  const all = failed.flatMap(({ crypto_tx_index: _, isAsked: ___, ...withdrawal }) =>
    (signed.get(withdrawal.transfer_id) ?? []).map(({ used_by: __, ...one }) => {
      return { ...withdrawal, ...one, replaced: [] }
    }),
  )
  if (all.length === 0) return statuses
  const doubts = new Map<string, PaymentStatus>()
  for (const [index, status] of (await transactionStatuses(all, adapter)).entries()) {
    const { transfer_id, crypto_tx_hash } = all[index]!
    if (!endsUnpaid(status) && status?.state !== 'VOID')
      doubts.set(transfer_id, mayPayYet(crypto_tx_hash, status))
  }
  return asked.map(({ transfer_id }, index) => doubts.get(transfer_id) ?? statuses[index])
}

/** Whether a status refunds the withdrawal, by itself or by an operator's word. */
const endsUnpaid = (status: PaymentStatus | undefined): boolean =>
  status?.state === 'FAILED' || (status?.state === 'UNRESOLVED' && status.mayBeMined !== true)

const mayPayYet = (hash: string, status: PaymentStatus | undefined): PaymentStatus =>
  status?.state === 'UNRESOLVED'
    ? { ...status, mayBeMined: true }
    : {
        state: 'UNRESOLVED',
        reason: {
          code: 'UNRESOLVED',
          detail: `${hash}, which was signed for it as well, is ${status?.state ?? 'not asked about'}`,
        },
        mayBeMined: true,
      }

/**
 * The status of each transaction; undefined for one that was not asked about. One that makes the adapter fail is UNRESOLVED.
 */
const transactionStatuses = <Asked extends BroadcastWithdrawal>(
  asked: readonly Asked[],
  adapter: Pick<Payer, 'checkStatus'>,
): Promise<(PaymentStatus | undefined)[]> =>
  inParts(
    asked,
    (some) => adapter.checkStatus(some),
    (_, error): PaymentStatus => ({ ...unjudged(error), mayBeMined: true }),
    (error) => error instanceof NodeFailure && !isRefusal(error),
  )

/**
 * Replaces stuck transactions for higher fees. This is signing: the node is asked while the signing lock is held, because the
 * nonce or the inputs must be committed or rolled back with the new bytes. A frozen customer's transaction is replaced all the
 * same: it may be paid already, and others may wait behind its nonce.
 */
export async function replaceStuck(
  tx: Transaction,
  network: PayoutNetwork,
  stuck: KeptWithdrawal[],
  adapter: Payer,
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
