import type { SecondaryStatus, StatusDetails } from '../../contract/transfer-status.ts'
import type {
  BroadcastAnswer,
  Payer,
  PaymentStatus,
  PaymentRefusal,
  Review,
  SignedTransaction,
  SignerAnswer,
  Signing,
  Withdrawal,
} from '../../networks/network.ts'
import type { NetworkFee } from '../../networks/moved-on-chain.ts'
import type { WaitingReason } from '../../networks/waiting.ts'
import type { SigningDecision } from './check-before-signing.ts'
import type { OutgoingStep, OutgoingState } from '../../networks/outgoing-transfers.ts'

/**
 * The next step of a withdrawal, decided from its state and from what its network or the checks answered. Nothing here
 * reads a clock, the database or a network: `sign-withdrawals.ts` and `follow-withdrawals.ts` ask, `record-steps.ts` records.
 */

/** A withdrawal as it was claimed. A step is recorded only if the withdrawal has not changed since. */
export type StepOf = Withdrawal & {
  state: OutgoingState
  crypto_tx_hash: string | null
  raw_transaction: Buffer | null
}

/** What becomes of a claimed withdrawal: its next state, and what changes on the transfer. */
export interface Step<Of extends StepOf = StepOf> extends OutgoingStep {
  withdrawal: Of
  /** The network has its transaction, and it moved nothing. UNEXPLAINED: the recipient cannot have caused that. */
  failure?: 'BY_RECIPIENT' | 'UNEXPLAINED'
  networkFee?: NetworkFee | undefined
  /** The transfer's new values; absent when the transfer stays as it is. */
  transfer?: {
    status: 'PENDING' | 'COMPLETED' | 'FAILED'
    secondary_status?: SecondaryStatus | undefined
    status_details?: StatusDetails | undefined
    crypto_tx_hash?: string
    crypto_tx_index?: string
  }
}

type Timing = Pick<Payer, 'pollMs' | 'stuckAfterMs'>

/** The step after the review of a new withdrawal; undefined where it passed, and may be signed. */
export function stepAfterReview<Of extends StepOf>(withdrawal: Of, review: Review): Step<Of> | undefined {
  switch (review.verdict) {
    case 'PASS':
      return undefined
    case 'REJECT':
      return failedStep(withdrawal, review.refusal)
    case 'HOLD': {
      const { verdict: _, holdMs, ...why } = review
      const transfer = { status: 'PENDING', ...why } as const
      return { withdrawal, state: 'HELD', dueInMs: holdMs, transfer }
    }
  }
}

/** The step after the check before signing; undefined where the withdrawal may be signed. */
export function stepAfterCheck<Of extends StepOf>(
  withdrawal: Of,
  decision: SigningDecision,
  timing: Timing,
): Step<Of> | undefined {
  switch (decision.outcome) {
    case 'SIGN':
      return undefined
    case 'DEFERRED':
      return {
        ...deferredStep(withdrawal, decision.reason, timing),
        dueInMs: decision.dueInMs ?? timing.pollMs,
      }
    case 'REFUSED':
      return failedStep(withdrawal, decision.refusal)
  }
}

/** The step after the network's adapter was asked to sign. */
export function stepAfterSigning<Of extends StepOf>(
  withdrawal: Of,
  signing: Signing,
  timing: Timing,
): Step<Of> {
  switch (signing.outcome) {
    case 'DEFERRED':
      return deferredStep(withdrawal, signing.reason, timing)
    case 'REFUSED':
      return failedStep(withdrawal, signing.refusal)
    case 'SIGNED': {
      const { outcome: _, ...signed } = signing
      const state = stateOf(signed)
      // The hold is over, and so is the secondary status that announced it.
      const transfer = withdrawal.state === 'HELD' && { transfer: { status: 'PENDING' as const } }
      return { withdrawal, state, signed, dueInMs: 0, ...transfer }
    }
  }
}

const stateOf = ({ isAsked }: SignedTransaction) => (isAsked ? 'ASKED' : 'SIGNED')

/** The step after the signer process or a person was asked: it is signed, has ended otherwise, or is asked about again. */
export function stepAfterSigner<Of extends StepOf & { crypto_tx_hash: string }>(
  withdrawal: Of,
  answer: SignerAnswer,
  timing: Timing,
): Step<Of> {
  if ('signed' in answer) return { withdrawal, state: 'SIGNED', signed: answer.signed, dueInMs: 0 }
  if ('status' in answer) return stepAfterStatus(withdrawal, answer.status, timing)!
  const { reason } = answer
  return { withdrawal, state: 'ASKED', waitingReason: reason, dueInMs: reason.recheckMs ?? timing.pollMs }
}

