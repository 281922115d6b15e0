import { forAll, type Database } from '../../db/database.ts'
import { momentAt } from '../../db/ids.ts'
import { knownMoment } from '../../http/require-horizon.ts'
import { microsOf, microsToTimestamp } from '../../http/time-bounds.ts'
import { completeUntil } from '../../money/books/read-entries.ts'

/**
 * The moment that an answer about all profiles is about, in microseconds: the asked one, or the last at which no entry of any
 * customer can appear any more. Throws as `knownMoment` does.
 */
export async function liabilityMoment(db: Database, asked: string | undefined): Promise<number> {
  const { micros } = await knownMoment(db, asked === undefined ? Infinity : microsOf(asked, 'at').floor)
  const whole = { db: forAll(db), customerId: undefined }
  const until = await completeUntil(whole, momentAt(microsToTimestamp(micros + 1)))
  return until.micros - 1
}
