import { randomUUID } from 'node:crypto'
import { failed, ok, type Finding } from '../finding.ts'
import type { Database } from './database.ts'

/** How often the question is asked: a pooler may happen to give a client the same connection again. */
const TRIES = 5
const SETTING = 'bursar.session'
const ADVICE =
  'connect to PostgreSQL directly, or let the pooler give each client a connection of its own (PgBouncer: pool_mode = session)'

/**
 * Whether each session has a connection to the server of its own. Behind a pooler that gives connections away after each
 * transaction, named statements collide, settings of a session get lost, and so do notifications.
 */
export async function hasOwnSessions(db: Database): Promise<boolean> {
  const [first, second] = await Promise.all([db.connect(), db.connect()])
  try {
    for (let tried = 0; tried < TRIES; tried++) {
      const value = randomUUID()
      await first.query('select set_config($1, $2, false)', [SETTING, value])
      // The other session keeps a connection now: the one that has just been used, if they are shared.
      await second.query('begin')
      const seen = []
      for (const session of [second, first]) {
        const { rows } = await session.query<{ seen: string | null }>(
          'select current_setting($1, true) as seen',
          [SETTING],
        )
        seen.push(rows[0]!.seen)
      }
      await second.query('rollback')
      if (seen[0] === value || seen[1] !== value) return false
    }
    return true
  } finally {
    first.release()
    second.release()
  }
}

/** Throws an Error that says what to change where sessions have no connections of their own. */
export async function requireOwnSessions(db: Database): Promise<void> {
  if (!(await hasOwnSessions(db)))
    throw new Error(
      `a pooler gives the connections away after each transaction, which loses settings: ${ADVICE}`,
    )
}

/** Whether the sessions are Bursar's alone, for `bursar doctor`. */
export const checkOwnSessions = async (db: Database): Promise<Finding> =>
  (await hasOwnSessions(db))
    ? ok('each session has a connection of its own')
    : failed('a pooler gives the connections away after each transaction', ADVICE)
