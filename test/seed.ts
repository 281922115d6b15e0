import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { EVERY_STEP } from './every-step.ts'

/** Random seed for a property test, printed when it fails (TEST_SEED repeats it). */
export const SEED = Number(process.env.TEST_SEED ?? randomBytes(4).readInt32BE())

/** How much of a property or a walk one run takes, drawn with a new seed each time: TEST_EVERY_STEP=1 takes all of it. */
const PART = EVERY_STEP ? 1 : 8
/** Number of places in a walk, besides its ends. */
const DRAWN = 2

/** Parameters of a property with at most this many cases. */
export const runs = (most: number) => ({ seed: SEED, numRuns: Math.ceil(most / PART) })

/** The part of some subjects that one run takes, each of which is a test of its own: one of `share`, at least one. */
export function partOf<Subject>(all: readonly Subject[], share = PART): Subject[] {
  const count = EVERY_STEP ? all.length : Math.ceil(all.length / share)
  const drawn = fc.shuffledSubarray([...all], { minLength: count, maxLength: count })
  return EVERY_STEP ? [...all] : fc.sample(drawn, { numRuns: 1, seed: SEED })[0]!
}

/** Selects the places of a walk with this many steps: both ends and some drawn by the seed, or all with TEST_EVERY_STEP=1. */
export function placesOf(steps: number): number[] {
  const all = Array.from({ length: steps }, (_, step) => step)
  if (EVERY_STEP || steps <= DRAWN + 2) return all
  const between = fc.shuffledSubarray(all.slice(1, -1), { minLength: DRAWN, maxLength: DRAWN })
  const [drawn] = fc.sample(between, { seed: SEED, numRuns: 1 })
  return [0, ...drawn!.sort((a, b) => a - b), steps - 1]
}

/** A generator of numbers from 0 to 1 that the seed determines (mulberry32). */
export function seededRandom(seed = SEED): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
