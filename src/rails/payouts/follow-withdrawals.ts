import type { SigningEvidence } from '../../contract/approval.ts'
import { connectionLost, type Queryable } from '../../db/database.ts'
import { inParts, RecordFailure } from '../../db/each-alone.ts'
import { evidenceOf } from '../../governance/approvals/signing-evidence.ts'
import { unjudged } from '../../networks/judge-alone.ts'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  Payer,
  PaymentStatus,
  Withdrawal,
} from '../../networks/network.ts'
import { signedBefore } from '../../networks/network-transactions.ts'
import { NodeFailure, NodeRefusal } from '../../networks/node-failure.ts'
import { reasonOfFailure } from '../../networks/waiting.ts'
import { ofEachCustomer } from './lease.ts'
import {
  mayBeReplaced,
  overriddenBy,
  stepAfterBroadcast,
  stepAfterSigner,
  stepAfterStatus,
  type Step,
} from './next-step.ts'
import { payingTogether, type KeptWithdrawal } from './claimed-withdrawals.ts'

/** Asks a network's adapter what became of stored transactions, and turns its answers into steps. Records nothing. */

/** `answered`: the steps of those that the signer process was asked about. `stuck`: their transactions may be replaced. */
interface Followed {
  answered: Step[]
  steps: Step[]
  stuck: KeptWithdrawal[]
}

/** Withdrawals of one state after their question: their steps, and those of them whose status the network is asked about. */
interface Asked {
  steps: Step<KeptWithdrawal>[]
  toCheck: KeptWithdrawal[]
}

/**
 * Broadcasts signed transactions, and asks how far the others are. A transaction that the node did not accept is asked
 * about, too: it may be mined already, may never be, or may need a replacement. Failures go to `failures`. A broadcast
 * transaction has its step all the same, and one that could not be asked about is asked about again.
 */
