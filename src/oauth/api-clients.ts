import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Queryable } from '../db/database.ts'
import { newId, readClock } from '../db/ids.ts'
import { uuidsOf } from '../http/lists.ts'
import type { Scope } from '../contract/scopes.ts'

/** The credentials of an API client. The secret is shown once; only its hash is stored. */
export interface ClientCredentials {
  client_id: string
  client_secret: string
}

export interface ApiClient {
  customer_id: string
  id: string
  scopes: string[]
}

// The secret has 256 random bits, so a fast hash is safe. Slow hashes protect guessable passwords.
const hashOf = (secret: string) => createHash('sha256').update(secret).digest()

/** Creates an API client of a customer. */
export async function createApiClient(
  db: Queryable,
  customerId: string,
  scopes: readonly Scope[],
): Promise<ClientCredentials> {
  const now = await readClock(db)
  const client_id = newId(now)
  const client_secret = randomBytes(32).toString('base64url')
  await db.query(
    'insert into api_clients (customer_id, id, created_at, secret_hash, scopes) values ($1, $2, $3, $4, $5)',
    [customerId, client_id, now.text, hashOf(client_secret), [...scopes]],
  )
  return { client_id, client_secret }
}

export interface ApiClientSummary {
  client_id: string
  customer_id: string
  created_at: string
  disabled_at: string | null
  scopes: string[]
}

/** Lists all clients, or the clients of one customer, oldest first. For operators. */
export async function listApiClients(db: Queryable, customerId?: string): Promise<ApiClientSummary[]> {
  const { rows } = await db.query<ApiClientSummary>(
    `
    select id as client_id, customer_id, created_at, disabled_at, scopes
    from api_clients
    where $1::uuid is null or customer_id = $1
    order by id`,
    [customerId],
  )
  return rows
}

/** Disables a client: its access tokens are refused within a second. False when there is no such client. */
export async function disableApiClient(db: Queryable, clientId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'update api_clients set disabled_at = coalesce(disabled_at, clock_timestamp()) where id = $1',
    [clientId],
  )
  return rowCount === 1
}

/** Enables a disabled client. Its unexpired tokens are accepted again. False when there is no such client. */
export async function enableApiClient(db: Queryable, clientId: string): Promise<boolean> {
  const { rowCount } = await db.query('update api_clients set disabled_at = null where id = $1', [clientId])
  return rowCount === 1
}

/** The enabled client of an enabled customer with this id and secret, or undefined. */
export async function findApiClient(
  db: Queryable,
  clientId: string,
  secret: string,
): Promise<ApiClient | undefined> {
  const { rows } = await db.query<ApiClient & { secret_hash: Buffer }>(
    `
    select customer_id, id, scopes, secret_hash
    from api_clients
    where id = any ($1::uuid[]) and disabled_at is null
      and not exists (
        select from freezes where kind = 'CUSTOMER' and subject = customer_id::text and reason = 'DISABLED')`,
    [uuidsOf([clientId])],
  )
  const [client] = rows
  return client !== undefined && timingSafeEqual(client.secret_hash, hashOf(secret)) ? client : undefined
}
