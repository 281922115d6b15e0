import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { isEventType } from '../contract/event-types.ts'
import { problem } from '../contract/problems.ts'
import type { Scope } from '../contract/scopes.ts'
import type { Database } from '../db/database.ts'
import type { Nodes } from '../db/nodes.ts'
import { firstIdAt, UUID } from '../db/ids.ts'
import { readHorizon } from '../db/horizon.ts'
import { hookOf, type Authenticate, type Standing, type Verified } from '../http/authenticate.ts'
import { EVENT_COLUMNS, eventToWire, type EventRow } from '../records/event.ts'

/**
 * GET /v2/events/stream: a customer's events as they happen (API behaviour, Events), as Server-Sent Events. One timer of the
 * process reads new events for all streams, below the horizon, so that a stream misses none and gets each once. It is no
 * operation: its answer does not end.
 */

const URL_PATH = '/v2/events/stream'
/** How often new events are looked for, while there is a stream. */
const LOOK_MS = 500
/** Most events that one look takes for one stream. More follow at once. */
const PAGE = 100
/** A comment is sent after this long without an event, so that neither side takes the connection for dead. */
const BEAT_MS = 15_000
/** A reader that leaves more than this unread is cut off. It comes back with the id of its last event. */
const UNREAD_BYTES_MAX = 1024 * 1024
/** Streams of one customer, and of the process. */
const OF_CUSTOMER_MAX = 20
const STREAMS_MAX = 500

interface StreamOptions {
  nodes: Nodes
  log: Logger
  requireScope: (scopes: readonly Scope[]) => Authenticate
  standing: Standing
  /** Whether the process is stopping. */
  isStopping: () => boolean
}

interface Stream {
  caller: Verified
  response: ServerResponse
  /** The id of the last event that was sent, or the horizon at which the stream began. */
  after: string | undefined
  /** When something was last sent, in milliseconds of the process. */
  sentAt: number
}

/** Adds the route. Its streams end with the process. */
export function streamEvents(app: FastifyInstance, options: StreamOptions): void {
  const streams = new Streams(options)
  app.addHook('preClose', async () => streams.close())
  app.get(
    URL_PATH,
    {
      schema: { hide: true },
      config: { counts: 'operation' },
      onRequest: hookOf(options.requireScope(['events:read_event'])),
    },
    (request, reply) => {
      const after = request.headers['last-event-id']
      if (after !== undefined && !(typeof after === 'string' && UUID.test(after)))
        throw problem.badRequest('Last-Event-ID: must be the id of an event')
      streams.requirePlace(request.caller.customerId)
      reply.hijack()
      const headers = Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined)
      reply.raw.writeHead(200, {
        ...(Object.fromEntries(headers) as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        // Proxies that collect answers would delay events.
        'x-accel-buffering': 'no',
      })
      reply.raw.write(': open\n\n')
      // What the token's verification found is the caller.
      streams.add(request.caller as Verified, reply.raw, after)
    },
  )
}

/** The open streams of this process. */
class Streams {
  readonly #options: StreamOptions
  readonly #open = new Set<Stream>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: StreamOptions) {
    this.#options = options
  }

  /** Throws the 429 problem when the customer or the process has too many streams. */
  requirePlace(customerId: string): void {
    const own = [...this.#open].filter(({ caller }) => caller.customerId === customerId)
    if (own.length >= OF_CUSTOMER_MAX)
      throw problem.tooManyRequests(
        `a customer has at most ${OF_CUSTOMER_MAX} streams of events at a process`,
        5,
      )
    if (this.#open.size >= STREAMS_MAX || this.#closed)
      throw problem.unavailable('this process has no place for another stream of events; try again')
  }

  add(caller: Verified, response: ServerResponse, after: string | undefined): void {
    const stream = { caller, response, after: after?.toLowerCase(), sentAt: performance.now() }
    this.#open.add(stream)
    response.once('close', () => this.#open.delete(stream))
    if (this.#timer === undefined) this.#lookLater()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const stream of this.#open) this.#end(stream)
  }

  #lookLater(): void {
    this.#timer = setTimeout(() => {
      void this.#look()
        .catch((err: unknown) => this.#options.log.warn({ err }, 'new events could not be read for streams'))
        .finally(() => {
          this.#timer = undefined
          if (this.#open.size > 0 && !this.#closed) this.#lookLater()
        })
    }, LOOK_MS)
  }

  /** Sends each stream what is new, and ends those whose token or process ends. */
  async #look(): Promise<void> {
    for (const stream of this.#open) if (!this.#mayGoOn(stream)) this.#end(stream)
    if (this.#open.size === 0) return
    // The horizon of each node is read once, before the statements that read events: what commits later has a later time.
    const horizons = new Map<Database, string>()
    for (const stream of [...this.#open]) {
      const db = this.#options.nodes.of(stream.caller.customerId)
      const horizon = horizons.get(db) ?? firstIdAt((await readHorizon(db)).micros)
      horizons.set(db, horizon)
      // A stream without a last event begins now.
      stream.after ??= horizon
      await this.#send(db, stream, horizon)
    }
  }

  async #send(db: Database, stream: Stream, horizon: string): Promise<void> {
    for (;;) {
      const { caller, response, after } = stream
      const { rows } = await db.query<EventRow>({
        name: 'stream events',
        text: `
          select ${EVENT_COLUMNS}
          from events e
          where e.customer_id = $1 and e.id > $2 and e.id < $3 and not e.is_test
          order by e.id
          limit $4`,
        values: [caller.customerId, after, horizon, PAGE],
      })
      if (!this.#open.has(stream)) return
      for (const row of rows) {
        stream.after = row.id
        // While versions are mixed, a newer process may write types that this one does not know.
        if (!isEventType(row.type)) continue
        response.write(`id: ${row.id}\nevent: ${row.type}\ndata: ${JSON.stringify(eventToWire(row))}\n\n`)
      }
      const now = performance.now()
      if (rows.length > 0) stream.sentAt = now
      else if (now - stream.sentAt > BEAT_MS) {
        stream.sentAt = now
        response.write(': beat\n\n')
      }
      if (response.writableLength > UNREAD_BYTES_MAX) return void response.destroy()
      if (rows.length < PAGE) return
    }
  }

  #mayGoOn({ caller }: Stream): boolean {
    if (this.#options.isStopping() || caller.expiresAt * 1000 <= Date.now()) return false
    try {
      this.#options.standing.requireEnabled(caller)
      return true
    } catch {
      // The refusal is for requests. The stream's next request gets it.
      return false
    }
  }

  #end(stream: Stream): void {
    this.#open.delete(stream)
    stream.response.end()
  }
}
