import { createHash, randomBytes } from 'node:crypto'
import {
  inTransaction,
  transaction,
  type Database,
  type Queryable,
  type Transaction,
} from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import type { ClientScope } from '../../contract/scopes.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'
import { sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'

/** The credentials of an API client. The secret is shown once; only its hash is stored. */
export interface ClientCredentials {
  client_id: string
  client_secret: string
}

// The secret has 256 random bits, so a fast hash is safe. Slow hashes protect guessable passwords.
export const secretHashOf = (secret: string) => createHash('sha256').update(secret).digest()

const newSecret = () => randomBytes(32).toString('base64url')

/** Creates an API client of a customer. `credentials` are those of an earlier client; by default they are new. */
export async function createApiClient(
  db: Database | Transaction,
  macs: RowMacs,
  customerId: string,
  scopes: readonly ClientScope[],
  { name, credentials }: { name?: string | undefined; credentials?: ClientCredentials | undefined } = {},
): Promise<ClientCredentials> {
  return inTransaction(db, async (tx) => {
    const now = await readClock(tx)
    const { client_id, client_secret } = credentials ?? { client_id: newId(now), client_secret: newSecret() }
    await tx.query(
      `
      insert into api_clients (customer_id, id, created_at, updated_at, secret_hash, scopes, name)
      values ($1, $2, $3, $3, $4, $5, $6)`,
      [customerId, client_id, now.text, secretHashOf(client_secret), [...scopes], name],
    )
    await macs.seal(tx, 'api_clients', customerId, client_id)
    return { client_id, client_secret }
  })
}

/** Creates a client as `createApiClient` does, and records who created it. */
export async function registerApiClient(
  tx: Transaction,
  macs: RowMacs,
  customerId: string,
  values: { name?: string; scopes: readonly ClientScope[] },
  origin: Origin,
): Promise<ClientCredentials> {
  const created = await createApiClient(tx, macs, customerId, values.scopes, { name: values.name })
  const record = audited(origin, 'api_client.create', created.client_id, { after: values })
  await recordNow(tx, customerId, record)
  return created
}

export interface ApiClientSummary {
  client_id: string
  /** For people; null where it has none. */
  name: string | null
  customer_id: string
  created_at: string
  /** When it last took an access token, to the minute. */
  last_used_at: string | null
  disabled_at: string | null
  scopes: string[]
}

/** Lists all clients, or the clients of one customer, oldest first. For operators. */
export async function listApiClients(db: Queryable, customerId?: string): Promise<ApiClientSummary[]> {
  const { rows } = await db.query<ApiClientSummary>(
    `
    select id as client_id, name, customer_id, created_at, last_used_at, disabled_at, scopes
    from api_clients
    where $1::uuid is null or customer_id = $1
    order by id`,
    [customerId],
  )
  return rows
}

/** Gives a client another name. False when there is no such client. */
export async function renameApiClient(
  tx: Transaction,
  customerId: string,
  clientId: string,
  name: string,
  origin: Origin,
): Promise<boolean> {
  const { rowCount } = await tx.query('update api_clients set name = $3 where customer_id = $1 and id = $2', [
    customerId,
    clientId,
    name,
  ])
  if (rowCount === 0) return false
  await recordNow(tx, customerId, audited(origin, 'api_client.rename', clientId, { after: { name } }))
  return true
}

/** Disables a client: its access tokens are refused within a second. False when there is no such client. */
export async function disableApiClient(db: Database, clientId: string, origin: Origin): Promise<boolean> {
  return transaction(db, async (tx) => (await setDisabled(tx, clientId, true, origin)) !== undefined)
}

/**
 * Enables a disabled client. Its unexpired tokens are accepted again. False when there is no such client. Throws an Error
 * for a client whose row was changed in the database meanwhile.
 */
export async function enableApiClient(
  tx: Transaction,
  macs: RowMacs,
  clientId: string,
  origin: Origin,
): Promise<boolean> {
  const client = await setDisabled(tx, clientId, false, origin)
  if (client === undefined) return false
  if (!client.changed) return true
  macs.requireGenuine('api_clients', clientId, client)
  await macs.seal(tx, 'api_clients', client.customer_id, clientId)
  return true
}

/** Disables or enables a client, unless it is so already. Undefined when there is no such client. */
async function setDisabled(
  tx: Transaction,
  clientId: string,
  disabled: boolean,
  origin: Origin,
): Promise<(Seal & { customer_id: string; changed: boolean }) | undefined> {
  // A distributed database locks rows only where the statement names their customer.
  const { rows: found } = await tx.query<{ customer_id: string }>(
    'select customer_id from api_clients where id = $1',
    [clientId],
  )
  if (found[0] === undefined) return undefined
  const { customer_id } = found[0]
  const { rows } = await tx.query<Seal & { disabled_at: string | null }>(
    `select r.disabled_at, ${sealOf('api_clients')} from api_clients r where r.customer_id = $1 and r.id = $2 for update`,
    [customer_id, clientId],
  )
  const client = rows[0]!
  const about = { ...client, customer_id }
  if ((client.disabled_at !== null) === disabled) return { ...about, changed: false }
  const now = await readClock(tx)
  await tx.query(
    'update api_clients set disabled_at = $3, updated_at = $4 where customer_id = $1 and id = $2',
    [customer_id, clientId, disabled ? now.text : null, now.text],
  )
  const action = disabled ? 'api_client.disable' : 'api_client.enable'
  recordChanges(tx, customer_id, now, [audited(origin, action, clientId)])
  return { ...about, changed: true }
}

/** A new secret, and the time at which the previous secret expires. */
export interface RotatedSecret extends ClientCredentials {
  customer_id: string
  previous_secret_expires_at: string
  updated_at: string
}

/**
 * Gives a client a new secret, and records the rotation. The previous secret is accepted for `graceSeconds`, older ones no
 * longer. Undefined for an unknown or disabled client. Throws an Error if the client's row was changed in the database.
 */
export async function rotateSecret(
  db: Transaction,
  macs: RowMacs,
  clientId: string,
  graceSeconds: number,
  origin: Origin,
): Promise<RotatedSecret | undefined> {
  const client_secret = newSecret()
  const { rows: found } = await db.query<Seal>(
    `select ${sealOf('api_clients')} from api_clients r where r.id = $1 and r.disabled_at is null`,
    [clientId],
  )
  if (found[0] === undefined) return undefined
  macs.requireGenuine('api_clients', clientId, found[0])
  const { rows } = await db.query<Omit<RotatedSecret, keyof ClientCredentials>>(
    `
    update api_clients
    set previous_secret_hash = secret_hash, secret_hash = $2, updated_at = now, previous_secret_expires_at = expires_at
    from (select now, now + make_interval(secs => $3) as expires_at from clock_timestamp() now) clock
    where id = $1 and disabled_at is null
    returning customer_id, previous_secret_expires_at, updated_at`,
    [clientId, secretHashOf(client_secret), graceSeconds],
  )
  if (rows[0] === undefined) return undefined
  const { customer_id, previous_secret_expires_at } = rows[0]
  const record = audited(origin, 'api_client.rotate', clientId, { after: { previous_secret_expires_at } })
  await recordNow(db, customer_id, record)
  await macs.seal(db, 'api_clients', customer_id, clientId)
  return { client_id: clientId, client_secret, ...rows[0] }
}
