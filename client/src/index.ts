import createFetchClient from 'openapi-fetch'
import { tokenSource } from './access-token.ts'
import { BursarProblem, BursarTimeout, BursarUnreachable } from './errors.ts'
import { followEvents, type Event, type EventPage, type EventsOptions } from './events.ts'
import type { Item, ListPath, Method, PathOf, Reply, Rest } from './operations.ts'
import { prepare } from './ref-ids.ts'
import type { components, paths } from './schema.ts'
import { pause, RETRIES, sendAgain, type Retries } from './send-again.ts'

export {
  BursarError,
  BursarProblem,
  BursarProofError,
  BursarSignatureError,
  BursarTimeout,
  BursarUnreachable,
  type FieldError,
  type ProblemMeta,
  type ProblemSlug,
  type SignatureFault,
} from './errors.ts'
export type { Event, EventCursor, EventsOptions } from './events.ts'
export { verifyLiability, type Liability, type LiabilityProof } from './liability.ts'
export type { Init, Item, ListPath, Method, PathOf, Reply } from './operations.ts'
export type { Retries } from './send-again.ts'
export type { components, operations, paths } from './schema.ts'
export {
  isFull,
  unwrap,
  type FullEvent,
  type HeadersLike,
  type ThinEvent,
  type Unwrapping,
} from './unwrap.ts'

type Records = components['schemas']
export type Account = Records['Account']
export type Balance = Records['Balance']
export type DepositAddress = Records['DepositAddress']
export type FiatAccount = Records['FiatAccount']
export type FiatDepositInstructions = Records['FiatDepositInstructions']
export type HistoricalPrice = Records['HistoricalPrice']
export type Identity = Records['Identity']
export type Market = Records['Market']
export type Orchestration = Records['Orchestration']
export type OrchestrationRule = Records['OrchestrationRule']
export type Profile = Records['Profile']
export type Statement = Records['Statement']
export type Transfer = Records['Transfer']

export interface ClientOptions {
  /** The address of the API, without `/v2`. */
  baseUrl: string
  clientId: string
  clientSecret: string
  /** The scopes to request for tokens (default: all scopes of the client). */
  scopes?: readonly string[]
  /** The token endpoint of an external issuer (default: `<baseUrl>/oauth2/token`). */
  tokenUrl?: string
  /** Replaces the global `fetch`, for tracing, a proxy or a test. */
  fetch?: typeof globalThis.fetch
  /** Changes to the limits of retries. */
  retries?: Partial<Retries>
}

type Call<M extends Method> = <P extends PathOf<M>>(path: P, ...rest: Rest<P, M>) => Promise<Reply<P, M>>

/**
 * A client of the Bursar API. Each call returns the operation's answer, or throws: `BursarProblem` for an error response,
 * `BursarUnreachable` without any answer, and the signal's reason when the signal aborts.
 */
export interface Client {
  get: Call<'get'>
  /** Adds a `ref_id` where the operation takes one and the body has none, so that a retry cannot execute twice. */
  post: Call<'post'>
  put: Call<'put'>
  delete: Call<'delete'>
  /** Iterates over the records of a list, through all pages. */
  each<P extends ListPath>(path: P, ...rest: Rest<P, 'get'>): AsyncGenerator<Item<P>, void>
  /** Iterates over the pages of a list. */
  pages<P extends ListPath>(path: P, ...rest: Rest<P, 'get'>): AsyncGenerator<Reply<P, 'get'>, void>
  /**
   * Iterates over the customer's events in their order, each once, and waits for more without end. Failures that may pass
   * are tried again for ever; keep `{ created_at, id }` of the last event to continue after it. Throws `BursarProblem` for
   * other refusals, and the signal's reason.
   */
  events(options?: EventsOptions): AsyncGenerator<Event, void>
  /** Waits until a transfer is COMPLETED or FAILED, and returns it. Throws `BursarTimeout` if it stays PENDING. */
  waitFor(transfer: Pick<Transfer, 'id'>, waiting?: Waiting): Promise<Transfer>
}

/** Options of `waitFor`. */
export interface Waiting {
  /** Time limit of the whole wait (default: 10 minutes). */
  timeoutMs?: number
  /** Pause between reads of the transfer (default: 1 second). */
  everyMs?: number
  signal?: AbortSignal | null
}

const WAIT_MS = 600_000
const READ_EVERY_MS = 1_000

