import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type {
  BroadcastAnswer,
  PaymentStatus,
  PaymentRefusal,
  Review,
  SignerAnswer,
  Signing,
} from '../../networks/network.ts'
import type { WaitingReason } from '../../networks/waiting.ts'
import type { SigningDecision } from './check-before-signing.ts'
import {
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
  type StepOf,
} from './next-step.ts'

/**
 * Invariants of every step, whatever a network answers: 1. only SIGNED of `sign` and a replacement return bytes, and
 * only bytes that the adapter gave; 2. only a refusal returns the money (FAILED), never an uncertain answer; 3. a
 * withdrawal has ended exactly if nothing is due; 4. a waiting withdrawal has a reason, and no other has one; 5.
 * signed bytes are never dropped: only VOID leads from SIGNED or BROADCAST back to HELD, with the transaction that ended them.
 */

const refusal: fc.Arbitrary<PaymentRefusal> = fc.constant({
  secondary_status: { name: 'OTHER', detail: 'refused' },
} as unknown as PaymentRefusal)
const reason: fc.Arbitrary<WaitingReason> = fc.record({
  code: fc.constantFrom('HOT_WALLET_SHORT', 'NODE_DOWN', 'FROZEN', 'UNRESOLVED'),
  detail: fc.string(),
  recheckMs: fc.option(fc.nat({ max: 100_000 }), { nil: undefined }),
})
const bytes = fc.record({
  raw_transaction: fc.uint8Array({ minLength: 1 }).map((array) => Buffer.from(array)),
  crypto_tx_hash: fc.string({ minLength: 1 }),
})
const withdrawal = (states: StepOf['state'][]) =>
  fc
    .record({
      transfer_id: fc.uuid(),
      state: fc.constantFrom(...states),
      network: fc.constantFrom('ETHEREUM' as const, 'BITCOIN' as const, 'WIRE' as const),
      kept: bytes,
    })
    .map(({ transfer_id, state, network, kept }) => {
      const isKept = state === 'SIGNED' || state === 'BROADCAST'
      const { raw_transaction, crypto_tx_hash } = isKept
        ? kept
        : { raw_transaction: null, crypto_tx_hash: null }
      const about = { customer_id: 'c', profile_id: 'p', asset: 'ETH', amount: '1', destination_address: 'a' }
      return {
        ...about,
        transfer_id,
        state,
        network,
        fee: '0',
        fiat_account_id: null,
        memo: null,
        raw_transaction,
        crypto_tx_hash,
      }
    })
const timing = fc.record({ pollMs: fc.nat({ max: 100_000 }) })

function requireSound(step: Step): void {
  const { state, signed, waitingReason, dueInMs, transfer, withdrawal } = step
  expect(dueInMs === undefined).toBe(state === 'DONE')
  expect(state === 'DONE').toBe(transfer?.status === 'COMPLETED' || transfer?.status === 'FAILED')
  if (waitingReason !== undefined) expect(state).not.toBe('DONE')
  if (signed !== undefined) expect(state).toBe('SIGNED')
  if (withdrawal.state === 'SIGNED' || withdrawal.state === 'BROADCAST')
    expect(state === 'HELD').toBe(step.usedBy !== undefined)
}

