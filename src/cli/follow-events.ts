import { setTimeout as pause } from 'node:timers/promises'
import type { Event } from '../money/records/event.ts'
import { NoAnswer, Refused, type Api, type ListPage } from './call-api.ts'

/** A place in the events of a customer: the last event that was handled. */
export interface EventCursor {
  created_at: string
  id: string
}

export interface FollowEventsOptions {
  /** Types, such as `transfer.*`; all when absent. */
  types?: readonly string[] | undefined
  /** Continues after this event. */
  cursor?: EventCursor | undefined
  /** Begins at this time if there is no cursor. */
  since?: string | undefined
  signal: AbortSignal
  /** Called when a read fails and is tried again. */
  onFailure: (reason: string, retryMs: number) => void
}

const PAGE = 100
/** Rest between two reads when there are no more events. */
const POLL_MS = 1_000
const RETRY_MS = 100
const RETRY_MS_MAX = 10_000

/**
 * Iterates over events in their order, each once, until the signal aborts. A walk follows the pages. After the last page or
 * a failure, the next walk begins at the time of the last event and skips the events up to that event. Reads that fail for a
 * reason that may pass are tried again for ever. Throws `Refused`.
 */
export async function* followEvents(api: Api, options: FollowEventsOptions): AsyncGenerator<Event, void> {
  const { types, cursor, since, signal, onFailure } = options
  let last = cursor
  let failures = 0
  while (!signal.aborted) {
    const from = last?.created_at ?? since
    const query = new URLSearchParams({ limit: String(PAGE), order: 'ASC' })
    for (const type of types ?? []) query.append('types', type)
    if (from !== undefined) query.set('created_at.gte', from)
    let restMs = POLL_MS
    try {
      for (;;) {
        const page = await api.call<ListPage<Event>>(
          'GET',
          `/v2/events?${query.toString()}`,
          undefined,
          signal,
        )
        failures = 0
        for (const event of page.items) {
          if (last !== undefined && event.id <= last.id) continue
          last = { created_at: event.created_at, id: event.id }
          yield event
        }
        if (page.next_page_cursor === undefined) break
        query.set('page_cursor', page.next_page_cursor)
      }
    } catch (error) {
      if (signal.aborted) return
      if (!passes(error)) throw error
      restMs = Math.min(RETRY_MS * 2 ** failures++, RETRY_MS_MAX)
      onFailure(error.message, restMs)
    }
    await pause(restMs, undefined, { signal }).catch(() => undefined)
  }
}

/** Whether a failure may pass: no answer, too many requests, or a fault of the service. */
const passes = (error: unknown): error is Error =>
  error instanceof NoAnswer ||
  (error instanceof Refused && (error.status === 408 || error.status === 429 || error.status >= 500))

/** Where a walk begins: after an event, or at a time. */
export type WalkStart = { cursor: EventCursor } | { since: string }

/**
 * Finds the place where a walk begins: after an event, by its id, or at a time. Throws for a text that is neither, and
 * `Refused` when there is no such event.
 */
export async function walkStartOf(api: Api, after: string): Promise<WalkStart> {
  if (after === 'now') {
    // From the newest event, not from this machine's time: the machine's clock may be ahead of the database's.
    const { items } = await api.call<ListPage<Event>>('GET', '/v2/events?order=DESC&limit=1')
    const [newest] = items
    if (newest === undefined) return { since: new Date(0).toISOString() }
    return { cursor: { id: newest.id, created_at: newest.created_at } }
  }
  if (/^[0-9a-f-]{36}$/i.test(after)) {
    const { id, created_at } = await api.call<Event>('GET', `/v2/events/${after.toLowerCase()}`)
    return { cursor: { id, created_at } }
  }
  if (/^\d{4}-\d\d-\d\dT/.test(after) && !Number.isNaN(Date.parse(after))) return { since: after }
  throw new Error('--after must be an event id, an RFC 3339 time or now')
}
