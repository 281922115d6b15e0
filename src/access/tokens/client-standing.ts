import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database, Queryable } from '../../db/database.ts'
import { RefreshedParts, type Whose } from '../../db/refreshed-parts.ts'
import { invalidToken, type CallerStanding } from '../../http/authenticate.ts'
import type { Caller } from '../../http/operation.ts'
import { problem } from '../../contract/problems.ts'
import { SEALED_END } from '../../audit/freeze-ends.ts'
import { sealOf, type RowMacs } from '../../audit/sealed-rows.ts'
import { CHANGED, ENDED } from './operator-tokens.ts'

/** How often each process reads the list of disabled clients, operators and customers. */
const REFRESH_MS = 1_000
/** Age of the list beyond which a process refuses withdrawals: the client of a stolen token may have been disabled. */
export const STALE_MS_MAX = 5_000
/** How long a request waits for a list that is too old. */
const CATCH_UP_MS_MAX = 1_000

interface Lists {
  clients: ReadonlySet<string>
  customers: ReadonlySet<string>
  sessions: ReadonlySet<string>
  /** The generations of the operators that changed lately: tokens of earlier ones are refused. */
  operators: ReadonlyMap<string, number>
}
const NONE: Lists = { clients: new Set(), customers: new Set(), sessions: new Set(), operators: new Map() }

/**
 * This process's list of disabled API clients and customers, changed operators and ended sessions. An access token is valid
 * for up to a day even if its client is disabled, so every request is checked against this list. The check needs no query.
 * Each part of the database has its own list: a part that cannot be read delays no other, and stops the withdrawals of its
 * own customers only.
 */
export class ClientStanding implements CallerStanding {
  readonly #lists: RefreshedParts<Lists>

  private constructor(lists: RefreshedParts<Lists>) {
    this.#lists = lists
  }

  /** Reads the list, and again every second until `stop`. Throws where it cannot be read, as `RefreshedParts` does. */
  static async start(db: Database, macs: RowMacs, log: Logger): Promise<ClientStanding> {
    const lists = new RefreshedParts<Lists>(
      db,
      NONE,
      (from, whose) => readLists(from, macs, DISABLED[whose]),
      (err) => log.warn({ err }, 'the list of disabled clients cannot be read; trying again'),
    )
    await lists.start(REFRESH_MS)
    return new ClientStanding(lists)
  }

  requireEnabled({ clientId, customerId, session }: Caller): void {
    // While customers move from a part to another, they are on the list of either, so every list is checked.
    for (const { value } of this.#lists.all) {
      const { clients, customers, sessions, operators } = value
      if (session === undefined) {
        if (clients.has(clientId)) throw invalidToken('the API client of the access token is disabled')
      } else {
        if (sessions.has(session.id)) throw invalidToken(ENDED)
        if (session.generation < (operators.get(clientId) ?? 0)) throw invalidToken(CHANGED)
      }
      if (customers.has(customerId)) throw invalidToken('the customer of the access token is disabled')
    }
  }

  requireKnown(caller: Caller): Promise<void> | undefined {
    return this.#isNewFor(caller) ? undefined : this.#catchUp(caller)
  }

  #isNewFor({ customerId }: Caller): boolean {
    const now = performance.now()
    return this.#lists.of(customerId).every(({ readAt }) => now - readAt <= STALE_MS_MAX)
  }

  /** Reads the list for a request that finds it too old, such as the first request after this process was suspended. */
  async #catchUp(caller: Caller): Promise<void> {
    const lists = this.#lists.of(caller.customerId)
    const tooLong = pause(CATCH_UP_MS_MAX, undefined, { ref: false })
    // A reading under way may have begun before the process was suspended, so a second one may follow.
    for (let attempt = 0; attempt < 2 && !this.#isNewFor(caller); attempt++) {
      const readings = lists.map((list) => list.again())
      if (lists.some(({ isFailing }) => isFailing)) break
      await Promise.race([Promise.all(readings), tooLong])
    }
    if (!this.#isNewFor(caller))
      throw problem.unavailable(
        `the list of disabled clients could not be read for ${STALE_MS_MAX / 1000} seconds; nothing was moved; try again`,
      )
    this.requireEnabled(caller)
  }

  async stop(): Promise<void> {
    await this.#lists.stop()
  }
}

/** A row of the list. Where it has a seal, what had ended began again: its MAC shows that Bursar began it. */
type Row = { kind: keyof Lists; id: string; generation: number; sealed: string | null; mac: string | null }

async function readLists(db: Queryable, macs: RowMacs, sql: string): Promise<Lists> {
  const { rows } = await db.query<Row>(sql)
  const lists = { clients: new Set<string>(), customers: new Set<string>(), sessions: new Set<string>() }
  const operators = new Map<string, number>()
  for (const { kind, id, generation, sealed, mac } of rows) {
    const table = kind === 'customers' ? 'customer_freezes' : 'api_clients'
    if (sealed !== null && macs.objectionTo(table, { sealed, mac }) === undefined) continue
    if (kind === 'operators') operators.set(id, Math.max(operators.get(id) ?? 0, generation))
    else lists[kind].add(id)
  }
  return { ...lists, operators }
}

/** The list forgets older ends: no token lasts longer than a day (BURSAR_TOKEN_TTL_SECONDS), and a disabled client gets none. */
const LATELY = "> (select clock_timestamp() - interval '25 hours')"

// The service's role can set the columns back, but no record of the audit log. The list of actions is that of the index
// audit_log_ends.
const DISABLED_CALLERS = `
  select 'clients' as kind, id::text, 0 as generation, null as sealed, null as mac from api_clients where disabled_at ${LATELY}
  union all
  select 'clients', id::text, 0, case when sealed_at > ended_at then sealed end, mac
  from (
    select l.created_at as ended_at, r.id, r.sealed_at, ${sealOf('api_clients')}
    from audit_log l
    join api_clients r on r.customer_id = l.customer_id and r.id::text = l.subject_id
    where l.action in ('api_client.disable', 'api_client.delete') and l.created_at ${LATELY}) ended
  union all
  select 'customers', r.customer_id::text, 0, case when r.lifted_at is not null then ${SEALED_END} end, r.mac
  from customer_freezes r where r.subject = r.customer_id and r.reason = 'DISABLED'
  union all
  select case action when 'session.revoke' then 'sessions' else 'operators' end, subject_id,
         coalesce((changes #>> '{after,generation}')::integer, 0), null, null
  from audit_log where action in ('operator.disable', 'operator.set_role', 'session.revoke') and created_at ${LATELY}`

const DISABLED_OPERATORS = `
  select 'sessions' as kind, id::text, 0 as generation, null as sealed, null as mac
  from operator_sessions where ended_at ${LATELY}
  union all
  select 'operators', id::text, generation, null, null from operators where updated_at ${LATELY}`

const DISABLED: Record<Whose, string> = {
  CUSTOMERS: DISABLED_CALLERS,
  NOBODY: DISABLED_OPERATORS,
  ALL: `${DISABLED_CALLERS} union all ${DISABLED_OPERATORS}`,
}