/** The step after a broadcast. Where it failed for this transaction alone, there is no answer, and it is broadcast again. */
export function stepAfterBroadcast<Of extends StepOf>(
  withdrawal: Of,
  answer: BroadcastAnswer | undefined,
  { pollMs: dueInMs }: Timing,
): Step<Of> {
  if (answer === undefined) return { withdrawal, state: 'SIGNED', dueInMs }
  if (answer.accepted) return { withdrawal, state: 'BROADCAST', dueInMs, waitingReason: answer.reason }
  if ('refusal' in answer) return failedStep(withdrawal, answer.refusal)
  return { withdrawal, state: 'SIGNED', dueInMs, waitingReason: answer.reason }
}

/**
 * The step after the network said how far the transaction is; undefined where that is nothing new. A moment ago the node did
 * not accept the transaction, and now the network does not know it, or its status cannot be judged: it is broadcast again.
 */
export function stepAfterStatus<Of extends StepOf & { crypto_tx_hash: string }>(
  withdrawal: Of,
  status: PaymentStatus,
  { pollMs: dueInMs }: Timing,
): Step<Of> | undefined {
  switch (status.state) {
    case 'CONFIRMED': {
      const { crypto_tx_hash = withdrawal.crypto_tx_hash, crypto_tx_index, networkFee } = status
      const onChain = withdrawal.network !== 'WIRE' && { crypto_tx_hash, crypto_tx_index }
      return { withdrawal, state: 'DONE', networkFee, transfer: { status: 'COMPLETED', ...onChain } }
    }
    case 'FAILED':
      return {
        ...failedStep(withdrawal, status.refusal),
        networkFee: status.networkFee,
        failure: status.byRecipient ? 'BY_RECIPIENT' : 'UNEXPLAINED',
      }
    case 'VOID':
      return { withdrawal, state: 'HELD', usedBy: status.usedBy, dueInMs: 0 }
    case 'PENDING':
      return { withdrawal, state: 'BROADCAST', dueInMs, waitingReason: status.reason }
    case 'MINED':
      return { withdrawal, state: 'BROADCAST', dueInMs, confirmations: status.confirmations }
    case 'UNRESOLVED':
      if (status.error !== undefined && status.mayBeMined && withdrawal.state === 'SIGNED') return undefined
      return {
        withdrawal,
        state: 'BROADCAST',
        dueInMs: status.reason.recheckMs ?? dueInMs,
        waitingReason: status.reason,
      }
    case 'UNKNOWN':
      if (withdrawal.state === 'SIGNED') return undefined
      return { withdrawal, state: 'SIGNED', dueInMs: 0, waitingReason: status.reason }
  }
}

/**
 * Whether an unmined transaction may be replaced with a higher fee: it is too cheap for any block, or has waited long enough.
 */
export const mayBeReplaced = (
  { age_ms }: { age_ms: number },
  status: PaymentStatus,
  { stuckAfterMs = Infinity }: Timing,
): boolean =>
  (status.state === 'PENDING' || status.state === 'UNKNOWN') &&
  (status.isTooCheap === true || age_ms >= stuckAfterMs)

export const replacedStep = <Of extends StepOf>(withdrawal: Of, signed: SignedTransaction): Step<Of> => ({
  withdrawal,
  state: stateOf(signed),
  signed,
  replaces: true,
  dueInMs: 0,
})

/** The step of a withdrawal that cannot be signed yet. */
export const deferredStep = <Of extends StepOf>(
  withdrawal: Of,
  waitingReason: WaitingReason,
  { pollMs }: Timing,
): Step<Of> => ({
  withdrawal,
  state: 'HELD',
  dueInMs: waitingReason.recheckMs ?? pollMs,
  waitingReason,
})

const failedStep = <Of extends StepOf>(withdrawal: Of, refusal: PaymentRefusal): Step<Of> => ({
  withdrawal,
  state: 'DONE',
  transfer: { status: 'FAILED', ...refusal },
})

/** The first steps, without those of withdrawals that have a second step, and the second steps. */
export function overriddenBy<Of extends StepOf>(
  steps: readonly Step<Of>[],
  overriding: readonly Step<Of>[],
): Step<Of>[] {
  const overridden = new Set(overriding.map(({ withdrawal }) => withdrawal.transfer_id))
  return [...steps.filter(({ withdrawal }) => !overridden.has(withdrawal.transfer_id)), ...overriding]
}
