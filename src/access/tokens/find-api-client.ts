import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Database, Queryable } from '../../db/database.ts'
import { findInParts, forCustomer } from '../../db/parts.ts'
import { uuidsOf } from '../../http/lists.ts'
import { isFrozenFor } from '../../money/records/freezes.ts'
import { endedLater, sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'
import { secretHashOf } from './api-clients.ts'

export interface ApiClient {
  customer_id: string
  id: string
  scopes: string[]
}

interface FoundClient extends ApiClient, Seal {
  secret_hash: Buffer
  previous_secret_hash: Buffer | null
  /** Whether the audit log says that the client was disabled or changed after its row was sealed. */
  ended_later: boolean
}

const REMEMBERED_MAX = 10_000
const NOTED_EVERY_MS = 60_000

/**
 * Finds API clients by their id alone. A process looks once in all parts of the database for a client that it does not know,
 * and then only in the part of the client's customer. So a part that is down stops only the clients of its own customers.
 */
export class ApiClients {
  readonly #db: Database
  readonly #macs: RowMacs
  /** A client never changes its customer. */
  readonly #customerOf = new LRUCache<string, string>({ max: REMEMBERED_MAX })
  /** Clients whose use was noted within the minute. */
  readonly #noted = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: NOTED_EVERY_MS })

  constructor(db: Database, macs: RowMacs) {
    this.#db = db
    this.#macs = macs
  }

  /**
   * Returns the enabled client of an enabled customer with this id and secret. Undefined for any other client, and for a row
   * that was changed, invented or put back in the database. If no part has the client, throws the error of a part that does
   * not answer.
   */
  async find(clientId: string, secret: string): Promise<ApiClient | undefined> {
    const client = await this.#read(clientId)
    if (client === undefined) return undefined
    const hash = secretHashOf(secret)
    const hashes = [client.secret_hash, ...(client.previous_secret_hash ? [client.previous_secret_hash] : [])]
    if (!hashes.some((known) => timingSafeEqual(known, hash))) return undefined
    const { ended_later, customer_id, id, scopes } = client
    if (!this.#macs.isCurrent('api_clients', id, client, ended_later)) return undefined
    const target = { kind: 'CUSTOMER', customer_id } as const
    const disabled = await isFrozenFor(forCustomer(this.#db, customer_id), target, 'DISABLED')
    return disabled ? undefined : { customer_id, id, scopes }
  }

  /** Notes that the client took an access token, at most once a minute. */
  async noteUse({ customer_id, id }: ApiClient): Promise<void> {
    if (this.#noted.has(id)) return
    this.#noted.set(id, true)
    await forCustomer(this.#db, customer_id).query(
      `
      update api_clients set last_used_at = (select clock_timestamp())
      where customer_id = $1 and id = $2
        and (last_used_at is null or last_used_at < (select clock_timestamp() - interval '1 minute'))`,
      [customer_id, id],
    )
  }

  async #read(clientId: string): Promise<FoundClient | undefined> {
    const customerId = this.#customerOf.get(clientId)
    if (customerId !== undefined) return select(forCustomer(this.#db, customerId), clientId, customerId)
    const found = await findInParts(this.#db, (part) => select(part, clientId))
    if (found !== undefined) this.#customerOf.set(clientId, found.customer_id)
    return found
  }
}

async function select(
  db: Queryable,
  clientId: string,
  customerId?: string,
): Promise<FoundClient | undefined> {
  // Rule 1 of src/db/distribution.ts.
  const customer = customerId === undefined ? 'r.customer_id' : '$2'
  const { rows } = await db.query<FoundClient>(
    `
    select r.customer_id, r.id, r.scopes, r.secret_hash,
           case when r.previous_secret_expires_at > clock_timestamp() then r.previous_secret_hash end
             as previous_secret_hash, ${sealOf('api_clients')},
           exists (
             select 1 from audit_log l
             where l.customer_id = ${customer} and l.subject_id = r.id::text and ${endedLater('r.sealed_at')}
           ) as ended_later
    from api_clients r
    where r.id = any ($1::uuid[]) and r.disabled_at is null ${customerId === undefined ? '' : 'and r.customer_id = $2'}`,
    [uuidsOf([clientId]), ...(customerId === undefined ? [] : [customerId])],
  )
  return rows[0]
}
