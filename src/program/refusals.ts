import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Problem } from '../contract/problems.ts'
import type { AppOptions } from './app-options.ts'
import type { Actor, Origin } from '../contract/actor.ts'
import type { AuditAction } from '../contract/audit-actions.ts'
import { transaction, type Database } from '../db/database.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import type { AuditRecord } from '../audit/audit.ts'
import { audited, recordNow } from '../audit/audited.ts'

/** A request that was refused for lack of authority, or by policy. */
export interface RefusedRequest {
  customerId: string
  origin: Origin
  action: Extract<AuditAction, 'request.refuse' | 'policy_rule.refuse'>
  /** The operation, or the rule that refuses it. */
  subjectId: string
}

/** How often the refusals are written. */
const WRITE_EVERY_MS = 1_000
/** How long the refusals of an actor are counted together. */
const WINDOW_MS = 60_000
/** Most records of an actor in that time. The others are counted: 20 records a minute are 10 MB a day, and no more. */
export const RECORDED_MAX = 20
/** Most actors whose refusals are counted at the same time. Those of further actors are counted together. */
export const ACTORS_MAX = 1_000

interface Window {
  customerId: string
  actor: Actor
  beganAt: number
  recorded: number
  omitted: number
  pending: AuditRecord[]
}

/**
 * Records refused requests in the audit log, outside the requests (API behaviour, Audit log). A client that repeats a refused
 * request costs a counter: it slows nobody, and the log grows by at most RECORDED_MAX records and one count a minute. A
 * process that dies loses the refusals of its last second.
 */
export class Refusals {
  #db: Database
  #onFailure: (error: unknown) => void
  #windows = new Map<string, Window>()
  /** Refusals of actors that have no window. */
  #others = 0
  #timer: NodeJS.Timeout
  #writing = Promise.resolve()

  constructor(db: Database, onFailure: (error: unknown) => void, everyMs = WRITE_EVERY_MS) {
    this.#db = db
    this.#onFailure = onFailure
    this.#timer = setInterval(() => void this.write(), everyMs).unref()
  }

  /** Notes a refusal. It returns at once, and `write` writes the refusal later. */
  note({ customerId, origin, action, subjectId }: RefusedRequest): void {
    const window = this.#windowOf(customerId, origin.actor)
    if (window === undefined) this.#others += 1
    else if (window.recorded >= RECORDED_MAX) window.omitted += 1
    else {
      window.recorded += 1
      window.pending.push({ ...audited(origin, action, subjectId), outcome: 'REFUSED' })
    }
  }

  /** Stops, and writes what was noted, with the counts of the windows under way. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.write(true)
  }

  /** Writes what was noted, one customer after the other, and the counts of the windows that have ended. */
  write(isLast = false): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeAll(isLast))
    return this.#writing
  }

  #windowOf(customerId: string, actor: Actor): Window | undefined {
    const key = `${customerId} ${actor.type} ${actor.id}`
    const known = this.#windows.get(key)
    if (known !== undefined) return known
    if (this.#windows.size >= ACTORS_MAX) return undefined
    const begun = { customerId, actor, beganAt: performance.now(), recorded: 0, omitted: 0, pending: [] }
    this.#windows.set(key, begun)
    return begun
  }

  async #writeAll(isLast: boolean): Promise<void> {
    const now = performance.now()
    const records = new Map<string, AuditRecord[]>()
    const add = (customerId: string, ...added: AuditRecord[]) =>
      void records.set(customerId, [...(records.get(customerId) ?? []), ...added])
    for (const [key, window] of this.#windows) {
      const { customerId, actor, beganAt, omitted, pending } = window
      if (pending.length > 0) add(customerId, ...pending.splice(0))
      if (!isLast && now - beganAt < WINDOW_MS) continue
      this.#windows.delete(key)
      if (omitted > 0) add(customerId, countOf(actor, customerId, omitted))
    }
    if (this.#others > 0) {
      add(PLATFORM_ID, countOf({ type: 'WORKER', id: 'refusals' }, PLATFORM_ID, this.#others))
      this.#others = 0
    }
    for (const [customerId, own] of records)
      // What cannot be written is reported and dropped: a database that is down must not fill the memory.
      await transaction(this.#db, (tx) => recordNow(tx, customerId, ...own)).catch(this.#onFailure)
  }
}

/** Records refused requests in the audit log until the app closes. */
export function recordRefusals(
  app: FastifyInstance,
  { db, background = db, log, refusalsEveryMs }: AppOptions,
): void {
  const onFailure = (err: unknown) => log.error({ err }, 'refused requests could not be recorded')
  const refusals = new Refusals(background, onFailure, refusalsEveryMs)
  app.addHook('onClose', () => refusals.close())
  app.decorate('noteRefusal', (request: FastifyRequest, { meta }: Problem) => {
    const { caller, id, ip, routeOptions } = request
    const { operationId = '' } = (routeOptions.schema ?? {}) as { operationId?: string }
    const ruleId = meta?.rule_id
    refusals.note({
      customerId: caller.customerId,
      origin: { actor: caller.actor, request_id: id, ip },
      ...(typeof ruleId === 'string'
        ? { action: 'policy_rule.refuse', subjectId: ruleId }
        : { action: 'request.refuse', subjectId: operationId }),
    })
  })
}

/** The record of refusals that have no record of their own. */
const countOf = (actor: Actor, customerId: string, count: number): AuditRecord => ({
  ...audited({ actor }, 'request.omit', customerId, { after: { count } }),
  outcome: 'REFUSED',
})
