import { randomBytes } from 'node:crypto'

/** Random seed for a property test, printed when it fails (TEST_SEED repeats it). */
export const SEED = Number(process.env.TEST_SEED ?? randomBytes(4).readInt32BE())
