import type { Queryable } from '../../db/database.ts'
import { failed, ok, warn, type Finding } from '../../finding.ts'
import type { Settings } from '../../settings.ts'
import { readScreeningSettings } from './open-screening.ts'
import { screenedSince } from './requirement.ts'
import { listScreened, SCREENED_MAX } from './screen-payments.ts'

/** A payment that has waited this long for its screening needs somebody to look. */
const SECONDS_WARN = 900

/** Whether screening has its settings, and whether payments have waited long for it. Without a database, the settings alone. */
export async function checkScreening(db: Queryable | undefined, settings: Settings): Promise<Finding> {
  const isOn = (await readScreeningSettings(settings)) !== undefined
  if (db === undefined) return ok(isOn ? 'configured' : 'not configured')
  const since = await screenedSince(db)
  if (!isOn && since !== undefined)
    return failed(
      `payments are screened since ${since}, and BURSAR_SCREENING_URL is not set here: a worker does not start`,
      'give every process the same settings, or pay unscreened on purpose: bursar screening waive (docs/guides/screening.md)',
    )
  const held = await listScreened(db)
  const { rows } = await db.query<{ seconds: number }>(
    'select extract(epoch from clock_timestamp() - $1::timestamptz)::float8 as seconds',
    [held[0]?.created_at ?? null],
  )
  const { seconds } = rows[0]!
  if (held.length > 0 && seconds > SECONDS_WARN)
    return warn(
      `${held.length >= SCREENED_MAX ? `${SCREENED_MAX} or more` : held.length} payments wait for their screening, the first for ${Math.round(seconds)} s`,
      'bursar screening list has the cause (docs/guides/screening.md)',
    )
  return ok(isOn ? 'no payment waits long for its screening' : 'not configured')
}