describe('of an unsigned withdrawal', () => {
  const fresh = withdrawal(['NEW', 'HELD'])

  test('a review accepts, holds or refuses it', () => {
    const review: fc.Arbitrary<Review> = fc.oneof(
      fc.constant({ verdict: 'PASS' as const }),
      refusal.map((refusal) => ({ verdict: 'REJECT' as const, refusal })),
      fc.nat().map((holdMs) => ({
        verdict: 'HOLD' as const,
        holdMs,
        secondary_status: { name: 'OTHER', detail: 'a hold' } as never,
      })),
    )
    fc.assert(
      fc.property(withdrawal(['NEW']), review, (one, answer) => {
        const step = stepAfterReview(one, answer)
        if (answer.verdict === 'PASS') {
          expect(step).toBeUndefined()
          return
        }
        requireSound(step!)
        expect(step!.transfer!.status).toBe(answer.verdict === 'REJECT' ? 'FAILED' : 'PENDING')
        expect(step!.signed).toBeUndefined()
      }),
    )
  })

  test('a check allows the signature, or gives the waiting reason', () => {
    const decision: fc.Arbitrary<SigningDecision> = fc.oneof(
      fc.constant({ outcome: 'SIGN' as const }),
      reason.map((reason) => ({ outcome: 'DEFERRED' as const, reason })),
      refusal.map((refusal) => ({ outcome: 'REFUSED' as const, refusal })),
    )
    fc.assert(
      fc.property(fresh, decision, timing, (one, answer, when) => {
        const step = stepAfterCheck(one, answer, when)
        if (answer.outcome === 'SIGN') {
          expect(step).toBeUndefined()
          return
        }
        requireSound(step!)
        if (answer.outcome === 'DEFERRED')
          expect(step).toMatchObject({
            state: 'HELD',
            waitingReason: answer.reason,
            dueInMs: when.pollMs,
          })
        else expect(step!.transfer!.status).toBe('FAILED')
      }),
    )
  })

  test('signing records exactly the signed bytes', () => {
    const signing: fc.Arbitrary<Signing> = fc.oneof(
      bytes.map((signed) => ({ outcome: 'SIGNED' as const, ...signed })),
      reason.map((reason) => ({ outcome: 'DEFERRED' as const, reason })),
      refusal.map((refusal) => ({ outcome: 'REFUSED' as const, refusal })),
    )
    fc.assert(
      fc.property(fresh, signing, timing, (one, answer, when) => {
        const step = stepAfterSigning(one, answer, when)
        requireSound(step)
        expect(step.replaces).toBeUndefined()
        if (answer.outcome === 'SIGNED') {
          const { outcome: _, ...signed } = answer
          expect(step).toMatchObject({ state: 'SIGNED', signed, dueInMs: 0 })
          // The secondary status of a hold ends with the hold.
          expect(step.transfer).toEqual(one.state === 'HELD' ? { status: 'PENDING' } : undefined)
        } else {
          expect(step.signed).toBeUndefined()
          expect(step.state).toBe(answer.outcome === 'DEFERRED' ? 'HELD' : 'DONE')
        }
      }),
    )
  })
})

