import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { inOrder, type Queryable } from '../../db/database.ts'
import { ownCustomers, type Node, type Nodes } from '../../db/nodes.ts'
import { uuidsOf } from '../../http/lists.ts'
import { isFrozenFor } from '../../money/records/freezes.ts'
import { endedLater, sealOf, type RowMacs, type Seal } from '../../audit/row-macs.ts'
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
 * Finds API clients by their id alone. On a cluster, a process asks each node once for a client that it does not know, and
 * then only the node of the client's customer. So a node that is down stops only the clients of its own customers.
 */
export class ApiClients {
  readonly #nodes: Nodes
  readonly #macs: RowMacs
  /** A client never changes its customer. */
  readonly #customerOf = new LRUCache<string, string>({ max: REMEMBERED_MAX })
  /** Clients whose use was noted within the minute. */
  readonly #noted = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: NOTED_EVERY_MS })

  constructor(nodes: Nodes, macs: RowMacs) {
    this.#nodes = nodes
    this.#macs = macs
  }

  /**
   * Returns the enabled client of an enabled customer with this id and secret. Undefined for any other client, and for a row
   * that was changed, invented or put back in the database. If no node has the client, throws the error of a node that does
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
    const disabled = await isFrozenFor(this.#nodes.of(customer_id), target, 'DISABLED')
    return disabled ? undefined : { customer_id, id, scopes }
  }

  /** Notes that the client took an access token, at most once a minute. */
  async noteUse({ customer_id, id }: ApiClient): Promise<void> {
    if (this.#noted.has(id)) return
    this.#noted.set(id, true)
    await this.#nodes.of(customer_id).query(
      `
      update api_clients set last_used_at = (select clock_timestamp())
      where customer_id = $1 and id = $2
        and (last_used_at is null or last_used_at < (select clock_timestamp() - interval '1 minute'))`,
      [customer_id, id],
    )
  }

  async #read(clientId: string): Promise<FoundClient | undefined> {
    const customerId = this.#customerOf.get(clientId)
    if (customerId !== undefined) return select(this.#nodes.of(customerId), clientId, customerId)
    const nodes = this.#nodes.list()
    let found = await firstOf(nodes, ({ db }) => select(ownCustomers(db), clientId))
    if (found === undefined) {
      // The client may be on a shard that this process does not know yet.
      await this.#nodes.refresh()
      const now = this.#nodes.list()
      if (now !== nodes) found = await firstOf(now, ({ db }) => select(ownCustomers(db), clientId))
    }
    if (found !== undefined) this.#customerOf.set(clientId, found.customer_id)
    return found
  }
}

/** Asks all nodes at once, and returns the first record found. If none has it, throws the error of a node that failed. */
async function firstOf<T>(
  nodes: readonly Node[],
  ask: (node: Node) => Promise<T | undefined>,
): Promise<T | undefined> {
  const asked = nodes.map(ask)
  const found = asked.map(async (asking) => (await asking) ?? Promise.reject(new Error('not here')))
  return Promise.any(found).catch(async () => (await inOrder(asked))[0])
}

async function select(
  db: Queryable,
  clientId: string,
  customerId?: string,
): Promise<FoundClient | undefined> {
  // Citus finds the shard of a subquery of the columns by a constant alone: otherwise it asks all nodes.
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
