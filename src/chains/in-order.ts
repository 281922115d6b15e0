import { BEHIND_ANOTHER, deferred, DELAYS_ALL_ASSETS, DELAYS_NOBODY } from './waiting.ts'
import type { Withdrawal } from './network.ts'

/**
 * The decision about each withdrawal in order. Once one is deferred, the later ones of its profile and asset are, too; where
 * its fee is not covered, the profile's later ones of all assets.
 */
export function inOrder<D extends { outcome: string } | object | undefined>(
  withdrawals: Withdrawal[],
  decideOne: (withdrawal: Withdrawal, index: number) => D,
): (D | ReturnType<typeof deferred>)[] {
  const waiting = new Set<string>()
  return withdrawals.map((withdrawal, index) => {
    const profile = `${withdrawal.customer_id} ${withdrawal.profile_id}`
    const own = `${profile} ${withdrawal.asset}`
    if (waiting.has(own) || waiting.has(profile)) return deferred(BEHIND_ANOTHER)
    const decision = decideOne(withdrawal, index)
    if (decision !== undefined && 'outcome' in decision && decision.outcome === 'DEFERRED') {
      const { code } = (decision as ReturnType<typeof deferred>).reason
      if (!DELAYS_NOBODY.includes(code)) waiting.add(code === DELAYS_ALL_ASSETS ? profile : own)
    }
    return decision
  })
}
