import { randomBytes } from 'node:crypto'
import fc from 'fast-check'

/** Random seed for a property test, printed when it fails (TEST_SEED repeats it). */
export const SEED = Number(process.env.TEST_SEED ?? randomBytes(4).readInt32BE())

/** Whether the walks go through every step, and the properties through all their runs: TEST_EVERY_STEP=1. */
const EVERY_STEP = process.env.TEST_EVERY_STEP === '1'

/**
 * Parameters of a property. A run on a developer's machine has a quarter of the cases, drawn anew by each run's seed;
 * CI and TEST_EVERY_STEP=1 have all of them.
 */
export const runs = (most: number) => ({
  seed: SEED,
  numRuns: EVERY_STEP || process.env.CI !== undefined ? most : Math.ceil(most / 4),
})

/** Places of a walk, beside its ends, that one run goes to. */
const DRAWN = 10

/** The places of a walk of so many steps: both ends and some that the seed draws, or all with TEST_EVERY_STEP. */
export function placesOf(steps: number): number[] {
  const all = Array.from({ length: steps }, (_, step) => step)
  if (EVERY_STEP || steps <= DRAWN + 2) return all
  const between = fc.shuffledSubarray(all.slice(1, -1), { minLength: DRAWN, maxLength: DRAWN })
  const [drawn] = fc.sample(between, { seed: SEED, numRuns: 1 })
  return [0, ...drawn!.sort((a, b) => a - b), steps - 1]
}
