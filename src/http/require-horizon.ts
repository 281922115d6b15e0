import { setTimeout as pause } from 'node:timers/promises'
import { problem } from '../contract/problems.ts'
import type { Queryable } from '../db/database.ts'
import { HorizonUnknown, readHorizon, type Horizon } from '../db/horizon.ts'

type Refusal = (reason: string) => string

/** Throws unavailable for an unknown horizon, and any other error as it is. */
export const refuseUnknown = (refusal: Refusal) => (error: unknown) => {
  if (!(error instanceof HorizonUnknown)) throw error
  throw problem.unavailable(refusal(error.message), error)
}

/** Reads the horizon for a request. Throws unavailable where the horizon is unknown. */
export const requireHorizon = (db: Queryable, refusal: Refusal): Promise<Horizon> =>
  readHorizon(db).catch(refuseUnknown(refusal))

/** How long a request waits for transactions that began before it: they are short. */
const WAITS_MS = [5, 10, 20, 40, 80]
const WAIT_MICROS = 155_000

/** Reads the horizon again until it is not before a moment, for 155 ms at most. `horizon` was read before. */
export async function awaitHorizon(
  db: Queryable,
  horizon: Horizon,
  until: number,
  refusal: Refusal,
): Promise<Horizon> {
  for (const ms of WAITS_MS) {
    if (horizon.micros >= until) break
    await pause(ms)
    horizon = await requireHorizon(db, refusal)
  }
  return horizon
}

const NOT_AVAILABLE: Refusal = (reason) => `answers about a moment are not available: ${reason}`

/**
 * Returns the moment that an answer about `wanted` is about: `wanted` itself once no record of that time can appear any
 * more. Otherwise, and for the future, it is the last microsecond before the horizon, with the horizon as `completeUntil`.
 */
export async function knownMoment(
  db: Queryable,
  wanted: number,
): Promise<{ micros: number; completeUntil?: string }> {
  const first = await requireHorizon(db, NOT_AVAILABLE)
  const now = first.readAt.micros
  const until = wanted < now + WAIT_MICROS ? wanted + 1 : now
  const { micros, text } = await awaitHorizon(db, first, until, NOT_AVAILABLE)
  return micros > wanted ? { micros: wanted } : { micros: micros - 1, completeUntil: text }
}
