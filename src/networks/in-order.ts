import { PAYMENT_CODES, type WaitingCode } from '../contract/waiting-codes.ts'
import type { Withdrawal } from './network.ts'
import { BEHIND_ANOTHER, deferred, DELAYS_ALL_ASSETS } from './waiting.ts'

const DELAYS_NOBODY: ReadonlySet<WaitingCode> = new Set(PAYMENT_CODES)

/**
 * The decision about each withdrawal in order. Once one is deferred, the later ones of its profile and asset are, too; where
 * its gas is not covered, the profile's later ones of all assets.
 */
export function inOrder<D extends object | undefined>(
  withdrawals: readonly Withdrawal[],
  decideOne: (withdrawal: Withdrawal, index: number) => D,
): (D | ReturnType<typeof deferred>)[] {
  const waiting = new Set<string>()
  return withdrawals.map((withdrawal, index) => {
    const profile = `${withdrawal.customer_id} ${withdrawal.profile_id}`
    const own = `${profile} ${withdrawal.asset}`
    if (waiting.has(own) || waiting.has(profile)) return deferred(BEHIND_ANOTHER)
    const decision = decideOne(withdrawal, index)
    if (isDeferred(decision)) {
      const { code } = decision.reason
      if (!DELAYS_NOBODY.has(code)) waiting.add(code === DELAYS_ALL_ASSETS ? profile : own)
    }
    return decision
  })
}

const isDeferred = (decision: object | undefined): decision is ReturnType<typeof deferred> =>
  decision !== undefined && 'outcome' in decision && decision.outcome === 'DEFERRED'