/** Creates a client. It sends nothing to the service before the first call. Throws TypeError for a wrong `baseUrl`. */
export function createClient(options: ClientOptions): Client {
  const baseUrl = checkedUrl(options.baseUrl)
  // Browsers refuse `fetch` when it is called as a method of another object.
  const fetch: typeof globalThis.fetch = (...request) => (options.fetch ?? globalThis.fetch)(...request)
  const retries = { ...RETRIES, ...options.retries }
  const { clientId, clientSecret, scopes, tokenUrl = `${baseUrl}/oauth2/token` } = options
  const tokens = tokenSource({ tokenUrl, clientId, clientSecret, scopes, fetch, retries })
  const openApi = createFetchClient<paths>({ baseUrl }) as unknown as { request: LooseRequest }

  /** Sends a request with a token, and again with a new token when the first is refused. */
  async function withToken(
    { url, method, headers }: Request,
    body: string | null,
    { signal, within }: { signal: AbortSignal | null | undefined; within: AbortSignal },
  ) {
    const send = (token: string) => {
      const authorised = new Headers(headers)
      authorised.set('authorization', `Bearer ${token}`)
      return fetch(url, { method, headers: authorised, body, signal: within })
    }
    const token = await tokens.get(signal)
    const response = await send(token)
    if (response.status !== 401) return response
    await response.body?.cancel()
    tokens.refused(token)
    return send(await tokens.get(signal))
  }

  async function call(method: Method, path: string, init: Record<string, unknown> = {}): Promise<unknown> {
    const signal = init.signal as AbortSignal | null | undefined
    const { body, refId, repeatable, replyOf, withMade } = prepare(method, path, init.body, keyIn(init))
    let repeated = false
    const { data, error, response } = await openApi
      .request(method, path, {
        params: init.params,
        headers: init.headers,
        body,
        async fetch(request) {
          const text = body === undefined ? null : await request.text()
          const sent = await sendAgain((within) => withToken(request, text, { signal, within }), {
            retries,
            signal,
            repeatable,
            refId,
          })
          repeated = sent.repeated
          return sent.response
        },
      })
      .catch((thrown: unknown) => {
        if (!(thrown instanceof SyntaxError)) throw thrown
        throw new BursarUnreachable(`the answer is not from Bursar: ${thrown.message}`, refId, thrown)
      })
    if (response.ok) return repeated ? withMade(data) : data
    const problem = new BursarProblem(response, error, refId)
    // The answer to an earlier attempt was lost, but that attempt was executed: return its record.
    const made = repeated && problem.slug === 'already-exists' ? replyOf(problem.meta.existing) : undefined
    if (made !== undefined) return made
    throw problem
  }

  const caller = (method: Method) => (path: string, init?: Record<string, unknown>) =>
    call(method, path, init)
  return {
    get: caller('get'),
    post: caller('post'),
    put: caller('put'),
    delete: caller('delete'),
    pages: (path: string, init?: PageInit) => pagesOf(call, path, init),
    each: (path: string, init?: PageInit) => recordsOf(call, path, init),
    events: (options?: EventsOptions) =>
      followEvents(
        (query, signal) => call('get', '/v2/events', { params: { query }, signal }) as Promise<EventPage>,
        options,
      ),
    waitFor: (transfer: Pick<Transfer, 'id'>, waiting?: Waiting) => waitForEnd(call, transfer, waiting),
  } as unknown as Client
}

/** Returns the base URL without a slash at its end. Paths begin with `/v2`, so the base URL must not end with `/v2`. */
function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new TypeError(`baseUrl must begin with https:// or http://, not ${JSON.stringify(text)}`)
  if (url.search !== '' || url.hash !== '' || /\/v2\/*$/.test(url.pathname))
    throw new TypeError(`baseUrl must be the address of the API without /v2, not ${JSON.stringify(text)}`)
  return text.replace(/\/+$/, '')
}

/** The `Idempotency-Key` among the parameters or headers of a call. */
function keyIn({ params, headers }: Record<string, unknown>): string | undefined {
  const { header } = (params ?? {}) as { header?: Record<string, string> }
  const given = new Headers((headers ?? {}) as Record<string, string>)
  return header?.['Idempotency-Key'] ?? given.get('idempotency-key') ?? undefined
}

/** A call without its types: `Client` checks them. */
type LooseCall = (method: Method, path: string, init?: Record<string, unknown>) => Promise<unknown>

async function* pagesOf(call: LooseCall, path: string, init: PageInit = {}): AsyncGenerator<Page, void> {
  let next: object | undefined = {}
  while (next !== undefined) {
    const query: PageQuery = { ...init.params?.query, ...next }
    const page = (await call('get', path, { ...init, params: { ...init.params, query } })) as Page
    yield page
    next = nextPage(page, query)
  }
}

async function* recordsOf(call: LooseCall, path: string, init?: PageInit): AsyncGenerator<unknown, void> {
  for await (const page of pagesOf(call, path, init)) yield* itemsOf(page)
}

async function waitForEnd(
  call: LooseCall,
  { id }: Pick<Transfer, 'id'>,
  { timeoutMs = WAIT_MS, everyMs = READ_EVERY_MS, signal }: Waiting = {},
): Promise<Transfer> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const init = { params: { path: { id } }, signal }
    const transfer = (await call('get', '/v2/transfer/transfers/{id}', init)) as Transfer
    if (transfer.status !== 'PENDING') return transfer
    const remainingMs = deadline - performance.now()
    if (remainingMs <= 0)
      throw new BursarTimeout(`transfer ${id} is still PENDING after ${timeoutMs} ms`, transfer.ref_id)
    await pause(Math.min(everyMs, remainingMs), signal)
  }
}

/** The `request` of openapi-fetch without its types: `Client` checks the types of path, parameters and body. */
type LooseRequest = (
  method: Method,
  path: string,
  init: {
    params: unknown
    headers: unknown
    body: unknown
    fetch: (request: Request) => Promise<Response>
  },
) => Promise<{ data?: unknown; error?: unknown; response: Response }>

interface PageQuery {
  page_cursor?: string
  'pagination.offset'?: number
}

interface PageInit {
  params?: { query?: PageQuery }
}

/** A page of either kind of list: with a cursor for the next page, or with the total number of records. */
interface Page {
  items?: unknown[]
  statements?: unknown[]
  markets?: unknown[]
  next_page_cursor?: string
  total_count?: number
}

const itemsOf = (page: Page) => page.items ?? page.statements ?? page.markets ?? []

/** Returns the query parameters that select the next page; undefined after the last page. */
function nextPage(page: Page, query: PageQuery): PageQuery | undefined {
  if (page.next_page_cursor !== undefined) return { page_cursor: page.next_page_cursor }
  if (page.total_count === undefined || itemsOf(page).length === 0) return undefined
  const offset = (query['pagination.offset'] ?? 0) + itemsOf(page).length
  return offset < page.total_count ? { 'pagination.offset': offset } : undefined
}
