/** How a sandbox deposit of a magic amount goes on. Both begin as PENDING. */
export type MagicDeposit = 'COMPLETED_LATER' | 'FAILED_LATER'

/**
 * The amounts of sandbox deposits that do not arrive at once (docs/reference/magic-destinations.md, "Deposits"). Few
 * people would choose them by accident. Canonical decimal strings, of any asset.
 */
export const MAGIC_AMOUNTS: Record<MagicDeposit, string> = {
  COMPLETED_LATER: '9000.01',
  FAILED_LATER: '9000.02',
}

/** Returns how a deposit of this amount goes on; undefined for a deposit that is credited at once. */
export function magicDeposit(canonicalAmount: string): MagicDeposit | undefined {
  const outcomes = Object.keys(MAGIC_AMOUNTS) as MagicDeposit[]
  return outcomes.find((outcome) => MAGIC_AMOUNTS[outcome] === canonicalAmount)
}
