import type { AuditAction } from '../../contract/audit-actions.ts'
import type { Role } from '../../contract/roles.ts'
import {
  inTransaction,
  violatedConstraint,
  type Database,
  type Queryable,
  type Transaction,
} from '../../db/database.ts'
import { newId, PLATFORM_ID, readClock } from '../../db/ids.ts'
import { recordChanges, type AuditRecord } from '../../money/ledger/audit.ts'
import { endedLater, sealOf, type RowMacs, type Seal } from '../../money/records/row-macs.ts'
import { hashOfSecret, newSecret } from './secrets.ts'

/**
 * Operators: the people who sign in to Bursar (docs/reference/operators.md). A transaction locks the operator before its
 * links, passkeys and sessions.
 */

/** An operator as its row stores it. */
export interface Operator extends Seal {
  id: string
  name: string
  role: Role
  /** The only customer that it may act for; null for any. */
  customer_id: string | null
  openid_issuer: string | null
  openid_subject: string | null
  created_at: string
  updated_at: string
  disabled_at: string | null
  generation: number
  sealed_at: string | null
}

const COLUMNS = `r.id, r.name, r.role, r.customer_id, r.openid_issuer, r.openid_subject, r.created_at, r.updated_at, r.disabled_at,
  r.generation, r.sealed_at, ${sealOf('operators')}`

export interface OpenIdAccount {
  issuer: string
  subject: string
}

export interface NewOperator {
  name: string
  role: Role
  customerId?: string | undefined
  openId?: OpenIdAccount | undefined
}

/** Creates an operator. Throws when another operator has the OpenID account. */
export async function createOperator(
  db: Database | Transaction,
  macs: RowMacs,
  { name, role, customerId, openId }: NewOperator,
): Promise<Operator> {
  return inTransaction(db, async (tx) => {
    const now = await readClock(tx)
    const { rows } = await tx
      .query<Operator>(
        `
        insert into operators as r (id, created_at, updated_at, name, role, customer_id, openid_issuer, openid_subject, generation)
        values ($1, $2, $2, $3, $4, $5, $6, $7, 0)
        returning ${COLUMNS}`,
        [newId(now), now.text, name, role, customerId, openId?.issuer, openId?.subject],
      )
      .catch((error: unknown) => {
        if (violatedConstraint(error) === 'operators_openid')
          throw new Error(`another operator has the OpenID subject ${openId!.subject}: bursar operator list`)
        throw error
      })
    await macs.seal(tx, 'operators', rows[0]!.id)
    return (await lockOperator(tx, rows[0]!.id))!
  })
}

/** Lists all operators, oldest first. */
export async function listOperators(db: Queryable): Promise<Operator[]> {
  const { rows } = await db.query<Operator>(`select ${COLUMNS} from operators r order by r.id`)
  return rows
}

/** Most operators of a customer in one list. */
const LISTED_MAX = 500

/** Lists the operators who belong to a customer, oldest first; with `all`, before them those of the platform, who act for it, too. */
export async function listOperatorsOf(db: Queryable, customerId: string, all = false): Promise<Operator[]> {
  const { rows } = await db.query<Operator>(
    `select ${COLUMNS} from operators r where r.customer_id = $1 or ($3 and r.customer_id is null)
     order by r.customer_id nulls first, r.id limit $2`,
    [customerId, LISTED_MAX, all],
  )
  return rows
}

/** The operator with this id, locked against other changes; undefined when there is none. */
export async function lockOperator(tx: Transaction, id: string): Promise<Operator | undefined> {
  const { rows } = await tx.query<Operator>(`select ${COLUMNS} from operators r where r.id = $1 for update`, [
    id,
  ])
  return rows[0]
}

/** The operator with this OpenID account, locked against other changes; undefined when there is none. */
export async function lockOperatorOf(
  tx: Transaction,
  { issuer, subject }: OpenIdAccount,
): Promise<Operator | undefined> {
  const { rows } = await tx.query<Operator>(
    `select ${COLUMNS} from operators r where r.openid_issuer = $1 and r.openid_subject = $2 for update`,
    [issuer, subject],
  )
  return rows[0]
}

/**
 * Whether an operator, and its session if given, are as they were sealed, and were not ended or changed since. The audit log
 * holds what ended them, and the service's database role cannot remove records of the audit log.
 */