export async function follow(
  db: Queryable,
  adapter: Payer,
  kept: KeptWithdrawal[],
  failures: unknown[],
): Promise<Followed> {
  const inState = (state: KeptWithdrawal['state']) => kept.filter((withdrawal) => withdrawal.state === state)
  const asked = await askSigner(db, adapter, inState('ASKED'))
  const signed = await broadcast(adapter, inState('SIGNED'), failures)
  const toCheck = [...inState('BROADCAST'), ...signed.toCheck, ...asked.toCheck]
  const checked = await checkStatus(db, adapter, toCheck, failures).catch((error: unknown): Checked => {
    failures.push(error)
    return { steps: [], stuck: [] }
  })
  // A withdrawal that waits for the signer ends by the transaction that it replaced, or by the one that used its nonce.
  // Otherwise it goes on waiting, with what the chain says of it.
  const steps = checked.steps.flatMap((step): Step[] => {
    const { withdrawal, state, waitingReason } = step
    if (withdrawal.state !== 'ASKED' || state === 'DONE' || state === 'HELD') return [step]
    return waitingReason === undefined ? [] : [{ ...step, state: 'ASKED' }]
  })
  const isChecked = new Set(steps.map(({ withdrawal }) => withdrawal.transfer_id))
  return {
    answered: asked.steps.filter(({ withdrawal }) => !isChecked.has(withdrawal.transfer_id)),
    steps: overriddenBy<Step['withdrawal']>(signed.steps, steps),
    stuck: checked.stuck.filter(({ state }) => state !== 'ASKED'),
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

/**
 * Asks the signer process about withdrawals that are ASKED. It gets with each what was accepted and who has approved it.
 * The worker broadcasts what it replaces meanwhile.
 */
async function askSigner(db: Queryable, adapter: Payer, asked: KeptWithdrawal[]): Promise<Asked> {
  if (asked.length === 0) return { steps: [], toCheck: [] }
  const steps = await answersOfSigner(db, adapter, asked)
  // The question itself also asks about transactions that people sign by hand.
  const unsigned = steps.flatMap(({ withdrawal, state, waitingReason }) =>
    state === 'ASKED' && waitingReason?.code !== 'NOT_ACCEPTED' && adapter.byHand === undefined
      ? withdrawal
      : [],
  )
  await rebroadcastReplaced(db, adapter, unsigned)
  return { steps, toCheck: unsigned.map((withdrawal) => ({ ...withdrawal, isAsked: true as const })) }
}

function ifLost(error: unknown): [] {
  if (!connectionLost(error)) throw error
  return []
}

async function answersOfSigner(
  db: Queryable,
  adapter: Payer,
  asked: KeptWithdrawal[],
): Promise<Step<KeptWithdrawal>[]> {
  if (adapter.askSigner === undefined) {
    const reason = { code: 'NO_SIGNING_KEY', detail: 'no signer is configured, and one was asked' } as const
    return asked.map((withdrawal) => stepAfterSigner(withdrawal, { reason }, adapter))
  }
  // A signer is told of all payments of a transaction, also of those that another batch follows, where all of them answer.
  const together =
    adapter.paysMany === undefined ? [] : await payingTogether(db, asked[0]!.network, asked).catch(ifLost)
  const known = new Set(asked.map(({ transfer_id }) => transfer_id))
  const all = [...asked, ...together.filter(({ transfer_id }) => !known.has(transfer_id))]
  const evidence = await evidenceOfEach(db, all)
  const answers = await adapter.askSigner(
    db,
    all.map((withdrawal) => ({ ...withdrawal, evidence: evidence.get(withdrawal.transfer_id)! })),
  )
  return asked.map((withdrawal, index) => stepAfterSigner(withdrawal, answers[index]!, adapter))
}

/**
 * Broadcasts the last signed transaction of withdrawals whose replacement is unsigned: it may pay them yet, and a node may
 * have dropped it. A voided transaction is left out: the bytes of the new question may pay in its place.
 */
async function rebroadcastReplaced(db: Queryable, adapter: Payer, asked: KeptWithdrawal[]): Promise<void> {
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

/** Broadcasts withdrawals that are SIGNED. Those are to be checked that the node did not accept. */
async function broadcast(adapter: Payer, signed: KeptWithdrawal[], failures: unknown[]): Promise<Asked> {
  const answers = await inParts<KeptWithdrawal, BroadcastAnswer | undefined>(
    signed,
    (withdrawals) =>
      adapter.broadcast(withdrawals).catch((error: unknown): BroadcastAnswer[] => {
        if (!(error instanceof NodeFailure)) throw error
        const reason = reasonOfFailure(error)
        return withdrawals.map(() => ({ accepted: false, reason }))
      }),
    (withdrawal, error): undefined => void failures.push(failureOf(withdrawal, error)),
  )
  const steps = signed.map((withdrawal, index) => stepAfterBroadcast(withdrawal, answers[index], adapter))
  return { steps, toCheck: steps.flatMap(({ state, withdrawal }) => (state === 'SIGNED' ? withdrawal : [])) }
}

const failureOf = ({ transfer_id }: { transfer_id: string }, error: unknown) =>
  new RecordFailure(`withdrawal ${transfer_id}`, error)

type Checked = Omit<Followed, 'answered'>

async function checkStatus(
  db: Queryable,
  adapter: Payer,
  asked: KeptWithdrawal[],
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
  const payments = failed.flatMap(({ crypto_tx_index: _, isAsked: ___, ...withdrawal }) =>
    (signed.get(withdrawal.transfer_id) ?? []).map(({ used_by: __, ...transaction }) => {
      return { ...withdrawal, ...transaction, replaced: [] }
    }),
  )
  if (payments.length === 0) return statuses
  const doubts = new Map<string, PaymentStatus>()
  for (const [index, status] of (await transactionStatuses(payments, adapter)).entries()) {
    const { transfer_id, crypto_tx_hash } = payments[index]!
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

/** The status of each transaction; undefined for one that was not asked about. One that makes the adapter fail is UNRESOLVED. */
const transactionStatuses = <Asked extends BroadcastWithdrawal>(
  asked: readonly Asked[],
  adapter: Pick<Payer, 'checkStatus'>,
): Promise<(PaymentStatus | undefined)[]> =>
  inParts(
    asked,
    (withdrawals) => adapter.checkStatus(withdrawals),
    (_, error): PaymentStatus => ({ ...unjudged(error), mayBeMined: true }),
    (error) => error instanceof NodeFailure && !isRefusal(error),
  )
