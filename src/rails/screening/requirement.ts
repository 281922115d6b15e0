import type { Origin } from '../../contract/actor.ts'
import { transaction, type Database, type Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { audited, recordNow } from '../../audit/audited.ts'

/**
 * Whether payments of this deployment must be screened. The settings alone cannot say that: a process that lacks them would
 * pay what the others hold. So the database remembers it, and the service's role cannot make it forget.
 */

/** Returns since when payments must be screened; undefined where they need not be. */
export async function screenedSince(db: Queryable): Promise<string | undefined> {
  const { rows } = await db.query<{ since: string }>({
    name: 'screened since',
    text: 'select since from screening_requirement',
    values: [],
  })
  return rows[0]?.since
}

/** Remembers that payments must be screened from now on. Repeating it changes nothing. */
export async function requireScreening(db: Database, origin: Origin): Promise<void> {
  if ((await screenedSince(db)) !== undefined) return
  await transaction(db, async (tx) => {
    const { rowCount } = await tx.query(
      'insert into screening_requirement (id, since) values (1, clock_timestamp()) on conflict do nothing',
    )
    if (rowCount === 0) return
    await recordNow(tx, PLATFORM_ID, audited(origin, 'screening.require', DEPLOYMENT))
  })
}

/**
 * Lets payments go on without screening, as the role that owns the schema. Returns since when they had to be screened;
 * undefined, and nothing changes, where they did not have to be.
 */
export const waiveScreening = (owner: Database, origin: Origin): Promise<string | undefined> =>
  transaction(owner, async (tx) => {
    const { rows } = await tx.query<{ since: string }>('delete from screening_requirement returning since')
    const since = rows[0]?.since
    if (since === undefined) return undefined
    const changes = { before: { required_since: since }, after: { required_since: null } }
    await recordNow(tx, PLATFORM_ID, audited(origin, 'screening.waive', DEPLOYMENT, changes))
    return since
  })

/** The subject of the records about the requirement. */
const DEPLOYMENT = 'deployment'

/** What to do about a process that lacks the settings. */
export const lacksSettings = (since: string): string =>
  `BURSAR_SCREENING_URL: payments are screened here since ${since}: give this process the settings of the others. Where they shall be paid unscreened, run as the owner of the schema: bursar screening waive`
