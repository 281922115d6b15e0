import { problem } from '../contract/problems.ts'
import type { Queryable } from '../db/database.ts'
import { HorizonUnknown, readHorizon, type Horizon } from '../db/horizon.ts'

/**
 * Reads the horizon for a request. Where it is unknown, throws unavailable: `refusal` says what is refused, given the
 * reason, which an operator can mend.
 */
export const requireHorizon = (db: Queryable, refusal: (reason: string) => string): Promise<Horizon> =>
  readHorizon(db).catch((error: unknown) => {
    if (!(error instanceof HorizonUnknown)) throw error
    throw problem.unavailable(refusal(error.message), error)
  })
