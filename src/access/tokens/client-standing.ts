import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Queryable } from '../../db/database.ts'
import type { Nodes } from '../../db/nodes.ts'
import { RefreshedOfNodes } from '../../db/refreshed-of-nodes.ts'
import { Refreshed } from '../../db/refreshed.ts'
import { invalidToken, type CallerStanding } from '../../http/authenticate.ts'
import type { Caller } from '../../http/operation.ts'
import { problem } from '../../contract/problems.ts'
import { CHANGED, ENDED } from './operator-tokens.ts'

/** How often each process reads the list of disabled clients, operators and customers. */
const REFRESH_MS = 1_000
/** Age of the list beyond which a process refuses withdrawals: the client of a stolen token may have been disabled. */
export const STALE_MS_MAX = 5_000
/** How long a request waits for a list that is too old. */
const CATCH_UP_MS_MAX = 1_000

/** One part of the list. */
interface Lists {
  clients: ReadonlySet<string>
  customers: ReadonlySet<string>
  /** The ended sessions. */
  sessions: ReadonlySet<string>
  /** The generations of the operators that changed lately. */
  operators: ReadonlyMap<string, number>
}
const NONE: Lists = { clients: new Set(), customers: new Set(), sessions: new Set(), operators: new Map() }

const idsOf = (rows: readonly { kind: string; id: string }[], wanted: string): ReadonlySet<string> =>
  new Set(rows.flatMap(({ kind, id }) => (kind === wanted ? [id] : [])))

/**
 * This process's list of disabled API clients and customers, changed operators and ended sessions. An access token is
 * valid for up to a day even if its client is disabled, so every request is checked against this list. The check needs
 * no query. On a cluster each node has the part of its customers: a part that cannot be read delays no other, and stops
 * the withdrawals of its own customers only.
 */
export class ClientStanding implements CallerStanding {
  /** On a plain database, the whole list. */
  readonly #ofNodes: RefreshedOfNodes<Lists>
  /** Operators and their sessions, which belong to no node of a cluster. */
  readonly #others: Refreshed<Lists> | undefined

  private constructor(nodes: Nodes, log: Logger) {
    const onFailure = (error: unknown) =>
      log.warn({ err: error }, 'the list of disabled clients cannot be read; trying again')
    const isPlain = nodes.list().every(({ hints }) => hints === nodes.shared)
    const ofNode = isPlain ? `${DISABLED_CALLERS} union all ${DISABLED_OPERATORS}` : DISABLED_CALLERS
    this.#ofNodes = new RefreshedOfNodes(nodes, NONE, ({ hints }) => readLists(hints, ofNode), onFailure)
    if (!isPlain)
      this.#others = new Refreshed(NONE, () => readLists(nodes.shared, DISABLED_OPERATORS), onFailure)
  }

  /**
   * Reads the list, and again every second until `stop`. Throws where the only node, or on a cluster the list of operators
   * and sessions, cannot be read. Of several nodes, one that cannot be read does not throw here.
   */
  static async start(nodes: Nodes, log: Logger): Promise<ClientStanding> {
    const standing = new ClientStanding(nodes, log)
    await standing.#others?.read()
    // A node that is down must not stop the start of a process that serves the customers of other nodes.
    const [first, ...rest] = [...standing.#ofNodes.parts.values()].map((part) => part.read())
    if (rest.length === 0) await first
    else await Promise.allSettled([first, ...rest])
    standing.#others?.follow(REFRESH_MS)
    standing.#ofNodes.follow(REFRESH_MS)
    return standing
  }

  requireEnabled({ clientId, customerId, session }: Caller): void {
    if (session !== undefined) this.#requireSession(clientId, customerId, session)
    // While a shard moves, its customers are on the list of either node, so every part is checked.
    for (const { value } of this.#ofNodes.parts.values()) {
      const { clients, customers } = value
      if (clients.has(clientId)) throw invalidToken('the API client of the access token is disabled')
      if (customers.has(customerId)) throw invalidToken('the customer of the access token is disabled')
    }
  }

  #requireSession(
    operatorId: string,
    customerId: string,
    { id, generation }: NonNullable<Caller['session']>,
  ): void {
    const { sessions, operators } = (this.#others ?? this.#ofNodes.of(customerId)).value
    if (sessions.has(id)) throw invalidToken(ENDED)
    if ((operators.get(operatorId) ?? generation) !== generation) throw invalidToken(CHANGED)
  }

  requireKnown(caller: Caller): Promise<void> | undefined {
    return this.#isNewFor(caller) ? undefined : this.#catchUp(caller)
  }

  #isNewFor({ customerId }: Caller): boolean {
    const readAt = Math.min(this.#ofNodes.of(customerId).readAt, this.#others?.readAt ?? Infinity)
    return performance.now() - readAt <= STALE_MS_MAX
  }

  /** Reads the list for a request that finds it too old, such as the first request after this process was suspended. */
  async #catchUp(caller: Caller): Promise<void> {
    const parts = [this.#ofNodes.of(caller.customerId), ...(this.#others ? [this.#others] : [])]
    const tooLong = pause(CATCH_UP_MS_MAX, undefined, { ref: false })
    // A reading under way may have begun before the process was suspended, so a second one may follow.
    for (let attempt = 0; attempt < 2 && !this.#isNewFor(caller); attempt++) {
      const readings = parts.map((part) => part.again())
      if (parts.some(({ isFailing }) => isFailing)) break
      await Promise.race([Promise.all(readings), tooLong])
    }
    if (!this.#isNewFor(caller))
      throw problem.unavailable(
        `the list of disabled clients could not be read for ${STALE_MS_MAX / 1000} seconds; nothing was moved; try again`,
      )
    this.requireEnabled(caller)
  }

  async stop(): Promise<void> {
    await this.#others?.stop()
    await this.#ofNodes.stop()
  }
}

async function readLists(db: Queryable, sql: string): Promise<Lists> {
  const { rows } = await db.query<{ kind: string; id: string; generation: number }>(sql)
  const operators = rows.filter(({ kind }) => kind === 'OPERATOR')
  return {
    clients: idsOf(rows, 'CLIENT'),
    customers: idsOf(rows, 'CUSTOMER'),
    sessions: idsOf(rows, 'SESSION'),
    operators: new Map(operators.map(({ id, generation }) => [id, generation])),
  }
}

// A disabled client gets no new token, and no token lasts longer than a day (BURSAR_TOKEN_TTL_SECONDS). So clients that
// were disabled more than 25 hours ago need not be on the list.
const DISABLED_CALLERS = `
  select 'CLIENT' as kind, id::text, 0 as generation from api_clients where disabled_at > clock_timestamp() - interval '25 hours'
  union all
  select 'CUSTOMER', customer_id::text, 0 from customer_freezes where subject = customer_id and reason = 'DISABLED'
    and lifted_at is null`

const DISABLED_OPERATORS = `
  select 'SESSION' as kind, id::text, 0 as generation
  from operator_sessions where ended_at > clock_timestamp() - interval '25 hours'
  union all
  select 'OPERATOR', id::text, generation from operators where updated_at > clock_timestamp() - interval '25 hours'`
