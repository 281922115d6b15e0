import type { AuditAction } from '../contract/audit-actions.ts'
import type { Role } from '../contract/roles.ts'
import {
  inTransaction,
  violatedConstraint,
  type Database,
  type Queryable,
  type Transaction,
} from '../db/database.ts'
import { newId, PLATFORM_ID, readClock } from '../db/ids.ts'
import { recordChanges, type AuditRecord } from '../ledger/audit.ts'
import { hashOfSecret, newSecret } from './secrets.ts'

/**
 * Operators: the people who sign in to Bursar (docs/reference/operators.md). A transaction locks the operator before its
 * links, passkeys and sessions.
 */

/** An operator as its row stores it. */
export interface Operator {
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
}

const COLUMNS =
  'id, name, role, customer_id, openid_issuer, openid_subject, created_at, updated_at, disabled_at, generation'

/** An account at an OpenID provider. */
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
  { name, role, customerId, openId }: NewOperator,
): Promise<Operator> {
  return inTransaction(db, async (tx) => {
    const now = await readClock(tx)
    const { rows } = await tx
      .query<Operator>(
        `
        insert into operators (id, created_at, updated_at, name, role, customer_id, openid_issuer, openid_subject, generation)
        values ($1, $2, $2, $3, $4, $5, $6, $7, 0)
        returning ${COLUMNS}`,
        [newId(now), now.text, name, role, customerId, openId?.issuer, openId?.subject],
      )
      .catch((error: unknown) => {
        if (violatedConstraint(error) === 'operators_openid')
          throw new Error(`another operator has the OpenID subject ${openId!.subject}: bursar operator list`)
        throw error
      })
    return rows[0]!
  })
}

/** Lists all operators, oldest first. */
export async function listOperators(db: Queryable): Promise<Operator[]> {
  const { rows } = await db.query<Operator>(`select ${COLUMNS} from operators order by id`)
  return rows
}

/** Most operators of a customer that are listed. */
const LISTED_MAX = 500

/** Lists the operators who belong to a customer, oldest first. */
export async function listOperatorsOf(db: Queryable, customerId: string): Promise<Operator[]> {
  const { rows } = await db.query<Operator>(
    `select ${COLUMNS} from operators where customer_id = $1 order by id limit $2`,
    [customerId, LISTED_MAX],
  )
  return rows
}

/** The operator with this id, locked against other changes; undefined when there is none. */
export async function lockOperator(tx: Transaction, id: string): Promise<Operator | undefined> {
  const { rows } = await tx.query<Operator>(`select ${COLUMNS} from operators where id = $1 for update`, [id])
  return rows[0]
}

/** The operator with this OpenID account, locked against other changes; undefined when there is none. */
export async function lockOperatorOf(
  tx: Transaction,
  { issuer, subject }: OpenIdAccount,
): Promise<Operator | undefined> {
  const { rows } = await tx.query<Operator>(
    `select ${COLUMNS} from operators where openid_issuer = $1 and openid_subject = $2 for update`,
    [issuer, subject],
  )
  return rows[0]
}

/** Gives an operator another role. Its access tokens are refused within a second; its sessions get new ones. */
export async function setRole(tx: Transaction, id: string, role: Role): Promise<void> {
  await tx.query(
    `
    update operators set role = $2, generation = generation + 1, updated_at = clock_timestamp()
    where id = $1 and role <> $2`,
    [id, role],
  )
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

/** Enables a disabled operator. It has to sign in again. */
export async function enableOperator(tx: Transaction, id: string): Promise<void> {
  await tx.query(
    'update operators set disabled_at = null, updated_at = clock_timestamp() where id = $1 and disabled_at is not null',
    [id],
  )
}

/** Records a change of an operator, or of its links, passkeys or sessions, in the audit log of its customer. */
export async function record(
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
  return { secret, expires_at: rows[0]!.expires_at }
}

/** Returns whose link this is; undefined for a link that does not exist. */
export async function operatorOfLink(tx: Transaction, secret: string): Promise<string | undefined> {
  const { rows } = await tx.query<{ operator_id: string }>(
    'select operator_id from operator_links where hash = $1',
    [hashOfSecret(secret)],
  )
  return rows[0]?.operator_id
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