describe('of a signed withdrawal', () => {
  const networkFee = fc.option(fc.constant({ asset: 'ETH', amount: '0.1' }), { nil: undefined })
  const status: fc.Arbitrary<PaymentStatus> = fc.oneof(
    fc.record({ state: fc.constant('CONFIRMED' as const), crypto_tx_index: fc.string() }),
    fc.record({
      state: fc.constant('CONFIRMED' as const),
      crypto_tx_index: fc.string(),
      crypto_tx_hash: fc.string({ minLength: 1 }),
      networkFee: fc.constant({ asset: 'ETH', amount: '0.1' }),
    }),
    fc.constantFrom(
      { state: 'PENDING' as const },
      { state: 'MINED' as const },
      { state: 'UNKNOWN' as const },
      { state: 'PENDING' as const, isTooCheap: true as const },
      { state: 'UNKNOWN' as const, isTooCheap: true as const },
    ),
    fc.tuple(refusal, networkFee, fc.boolean()).map(([refusal, fee, byRecipient]) => ({
      ...{ state: 'FAILED' as const, refusal },
      ...(fee && { networkFee: fee }),
      ...(byRecipient && { byRecipient: true as const }),
    })),
    fc.tuple(reason, fc.boolean(), fc.boolean()).map(([reason, hasError, mayBeMined]) => ({
      ...{ state: 'UNRESOLVED' as const, reason },
      ...(hasError && { error: new Error('not judged') }),
      ...(mayBeMined && { mayBeMined: true as const }),
    })),
    fc.string({ minLength: 1 }).map((usedBy) => ({ state: 'VOID' as const, usedBy })),
  )
  const signedOne = withdrawal(['SIGNED', 'BROADCAST']).map((one) => ({
    ...one,
    crypto_tx_hash: one.crypto_tx_hash!,
  }))

  test('a broadcast ends it only by a permanent refusal', () => {
    const answer: fc.Arbitrary<BroadcastAnswer | undefined> = fc.oneof(
      fc.constant(undefined),
      fc.constant({ accepted: true as const }),
      refusal.map((refusal) => ({ accepted: false as const, refusal })),
      reason.map((reason) => ({ accepted: false as const, reason })),
    )
    fc.assert(
      fc.property(signedOne, answer, timing, (one, said, when) => {
        const step = stepAfterBroadcast(one, said, when)
        requireSound(step)
        expect(step.signed).toBeUndefined()
        if (said === undefined)
          expect(step).toEqual({ withdrawal: one, state: 'SIGNED', dueInMs: when.pollMs })
        else if (said.accepted) expect(step).toMatchObject({ state: 'BROADCAST', dueInMs: when.pollMs })
        else if ('refusal' in said) expect(step.transfer!.status).toBe('FAILED')
        else expect(step).toMatchObject({ state: 'SIGNED', waitingReason: said.reason })
      }),
    )
  })

  test('a status ends it only if confirmed or failed, and an open question never refunds', () => {
    fc.assert(
      fc.property(signedOne, status, timing, (one, said, when) => {
        const step = stepAfterStatus(one, said, when)
        if (step === undefined) {
          expect(one.state).toBe('SIGNED')
          expect(said.state === 'UNKNOWN' || ('error' in said && 'mayBeMined' in said)).toBe(true)
          return
        }
        requireSound(step)
        expect(step.signed).toBeUndefined()
        const status = { CONFIRMED: 'COMPLETED', FAILED: 'FAILED' }[said.state as string]
        expect(step.transfer?.status).toBe(status)
        expect(step.usedBy).toBe(said.state === 'VOID' ? said.usedBy : undefined)
        const failure = 'byRecipient' in said ? 'BY_RECIPIENT' : 'UNEXPLAINED'
        expect(step.failure).toBe(said.state === 'FAILED' ? failure : undefined)
        if (said.state === 'UNRESOLVED')
          expect(step).toMatchObject({
            waitingReason: said.reason,
            dueInMs: said.reason.recheckMs ?? when.pollMs,
          })
        else expect(step.waitingReason).toBeUndefined()
        if (said.state === 'UNKNOWN') expect(step).toMatchObject({ state: 'SIGNED', dueInMs: 0 })
        if (said.state !== 'CONFIRMED') return
        // A wire has no hash on a chain. The mined transaction may differ from the last signed one.
        const hash = said.crypto_tx_hash ?? one.crypto_tx_hash
        expect(step.transfer!.crypto_tx_hash).toBe(one.network === 'WIRE' ? undefined : hash)
        expect(step.networkFee).toEqual(said.networkFee)
      }),
    )
  })

  test('a signer signs it, has ended it, or is asked again', () => {
    const asked = withdrawal(['ASKED']).map((one) => ({ ...one, crypto_tx_hash: 'asked' }))
    const answer: fc.Arbitrary<SignerAnswer> = fc.oneof(
      bytes.map((signed) => ({ signed })),
      reason.map((reason) => ({ reason })),
      fc.string({ minLength: 1 }).map((usedBy) => ({ status: { state: 'VOID' as const, usedBy } })),
      fc.constant({ status: { state: 'CONFIRMED' as const, crypto_tx_index: '0' } }),
    )
    fc.assert(
      fc.property(asked, answer, timing, (one, said, when) => {
        const step = stepAfterSigner(one, said, when)
        requireSound(step)
        if ('signed' in said) expect(step).toMatchObject({ state: 'SIGNED', signed: said.signed, dueInMs: 0 })
        else if ('reason' in said)
          expect(step).toMatchObject({
            ...{ state: 'ASKED', waitingReason: said.reason },
            dueInMs: said.reason.recheckMs ?? when.pollMs,
          })
        else expect(step).toEqual(stepAfterStatus(one, said.status, when))
      }),
    )
  })

  test('it is replaced only after a long enough wait for a block, or when no block can have it', () => {
    fc.assert(
      fc.property(status, fc.nat(), fc.option(fc.nat(), { nil: undefined }), (said, age_ms, stuckAfterMs) => {
        const mayBe = mayBeReplaced({ age_ms }, said, {
          pollMs: 1,
          ...(stuckAfterMs !== undefined && { stuckAfterMs }),
        })
        const isOpen = said.state === 'PENDING' || said.state === 'UNKNOWN'
        const hasWaited = stuckAfterMs !== undefined && age_ms >= stuckAfterMs
        expect(mayBe).toBe(isOpen && (hasWaited || 'isTooCheap' in said))
      }),
    )
  })

  test('a replacement takes the place of the other step of the same withdrawal', () => {
    const unique = fc.uniqueArray(signedOne, { selector: ({ transfer_id }) => transfer_id })
    fc.assert(
      fc.property(unique, bytes, fc.nat(), (all, signed, count) => {
        const steps = all.map((one) => stepAfterBroadcast(one, { accepted: true }, { pollMs: 1 }))
        const replaced = all.slice(0, count).map((one) => replacedStep(one, signed))
        for (const step of replaced) requireSound(step)
        const both = overriddenBy(steps, replaced)
        expect(both.map(({ withdrawal }) => withdrawal.transfer_id).sort()).toEqual(
          all.map(({ transfer_id }) => transfer_id).sort(),
        )
        expect(both.filter(({ replaces }) => replaces)).toEqual(replaced)
      }),
    )
  })
})
