import { BursarProblem, BursarUnreachable } from './errors.ts'
import type { components } from './schema.ts'
import { pause } from './send-again.ts'

/** The change of a record's status. `object_type` says which kind of `object` the event has. */
export type Event = components['schemas']['Event']

/** A place in the events of a customer: the last event that was handled. */
export interface EventCursor {
  created_at: string
  id: string
}

/** Options of `events`. */
export interface EventsOptions {
  /** Types to iterate over; `transfer.*` is every type that begins so (default: all). */
  types?: readonly string[]
  /** Only events of this record. */
  objectId?: string
  /** Continues after this event: `{ created_at, id }` of the last one that was handled. */
  cursor?: EventCursor
  /** Begins with the first event at or after this time, if there is no cursor (default: the oldest event that is kept). */
  since?: string | Date
  /** Pause between two reads when there are no more events (default: 2 seconds). */
  pollMs?: number
  signal?: AbortSignal | null
  /** Called when a read fails and is tried again after `retryMs`. */
  onFailure?: (error: BursarProblem | BursarUnreachable, retryMs: number) => void
}

const POLL_MS = 2_000
const PAGE = 100
const RETRY_MS = 200
const RETRY_MS_MAX = 30_000

/** A page of List Events. */
export interface EventPage {
  items: Event[]
  next_page_cursor?: string
}

/** Reads a page of List Events with these parameters. */
export type ReadEvents = (
  query: Record<string, unknown>,
  signal: AbortSignal | null | undefined,
) => Promise<EventPage>

/**
 * Iterates over events in their order, each once, and waits for more without end. A walk follows the pages. After the last
 * page or a failure, the next walk begins at the time of the last event and skips the events up to that event. The service
 * shows no event while an earlier one can still commit, so no event is missed.
 */
export async function* followEvents(
  read: ReadEvents,
  { types, objectId, cursor, since, pollMs = POLL_MS, signal, onFailure }: EventsOptions = {},
): AsyncGenerator<Event, void> {
  let last = cursor
  let failures = 0
  for (;;) {
    const from = last?.created_at ?? (since instanceof Date ? since.toISOString() : since)
    let query: Record<string, unknown> = {
      limit: PAGE,
      ...(types && { types }),
      ...(objectId !== undefined && { object_id: objectId }),
      ...(from !== undefined && { 'created_at.gte': from }),
    }
    let restMs = pollMs
    try {
      for (;;) {
        const { items, next_page_cursor } = await read(query, signal)
        failures = 0
        for (const event of items) {
          if (last !== undefined && event.id <= last.id) continue
          last = { created_at: event.created_at, id: event.id }
          yield event
        }
        if (next_page_cursor === undefined) break
        query = { ...query, page_cursor: next_page_cursor }
      }
    } catch (error) {
      if (!passes(error)) throw error
      restMs = retryMs(failures++, error)
      onFailure?.(error, restMs)
    }
    await pause(restMs, signal)
  }
}

/** Whether a failure may pass: no answer, too many requests, or a fault of the service. */
const passes = (error: unknown): error is BursarProblem | BursarUnreachable =>
  error instanceof BursarUnreachable ||
  (error instanceof BursarProblem && (error.status === 429 || error.status === 408 || error.status >= 500))

const retryMs = (failures: number, error: BursarProblem | BursarUnreachable): number =>
  Math.max(
    Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX) * (1 - Math.random() / 2),
    error instanceof BursarProblem ? (error.retryAfterMs ?? 0) : 0,
  )
