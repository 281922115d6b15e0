import { poolOf } from '../../db/customer-pool.ts'
import type { Database } from '../../db/database.ts'
import { readHorizon } from '../../db/horizon.ts'
import type { Moment } from '../../db/ids.ts'
import { partOf, partsOf } from '../../db/parts.ts'

/** Whose entries are read: of one customer, or of all and the platform. */
export interface Book {
  db: Database
  customerId: string | undefined
}

/** `from` <= time < `to`. */
export interface Time {
  from: Moment
  to: Moment
}

const earlierOf = (a: Moment, b: Moment): Moment => (b.micros < a.micros ? b : a)

/**
 * What of a time is final: it ends at `to`, or at the horizon, below which no entry can appear any more. Throws
 * `HorizonUnknown`.
 */
export async function finalTime({ db, customerId }: Book, { from, to }: Time): Promise<Time> {
  const whole = poolOf(db)
  const parts = customerId === undefined ? partsOf(whole) : [partOf(whole, customerId)]
  const horizons = await Promise.all(parts.map((part) => readHorizon(part.db)))
  const end = horizons.reduce<Moment>(earlierOf, to)
  return { from: earlierOf(from, end), to: end }
}