export async function isGenuine(
  tx: Transaction,
  macs: RowMacs,
  operator: Operator,
  session?: Seal & { id: string; passkey_id: string | null; sealed_at: string | null },
): Promise<boolean> {
  const subjects = session === undefined ? [] : [session.id, session.passkey_id, operator.id]
  const pairs = [[operator, operator.id] as const, ...subjects.map((subject) => [session!, subject] as const)]
  const { rows } = await tx.query<{ id: string }>(
    `
    select s.id
    from unnest($2::text[], $3::text[], $4::timestamptz[]) as s (id, subject_id, sealed_at)
    where exists (
      select 1 from audit_log l
      where l.customer_id = $1 and l.subject_id = s.subject_id and ${endedLater('s.sealed_at')}
        -- A session goes on with another role.
        and (s.id = s.subject_id or l.action <> 'operator.set_role')
    )`,
    [
      operator.customer_id ?? PLATFORM_ID,
      pairs.map(([of]) => of.id),
      pairs.map(([, subject]) => subject),
      pairs.map(([of]) => of.sealed_at),
    ],
  )
  const ended = (one: { id: string }) => rows.some(({ id }) => id === one.id)
  return (
    macs.isCurrent('operators', operator.id, operator, ended(operator)) &&
    (session === undefined || macs.isCurrent('operator_sessions', session.id, session, ended(session)))
  )
}

/**
 * Gives an operator another role, and records the change. Its access tokens are refused within a second; its sessions take
 * new ones. Throws an Error for an operator whose row was changed in the database.
 */
export async function setRole(
  tx: Transaction,
  macs: RowMacs,
  operator: Operator,
  role: Role,
  origin: AuditRecord['origin'],
): Promise<void> {
  const { id } = operator
  macs.requireGenuine('operators', id, operator)
  await tx.query(
    `
    update operators set role = $2, generation = generation + 1, updated_at = clock_timestamp()
    where id = $1 and role <> $2`,
    [id, role],
  )
  const changes = { before: { role: operator.role }, after: { role } }
  await recordOperatorChange(tx, operator, 'operator.set_role', { origin, changes })
  await macs.seal(tx, 'operators', id)
}

/** Disables an operator: its sessions and links end, and its access tokens are refused within a second. */
export async function disableOperator(tx: Transaction, id: string): Promise<void> {
  await tx.query(
    `
    update operators
    set disabled_at = clock_timestamp(), generation = generation + 1, updated_at = clock_timestamp()
    where id = $1 and disabled_at is null`,
    [id],
  )
  await tx.query(
    'update operator_sessions set ended_at = clock_timestamp() where operator_id = $1 and ended_at is null',
    [id],
  )
  await tx.query('delete from operator_links where operator_id = $1 and used_at is null', [id])
}

/** Enables a disabled operator, who has to sign in again. Throws an Error if the row was changed in the database. */
export async function enableOperator(tx: Transaction, macs: RowMacs, operator: Operator): Promise<void> {
  const { id } = operator
  macs.requireGenuine('operators', id, operator)
  await tx.query(
    'update operators set disabled_at = null, updated_at = clock_timestamp() where id = $1 and disabled_at is not null',
    [id],
  )
  await macs.seal(tx, 'operators', id)
}

/** Records a change of an operator, or of its links, passkeys or sessions, in the audit log of its customer. */
export async function recordOperatorChange(
  tx: Transaction,
  { id, customer_id }: Operator,
  action: AuditAction,
  { origin, subject = { type: 'operator', id }, ...rest }: Pick<AuditRecord, 'origin'> & Partial<AuditRecord>,
): Promise<void> {
  const now = await readClock(tx)
  recordChanges(tx, customer_id ?? PLATFORM_ID, now, [{ ...rest, origin, action, subject }])
}

/** How long a one-time link can be used. */
export const LINK_SECONDS = 10 * 60

/** Makes a one-time link of an operator and returns its secret. The earlier links of the operator end. */
export async function makeLink(
  tx: Transaction,
  macs: RowMacs,
  operatorId: string,
): Promise<{ secret: string; expires_at: string }> {
  const secret = newSecret('link')
  await tx.query('delete from operator_links where operator_id = $1', [operatorId])
  const { rows } = await tx.query<{ expires_at: string }>(
    `
    insert into operator_links (hash, operator_id, created_at, expires_at)
    select $1, $2, now, now + make_interval(secs => $3) from clock_timestamp() now
    returning expires_at`,
    [hashOfSecret(secret), operatorId, LINK_SECONDS],
  )
  await macs.seal(tx, 'operator_links', hashOfSecret(secret))
  return { secret, expires_at: rows[0]!.expires_at }
}

/** Returns whose link this is; undefined for a link that does not exist, or that was changed or invented in the database. */
export async function operatorOfLink(
  tx: Transaction,
  macs: RowMacs,
  secret: string,
): Promise<string | undefined> {
  const { rows } = await tx.query<Seal & { operator_id: string }>(
    `select r.operator_id, ${sealOf('operator_links')} from operator_links r where r.hash = $1`,
    [hashOfSecret(secret)],
  )
  const [link] = rows
  if (link === undefined || !macs.isGenuine('operator_links', `of ${link.operator_id}`, link))
    return undefined
  return link.operator_id
}

/** Uses a link. Of parallel requests with one link, one gets true. */
export async function useLink(tx: Transaction, secret: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `
    update operator_links set used_at = clock_timestamp()
    where hash = $1 and used_at is null and expires_at > clock_timestamp()`,
    [hashOfSecret(secret)],
  )
  return rowCount === 1
}
