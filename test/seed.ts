import { randomBytes } from 'node:crypto'

/** Random seed for a property test, printed when it fails (TEST_SEED repeats it). */
export const SEED = Number(process.env.TEST_SEED ?? randomBytes(4).readInt32BE())

/** Whether the walks go through every step, and the properties through all their runs: TEST_EVERY_STEP=1. */
export const EVERY_STEP = process.env.TEST_EVERY_STEP === '1'

/**
 * Parameters of a property. A run on a developer's machine has a quarter of the cases, drawn anew by each run's seed;
 * CI and TEST_EVERY_STEP=1 have all of them.
 */
export const runs = (most: number) => ({
  seed: SEED,
  numRuns: EVERY_STEP || process.env.CI !== undefined ? most : Math.ceil(most / 4),
})
