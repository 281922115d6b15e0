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
import { recordChanges, type AuditRecord } from '../../audit/audit.ts'
import { endedLater, sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'
import { hashOfSecret, newSecret } from './secrets.ts'

/**
 * Operators: the people who sign in to Bursar (docs/reference/operators.md). A transaction locks the operator before its
 * links, passkeys and sessions.
 */

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

export async function listOperators(db: Queryable): Promise<Operator[]> {
  const { rows } = await db.query<Operator>(`select ${COLUMNS} from operators r order by r.id`)
  return rows
}

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

/** The session, passkey or link on which a request of an operator rests. */
export type ReliedOn = {
  table: 'operator_sessions' | 'operator_passkeys' | 'operator_links'
  row: Seal & { id: string; sealed_at: string | null; passkey_id?: string | null }
}

/**
 * Whether an operator, and what the request rests on, are as they were sealed, and were not ended or changed since; and
 * whether `proof`, the digest of what signs in once, is new. The audit log holds what ended them and what signed in: the
 * service's database role can remove no record of it.
 */
export async function isGenuine(
  tx: Transaction,
  macs: RowMacs,
  operator: Operator,
  on?: ReliedOn,
  proof?: string,
): Promise<boolean> {
  const ofOperator = on?.table === 'operator_passkeys' ? null : operator.id
  const subjects = on === undefined ? [] : [on.row.id, on.row.passkey_id ?? null, ofOperator]
  const pairs = [[operator, operator.id] as const, ...subjects.map((subject) => [on!.row, subject] as const)]
  const { rows } = await tx.query<{ id: string }>(
    `
    select s.id
    from unnest($2::text[], $3::text[], $4::timestamptz[]) as s (id, subject_id, sealed_at)
    where exists (
      select 1 from audit_log l
      where l.customer_id = $1 and l.subject_id = s.subject_id
        and (${endedLater('s.sealed_at')} or $5 and l.action = 'operator.link' and l.created_at >= s.sealed_at and s.id <> $6)
        -- A session goes on with another role.
        and (s.id = s.subject_id or l.action <> 'operator.set_role')
    )
    union all
    select 'PROOF' from audit_log l
    where l.customer_id = $1 and l.subject_id = $6 and l.action = 'operator.sign_in' and l.outcome = 'DONE'
      and l.changes #>> '{after,proof}' = $7`,
    [
      operator.customer_id ?? PLATFORM_ID,
      pairs.map(([link]) => link.id),
      pairs.map(([, subject]) => subject),
      pairs.map(([link]) => link.sealed_at),
      on?.table === 'operator_links',
      operator.id,
      proof,
    ],
  )
  const ended = (id: string) => rows.some((row) => row.id === id)
  if (ended('PROOF') || !macs.isCurrent('operators', operator.id, operator, ended(operator.id))) return false
  return on === undefined || macs.isCurrent(on.table, on.row.id, on.row, ended(on.row.id))
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
  const { rows } = await tx.query<{ generation: number }>(
    `
    update operators set role = $2, generation = generation + 1, updated_at = clock_timestamp()
    where id = $1 and role <> $2
    returning generation`,
    [id, role],
  )
  const changes = { before: { role: operator.role }, after: { role, ...rows[0] } }
  await recordOperatorChange(tx, operator, 'operator.set_role', { origin, changes })
  await macs.seal(tx, 'operators', id)
}

/** Disables an operator, and records it: its sessions and links end, and its access tokens are refused within a second. */
export async function disableOperator(
  tx: Transaction,
  operator: Operator,
  origin: AuditRecord['origin'],
): Promise<void> {
  const { id } = operator
  const { rows } = await tx.query<{ generation: number }>(
    `
    update operators
    set disabled_at = clock_timestamp(), generation = generation + 1, updated_at = clock_timestamp()
    where id = $1 and disabled_at is null
    returning generation`,
    [id],
  )
  await tx.query(
    'update operator_sessions set ended_at = clock_timestamp() where operator_id = $1 and ended_at is null',
    [id],
  )
  await tx.query('delete from operator_links where operator_id = $1 and used_at is null', [id])
  // Access tokens of earlier generations are refused by this record (client-standing.ts).
  const changes = { after: { ...rows[0] } }
  await recordOperatorChange(tx, operator, 'operator.disable', { origin, changes })
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

type Link = ReliedOn['row'] & { operator_id: string }

/** Returns whose link this is, with its row; undefined for one that is unknown, or that was changed or invented in the database. */
export async function findLink(tx: Transaction, macs: RowMacs, secret: string): Promise<Link | undefined> {
  const { rows } = await tx.query<Link>(
    `select encode(r.hash, 'hex') as id, r.operator_id, r.sealed_at, ${sealOf('operator_links')} from operator_links r where r.hash = $1`,
    [hashOfSecret(secret)],
  )
  return rows.find((row) => macs.isGenuine('operator_links', `of ${row.operator_id}`, row))
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
