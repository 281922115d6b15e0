import type { Queryable, Transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'
import type { AuditRecord } from '../../audit/audit.ts'
import { recordOperatorChange, type Operator } from './operators.ts'
import { hashOfSecret, newSecret } from './secrets.ts'

/** Sessions of operators: a sign-in opens a session, which takes access tokens (docs/reference/operators.md). */

export const SIGN_IN_METHODS = ['LINK', 'PASSKEY', 'OPENID'] as const
export type SignInMethod = (typeof SIGN_IN_METHODS)[number]

/** A session ends this long after it was opened. */
const SESSION_SECONDS = 12 * 60 * 60
/** A session ends when it took no access token for this long. */
const IDLE_SECONDS = 3_600
/** Most open sessions of one operator. A further sign-in ends the session that was unused the longest. */
const OPEN_MAX = 20
/** Ended sessions are shown for this long. */
const SHOWN_DAYS = 30

export interface Session extends Seal {
  id: string
  operator_id: string
  method: SignInMethod
  passkey_id: string | null
  created_at: string
  used_at: string
  expires_at: string
  /** When it was ended; null for a session that is open or that has expired. */
  ended_at: string | null
  is_open: boolean
  /** Until it expires, in whole seconds. */
  seconds_left: number
  sealed_at: string | null
}

const IS_OPEN = `ended_at is null and expires_at > clock_timestamp()
  and used_at > clock_timestamp() - make_interval(secs => ${IDLE_SECONDS})`
const COLUMNS = `id, operator_id, method, passkey_id, created_at, used_at, expires_at, ended_at, ${IS_OPEN} as is_open,
  floor(extract(epoch from expires_at - clock_timestamp()))::integer as seconds_left, sealed_at, ${sealOf('operator_sessions')}`

/** Opens a session. Its secret is always new, whatever the browser sent, which prevents session fixation. */
export async function openSession(
  tx: Transaction,
  macs: RowMacs,
  operatorId: string,
  method: SignInMethod,
  passkeyId?: string,
): Promise<{ session: Session; secret: string }> {
  const now = await readClock(tx)
  const secret = newSecret('session')
  await tx.query(
    `
    delete from operator_sessions
    where operator_id = $1 and coalesce(ended_at, expires_at) < clock_timestamp() - make_interval(days => $2)`,
    [operatorId, SHOWN_DAYS],
  )
  await tx.query(
    `
    update operator_sessions set ended_at = clock_timestamp()
    where id in (
      select id from operator_sessions
      where operator_id = $1 and ended_at is null
      order by used_at desc
      offset $2)`,
    [operatorId, OPEN_MAX - 1],
  )
  const { rows } = await tx.query<Session>(
    `
    insert into operator_sessions as r
      (id, operator_id, created_at, used_at, expires_at, secret_hash, method, passkey_id)
    values ($1, $2, $3, $3, $3::timestamptz + make_interval(secs => $4), $5, $6, $7)
    returning ${COLUMNS}`,
    [newId(now), operatorId, now.text, SESSION_SECONDS, hashOfSecret(secret), method, passkeyId],
  )
  await macs.seal(tx, 'operator_sessions', rows[0]!.id)
  return { session: rows[0]!, secret }
}

/** The session with this secret; undefined when there is none. It may have ended. */
export async function findSession(tx: Transaction, secret: string): Promise<Session | undefined> {
  const { rows } = await tx.query<Session>(
    `select ${COLUMNS} from operator_sessions r where secret_hash = $1`,
    [hashOfSecret(secret)],
  )
  return rows[0]
}

/** Stores that a session took an access token. */
export async function touchSession(tx: Transaction, id: string): Promise<void> {
  await tx.query('update operator_sessions set used_at = clock_timestamp() where id = $1', [id])
}

/**
 * Ends a session of an operator, and records it: its access tokens are refused within a second. A repeat changes nothing.
 * False when the operator has no such session.
 */
export async function endSession(
  tx: Transaction,
  operator: Operator,
  id: string,
  origin: AuditRecord['origin'],
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `
    update operator_sessions set ended_at = coalesce(ended_at, clock_timestamp())
    where operator_id = $1 and id = $2`,
    [operator.id, id],
  )
  if (rowCount !== 1) return false
  await recordOperatorChange(tx, operator, 'session.revoke', { origin, subject: { type: 'session', id } })
  return true
}

/** Most sessions that are listed: the open ones and the latest that ended. */
const LISTED_MAX = 100

/** Lists the sessions of an operator: those that were not ended, then the others, newest first. */
export async function listSessions(db: Queryable, operatorId: string): Promise<Session[]> {
  const { rows } = await db.query<Session>(
    `select ${COLUMNS} from operator_sessions r where operator_id = $1 order by ended_at is not null, id desc limit $2`,
    [operatorId, LISTED_MAX],
  )
  return rows
}
