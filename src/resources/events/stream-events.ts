import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { isEventType } from '../../contract/event-types.ts'
import { problem } from '../../contract/problems.ts'
import type { Scope } from '../../contract/scopes.ts'
import type { Database } from '../../db/database.ts'
import { forCustomer } from '../../db/parts.ts'
import { firstIdAt, UUID } from '../../db/ids.ts'
import { readHorizon } from '../../db/horizon.ts'
import { hookOf, type Authenticate, type CallerStanding, type Verified } from '../../http/authenticate.ts'
import { requireHorizon } from '../../http/require-horizon.ts'
import { EVENT_COLUMNS, eventToWire, type EventRow } from '../../money/records/event.ts'

/**
 * GET /v2/events/stream: a customer's events as they happen (API behaviour, Events), as Server-Sent Events. One timer of the
 * process reads new events for all streams, below the horizon, so that a stream misses none and gets each once. The route is
 * no operation, because its answer does not end.
 */

const URL_PATH = '/v2/events/stream'
/** How often new events are read, while there is a stream. */
const LOOK_MS = 500
/** The pause before the next look while a stream has more earlier events to send. */
const BEHIND_MS = 20
const EVENTS_PAGE = 100
/** How far a stream goes back. Earlier events are in List Events. */
const PAST_HOURS = 24
/** A comment is sent after this long without an event, so that neither side takes the connection for dead. */
const BEAT_MS = 15_000
/** Most streams of one customer, and of the process. A full process ends a stream of the customer with the most. */
const OF_CUSTOMER_MAX = 20
const STREAMS_MAX = 500

const NOT_AVAILABLE = (reason: string) => `a stream can begin at no moment: ${reason}`

interface StreamOptions {
  db: Database
  log: Logger
  requireScope: (scopes: readonly Scope[]) => Authenticate
  standing: CallerStanding
  isStopping: () => boolean
}

interface Stream {
  caller: Verified
  response: ServerResponse
  /** The id of the last event that was sent, or the horizon before the stream was open. */
  after: string
  /** When something was last sent, in milliseconds of the process. */
  sentAt: number
  /** When the look began that last read its events. */
  lookedAt: number
  /** Whether its last page was full, so that more earlier events follow. */
  isBehind: boolean
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
    async (request, reply) => {
      const after = request.headers['last-event-id']
      if (after !== undefined && !(typeof after === 'string' && UUID.test(after)))
        throw problem.badRequest('Last-Event-ID: must be the id of an event')
      const { customerId } = request.caller
      const db = forCustomer(options.db, customerId)
      if (after !== undefined) await requireRecent(db, customerId, after)
      // Before the client hears that the stream is open: whatever happens from then on is in it.
      const begin = after?.toLowerCase() ?? firstIdAt((await requireHorizon(db, NOT_AVAILABLE)).micros)
      // The client has disconnected meanwhile.
      if (reply.raw.destroyed) return
      streams.requirePlace(customerId)
      reply.hijack()
      const headers = Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined)
      reply.raw.writeHead(200, {
        ...(Object.fromEntries(headers) as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        // Proxies that buffer answers would delay events.
        'x-accel-buffering': 'no',
      })
      reply.raw.write(': open\n\n')
      // The verification of the token has set the caller.
      streams.add(request.caller as Verified, reply.raw, begin)
    },
  )
}

/** Throws bad-request if events after `after` are too old for a stream: List Events reads them in pages. */
async function requireRecent(db: Database, customerId: string, after: string): Promise<void> {
  const oldest = firstIdAt((Date.now() - PAST_HOURS * 3_600_000) * 1_000)
  if (after.toLowerCase() >= oldest) return
  const { rowCount } = await db.query(
    'select 1 from events where customer_id = $1 and id > $2 and id < $3 limit 1',
    [customerId, after, oldest],
  )
  if (rowCount !== 0)
    throw problem.badRequest(
      `Last-Event-ID: events follow that are older than ${PAST_HOURS} hours; read them with GET /v2/events`,
    )
}

