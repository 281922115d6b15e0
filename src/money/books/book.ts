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

/** The earlier of two moments. */
export const earlierOf = (a: Moment, b: Moment): Moment => (b.micros < a.micros ? b : a)

/**
 * The last moment up to which a book is complete: `to`, or the horizon, below which no entry can appear any more. Throws
 * `HorizonUnknown`.
 */
export async function completeUntil({ db, customerId }: Book, to: Moment): Promise<Moment> {
  const whole = poolOf(db)
  const parts = customerId === undefined ? partsOf(whole) : [partOf(whole, customerId)]
  const horizons = await Promise.all(parts.map((part) => readHorizon(part.db)))
  return horizons.reduce<Moment>(earlierOf, to)
}
