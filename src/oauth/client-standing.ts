import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import { invalidToken, type Standing } from '../http/authenticate.ts'
import type { Caller } from '../http/operation.ts'
import { problem } from '../contract/problems.ts'
import { CHANGED, ENDED } from './operator-tokens.ts'

/** How often each process reads the list of disabled clients, operators and customers. */
const REFRESH_MS = 1_000
/** Age of the list beyond which a process refuses withdrawals: the client of a stolen token may have been disabled. */
export const STALE_MS_MAX = 5_000

/**
 * This process's list of disabled API clients and customers, changed operators and ended sessions. An access token is
 * valid for up to a day even if its client is disabled, so every request is checked against this list. The check needs
 * no query.
 */
export class ClientStanding implements Standing {
  #db: Database
  #log: Logger
  #clients: ReadonlySet<string> = new Set()
  #customers: ReadonlySet<string> = new Set()
  #sessions: ReadonlySet<string> = new Set()
  /** The generations of the operators that changed lately. */
  #operators: ReadonlyMap<string, number> = new Map()
  /** When the current list was requested, by `performance.now()`. */
  #readAt = -Infinity
  #stopping = new AbortController()
  #running: Promise<void> | undefined

  private constructor(db: Database, log: Logger) {
    this.#db = db
    this.#log = log
  }

  /** Reads the list, and again every second until `stop`. */
  static async start(db: Database, log: Logger): Promise<ClientStanding> {
    const standing = new ClientStanding(db, log)
    await standing.#read()
    standing.#running = standing.#follow()
    return standing
  }

  requireEnabled({ clientId, customerId, session }: Caller): void {
    if (session !== undefined) this.#requireSession(clientId, session)
    if (this.#clients.has(clientId)) throw invalidToken('the API client of the access token is disabled')
    if (this.#customers.has(customerId)) throw invalidToken('the customer of the access token is disabled')
  }

  #requireSession(operatorId: string, { id, generation }: NonNullable<Caller['session']>): void {
    if (this.#sessions.has(id)) throw invalidToken(ENDED)
    if ((this.#operators.get(operatorId) ?? generation) !== generation) throw invalidToken(CHANGED)
  }

  requireKnown(): void {
    if (performance.now() - this.#readAt > STALE_MS_MAX)
      throw problem.unavailable(
        `the list of disabled clients could not be read for ${STALE_MS_MAX / 1000} seconds; nothing was moved; try again`,
      )
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping
    let failing = false
    while (!signal.aborted) {
      await pause(REFRESH_MS, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
      try {
        await this.#read()
        failing = false
      } catch (error) {
        if (!failing)
          this.#log.warn({ err: error }, 'the list of disabled clients cannot be read; trying again')
        failing = true
      }
    }
  }

  async #read(): Promise<void> {
    const askedAt = performance.now()
    const { rows } = await this.#db.query<{ kind: Kind; id: string; generation: number }>(DISABLED)
    const idsOf = (wanted: string) => new Set(rows.flatMap(({ kind, id }) => (kind === wanted ? [id] : [])))
    this.#clients = idsOf('CLIENT')
    this.#customers = idsOf('CUSTOMER')
    this.#sessions = idsOf('SESSION')
    this.#operators = new Map(
      rows.flatMap(({ kind, id, generation }) => (kind === 'OPERATOR' ? [[id, generation]] : [])),
    )
    this.#readAt = askedAt
  }
}

type Kind = 'CLIENT' | 'CUSTOMER' | 'SESSION' | 'OPERATOR'

// A disabled client gets no new token, and no token lasts longer than a day (BURSAR_TOKEN_TTL_SECONDS). So clients that
// were disabled more than 25 hours ago need not be on the list.
const DISABLED = `
  select 'CLIENT' as kind, id::text, 0 as generation
  from api_clients where disabled_at > clock_timestamp() - interval '25 hours'
  union all
  select 'SESSION', id::text, 0 from operator_sessions where ended_at > clock_timestamp() - interval '25 hours'
  union all
  select 'OPERATOR', id::text, generation from operators where updated_at > clock_timestamp() - interval '25 hours'
  union all
  select 'CUSTOMER', subject, 0 from freezes where kind = 'CUSTOMER' and reason = 'DISABLED'`
