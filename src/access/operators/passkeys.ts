import type { Queryable, Transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import type { AuditRecord } from '../../audit/audit.ts'
import { sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'
import { recordOperatorChange, type Operator } from './operators.ts'
import { endSession } from './sessions.ts'

/** Passkeys of operators (Web Authentication), as their rows store them. */

export const PASSKEYS_MAX = 10

export interface Passkey extends Seal {
  sealed_at: string | null
  id: string
  operator_id: string
  name: string
  created_at: string
  used_at: string | null
  credential_id: string
  public_key: Buffer
  signatures: string
  transports: string[]
}

const COLUMNS = `id, operator_id, name, created_at, used_at, credential_id, public_key, signatures::text as signatures, transports, sealed_at,
  ${sealOf('operator_passkeys')}`

/** Lists the passkeys of an operator that are not removed, oldest first. */
export async function listPasskeys(db: Queryable, operatorId: string): Promise<Passkey[]> {
  const { rows } = await db.query<Passkey>(
    `select ${COLUMNS} from operator_passkeys r where operator_id = $1 and removed_at is null order by id`,
    [operatorId],
  )
  return rows
}

/** The passkey with this credential id that is not removed. It may be forged or out of date: `isGenuine` tells. */
export async function findPasskey(tx: Transaction, credentialId: string): Promise<Passkey | undefined> {
  const { rows } = await tx.query<Passkey>(
    `select ${COLUMNS} from operator_passkeys r where credential_id = $1 and removed_at is null`,
    [credentialId],
  )
  return rows[0]
}

export type NewPasskey = Pick<
  Passkey,
  'operator_id' | 'name' | 'credential_id' | 'public_key' | 'transports'
> & { signatures: number }

/** Adds a passkey. Undefined when its credential is known already, even as a removed passkey. */
export async function insertPasskey(
  tx: Transaction,
  macs: RowMacs,
  passkey: NewPasskey,
): Promise<Passkey | undefined> {
  const now = await readClock(tx)
  const { rows } = await tx.query<Passkey>(
    `
    insert into operator_passkeys as r
      (id, operator_id, created_at, name, credential_id, public_key, signatures, transports)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (credential_id) do nothing
    returning ${COLUMNS}`,
    [
      newId(now),
      passkey.operator_id,
      now.text,
      passkey.name,
      passkey.credential_id,
      passkey.public_key,
      passkey.signatures,
      passkey.transports,
    ],
  )
  if (rows[0] !== undefined) await macs.seal(tx, 'operator_passkeys', rows[0].id)
  return rows[0]
}

/** Stores when a passkey signed, and its authenticator's signature counter. */
export async function touchPasskey(tx: Transaction, id: string, signatures: number): Promise<void> {
  await tx.query('update operator_passkeys set used_at = clock_timestamp(), signatures = $2 where id = $1', [
    id,
    signatures,
  ])
}

/**
 * Removes a passkey of an operator, ends the sessions that it opened, and records both. A repeat changes nothing. False when
 * the operator has no such passkey.
 */
export async function removePasskey(
  tx: Transaction,
  operator: Operator,
  id: string,
  origin: AuditRecord['origin'],
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `
    update operator_passkeys set removed_at = coalesce(removed_at, clock_timestamp())
    where operator_id = $1 and id = $2`,
    [operator.id, id],
  )
  if (rowCount !== 1) return false
  await recordOperatorChange(tx, operator, 'passkey.delete', { origin, subject: { type: 'passkey', id } })
  const { rows } = await tx.query<{ id: string }>(
    'select id from operator_sessions where operator_id = $1 and passkey_id = $2 and ended_at is null',
    [operator.id, id],
  )
  for (const session of rows) await endSession(tx, operator, session.id, origin)
  return true
}
