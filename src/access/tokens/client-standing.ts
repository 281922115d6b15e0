import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Node, Nodes } from '../../db/nodes.ts'
import { invalidToken, type Standing } from '../../http/authenticate.ts'
import type { Caller } from '../../http/operation.ts'
import { problem } from '../../contract/problems.ts'
import { CHANGED, ENDED } from './operator-tokens.ts'

/** How often each process reads the list of disabled clients, operators and customers. */
const REFRESH_MS = 1_000
/** Age of the list beyond which a process refuses withdrawals: the client of a stolen token may have been disabled. */
export const STALE_MS_MAX = 5_000
/** How long a request waits for a list that is too old. */
const CATCH_UP_MS_MAX = 1_000

/** A part of the list, from one place. */
interface Part<Row> {
  rows: readonly Row[]
  /** When it was requested, by `performance.now()`. */
  readAt: number
  reading: Promise<void> | undefined
  isFailing: boolean
}

const newPart = <Row>(): Part<Row> => ({ rows: [], readAt: -Infinity, reading: undefined, isFailing: false })

interface DisabledCaller {
  kind: 'CLIENT' | 'CUSTOMER'
  id: string
}
interface Disabled {
  kind: 'SESSION' | 'OPERATOR'
  id: string
  generation: number
}

const idsOf = <Kind extends string>(
  rows: readonly { kind: Kind; id: string }[],
  wanted: Kind,
): ReadonlySet<string> => new Set(rows.flatMap(({ kind, id }) => (kind === wanted ? [id] : [])))

/**
 * This process's list of disabled API clients and customers, changed operators and ended sessions. An access token is
 * valid for up to a day even if its client is disabled, so every request is checked against this list. The check needs
 * no query. On a cluster each node has the part of its customers: a part that cannot be read delays no other, and stops
 * the withdrawals of its own customers only.
 */
export class ClientStanding implements Standing {
  #nodes: Nodes
  #log: Logger
  #ofCallers = new Map<string, Part<DisabledCaller>>()
  #ofOthers = newPart<Disabled>()
  #clients: ReadonlySet<string> = new Set()
  #customers: ReadonlySet<string> = new Set()
  #sessions: ReadonlySet<string> = new Set()
  /** The generations of the operators that changed lately. */
  #operators: ReadonlyMap<string, number> = new Map()
  #stopping = new AbortController()
  #running: Promise<void> | undefined

  private constructor(nodes: Nodes, log: Logger) {
    this.#nodes = nodes
    this.#log = log
  }

  /** Reads the list, and again every second until `stop`. Throws where no part can be read. */
  static async start(nodes: Nodes, log: Logger): Promise<ClientStanding> {
    const standing = new ClientStanding(nodes, log)
    await standing.#readOthers()
    // A node that is gone must not stop the start of a process that serves the customers of the others.
    const [first, ...rest] = nodes.list().map((node) => standing.#readCallers(node))
    if (rest.length === 0) await first
    else await Promise.allSettled([first, ...rest])
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

  requireKnown(caller: Caller): Promise<void> | undefined {
    return this.#isNewFor(caller) ? undefined : this.#catchUp(caller)
  }

  #isNewFor({ customerId }: Caller): boolean {
    const readAt = this.#ofCallers.get(this.#nodes.nameOf(customerId))?.readAt ?? -Infinity
    return performance.now() - Math.min(readAt, this.#ofOthers.readAt) <= STALE_MS_MAX
  }

  /** Reads the list for a request that finds it too old, as the first one does after this process stood still. */
  async #catchUp(caller: Caller): Promise<void> {
    const name = this.#nodes.nameOf(caller.customerId)
    const node = this.#nodes.list().find((one) => one.name === name)
    const tooLong = pause(CATCH_UP_MS_MAX, undefined, { ref: false })
    // What is under way may have begun before the process stood still.
    for (let attempt = 0; attempt < 2 && !this.#isNewFor(caller); attempt++) {
      const parts: Part<unknown>[] = [this.#ofOthers]
      this.#again(this.#ofOthers, () => this.#readOthers())
      if (node !== undefined) {
        parts.push(this.#partOf(node))
        this.#again(this.#partOf(node), () => this.#readCallers(node))
      }
      if (parts.some(({ isFailing }) => isFailing)) break
      await Promise.race([Promise.all(parts.flatMap(({ reading }) => reading ?? [])), tooLong])
    }
    if (!this.#isNewFor(caller))
      throw problem.unavailable(
        `the list of disabled clients could not be read for ${STALE_MS_MAX / 1000} seconds; nothing was moved; try again`,
      )
    this.requireEnabled(caller)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    for (const { reading } of [this.#ofOthers, ...this.#ofCallers.values()]) await reading
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await pause(REFRESH_MS, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
      // Not awaited: a node that hangs delays no other.
      this.#again(this.#ofOthers, () => this.#readOthers())
      const nodes = this.#nodes.list()
      for (const name of this.#ofCallers.keys())
        if (!nodes.some((node) => node.name === name)) this.#ofCallers.delete(name)
      for (const node of nodes) this.#again(this.#partOf(node), () => this.#readCallers(node))
    }
  }

  /** Reads a part again, unless that is under way. */
  #again(part: Part<unknown>, read: () => Promise<void>): void {
    part.reading ??= read()
      .then(() => void (part.isFailing = false))
      .catch((error: unknown) => {
        if (!part.isFailing)
          this.#log.warn({ err: error }, 'the list of disabled clients cannot be read; trying again')
        part.isFailing = true
      })
      .finally(() => (part.reading = undefined))
  }

  #partOf({ name }: Node): Part<DisabledCaller> {
    const known = this.#ofCallers.get(name)
    if (known !== undefined) return known
    const part = newPart<DisabledCaller>()
    this.#ofCallers.set(name, part)
    return part
  }

  async #readCallers(node: Node): Promise<void> {
    const readAt = performance.now()
    const { rows } = await node.hints.query<DisabledCaller>(DISABLED_CALLERS)
    Object.assign(this.#partOf(node), { rows, readAt })
    const disabled = [...this.#ofCallers.values()].flatMap(({ rows }) => rows)
    this.#clients = idsOf(disabled, 'CLIENT')
    this.#customers = idsOf(disabled, 'CUSTOMER')
  }

  async #readOthers(): Promise<void> {
    const readAt = performance.now()
    const { rows } = await this.#nodes.shared.query<Disabled>(DISABLED)
    Object.assign(this.#ofOthers, { rows, readAt })
    this.#sessions = idsOf(rows, 'SESSION')
    this.#operators = new Map(
      rows.flatMap(({ kind, id, generation }) => (kind === 'OPERATOR' ? [[id, generation] as const] : [])),
    )
  }
}

// A disabled client gets no new token, and no token lasts longer than a day (BURSAR_TOKEN_TTL_SECONDS). So clients that
// were disabled more than 25 hours ago need not be on the list.
const DISABLED_CALLERS = `
  select 'CLIENT' as kind, id::text from api_clients where disabled_at > clock_timestamp() - interval '25 hours'
  union all
  select 'CUSTOMER', customer_id::text from customer_freezes where subject = customer_id and reason = 'DISABLED'
    and lifted_at is null`

const DISABLED = `
  select 'SESSION' as kind, id::text, 0 as generation
  from operator_sessions where ended_at > clock_timestamp() - interval '25 hours'
  union all
  select 'OPERATOR', id::text, generation from operators where updated_at > clock_timestamp() - interval '25 hours'`
