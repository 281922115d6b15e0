import { problem } from '../contract/problems.ts'
import type { Queryable } from '../db/database.ts'
import { HorizonUnknown, readHorizon, type Horizon } from '../db/horizon.ts'

/**
 * Reads the horizon for a request. Throws unavailable where the horizon is unknown. `refusal` makes the detail from the
 * reason, which an operator can remove.
 */
export const requireHorizon = (db: Queryable, refusal: (reason: string) => string): Promise<Horizon> =>
  readHorizon(db).catch((error: unknown) => {
    if (!(error instanceof HorizonUnknown)) throw error
    throw problem.unavailable(refusal(error.message), error)
  })