class Streams {
  readonly #options: StreamOptions
  readonly #open = new Set<Stream>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: StreamOptions) {
    this.#options = options
  }

  /**
   * Throws the 429 problem when the customer has too many streams. A full process ends a stream of the customer with the
   * most streams, whose client continues after its last event. Throws the 503 problem if that customer has no more than this
   * customer would have, or if the process is closing.
   */
  requirePlace(customerId: string): void {
    const ofCustomers = new Map<string, Stream[]>()
    for (const stream of this.#open) {
      const { customerId: holder } = stream.caller
      ofCustomers.set(holder, [...(ofCustomers.get(holder) ?? []), stream])
    }
    const own = ofCustomers.get(customerId)?.length ?? 0
    if (own >= OF_CUSTOMER_MAX)
      throw problem.tooManyRequests(
        `a customer has at most ${OF_CUSTOMER_MAX} streams of events at a process`,
        5,
      )
    const full = () =>
      problem.unavailable('this process has no place for another stream of events; try again')
    if (this.#closed) throw full()
    if (this.#open.size < STREAMS_MAX) return
    const [most] = [...ofCustomers.values()].toSorted((a, b) => b.length - a.length)
    if (most!.length <= own + 1) throw full()
    this.#end(most![0]!)
  }

  add(caller: Verified, response: ServerResponse, after: string): void {
    const now = performance.now()
    const stream = { caller, response, after, sentAt: now, lookedAt: -Infinity, isBehind: false }
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
    const hasMore = [...this.#open].some(({ isBehind, response }) => isBehind && !response.writableNeedDrain)
    this.#timer = setTimeout(
      () => {
        void this.#look()
          .catch((err: unknown) =>
            this.#options.log.warn({ err }, 'new events could not be read for streams'),
          )
          .finally(() => {
            this.#timer = undefined
            if (this.#open.size > 0 && !this.#closed) this.#lookLater()
          })
      },
      hasMore ? BEHIND_MS : LOOK_MS,
    )
  }

  /**
   * Sends each stream one page of new events at most. Ends streams whose token has ended, and all when the process stops. Of
   * a customer's streams that are behind, one has its turn, so that they delay the streams of others by one page. A stream
   * waits while its client reads too slowly.
   */
  async #look(): Promise<void> {
    const began = performance.now()
    // The horizon of each node is read once, before the events: an event that commits later has a later time.
    const horizons = new Map<Database, string>()
    const hadTurn = new Set<string>()
    for (const stream of [...this.#open]) {
      const { customerId } = stream.caller
      if (!this.#open.has(stream)) continue
      if (!this.#mayGoOn(stream)) {
        this.#end(stream)
        continue
      }
      if (stream.response.writableNeedDrain) continue
      if (stream.isBehind ? hadTurn.has(customerId) : began - stream.lookedAt < LOOK_MS) continue
      if (stream.isBehind) hadTurn.add(customerId)
      const db = forCustomer(this.#options.db, customerId)
      const horizon = horizons.get(db) ?? firstIdAt((await readHorizon(db)).micros)
      horizons.set(db, horizon)
      stream.lookedAt = began
      await this.#sendPage(db, stream, horizon)
    }
  }

  async #sendPage(db: Database, stream: Stream, horizon: string): Promise<void> {
    const { caller, response, after } = stream
    const { rows } = await db.query<EventRow>({
      name: 'stream events',
      text: `
        select ${EVENT_COLUMNS}
        from events e
        where e.customer_id = $1 and e.id > $2 and e.id < $3 and not e.is_test
        order by e.id
        limit $4`,
      values: [caller.customerId, after, horizon, EVENTS_PAGE],
    })
    if (!this.#open.has(stream)) return
    stream.isBehind = rows.length === EVENTS_PAGE
    // Moved to the end, so that the customer's other streams have their turn first.
    this.#open.delete(stream)
    this.#open.add(stream)
    const now = performance.now()
    if (rows.length > 0) stream.sentAt = now
    else if (now - stream.sentAt > BEAT_MS) {
      stream.sentAt = now
      response.write(': beat\n\n')
    }
    let text = ''
    for (const row of rows) {
      stream.after = row.id
      // During an upgrade, a newer process may write types that this one does not know.
      if (isEventType(row.type))
        text += `id: ${row.id}\nevent: ${row.type}\ndata: ${JSON.stringify(eventToWire(row))}\n\n`
    }
    if (text !== '') response.write(text)
  }

  #mayGoOn({ caller }: Stream): boolean {
    if (this.#options.isStopping() || caller.expiresAt * 1000 <= Date.now()) return false
    try {
      this.#options.standing.requireEnabled(caller)
      return true
    } catch {
      // The client gets the refusal when it connects again.
      return false
    }
  }

  #end(stream: Stream): void {
    this.#open.delete(stream)
    stream.response.end()
  }
}
