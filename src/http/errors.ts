import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
} from 'fastify'
import { connectionLost, deadlocked, lacksResources, notSerializable, tookTooLong } from '../db/database.ts'
import { differingMembers, type Comparable } from './differing-members.ts'
import { problemPages } from './problem-pages.ts'
import type { ProblemBody } from '../contract/problem-body.ts'
import { Problem, problem } from '../contract/problems.ts'
import { Refusal } from '../contract/refusal.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Called with each refusal for lack of authority, or by policy, of an authenticated caller. */
    noteRefusal?: (request: FastifyRequest, refusal: Problem) => void
  }
}

/** The problems that refuse a caller's authority. The other 403s are about the state of records. */
const REFUSES_AUTHORITY: ReadonlySet<string> = new Set(['forbidden', 'policy-refused'])

function noteRefusal(request: FastifyRequest, refusal: Problem): void {
  if (!REFUSES_AUTHORITY.has(refusal.slug)) return
  // A request without a valid token has no caller.
  if ((request.caller as typeof request.caller | undefined) !== undefined)
    request.server.noteRefusal?.(request, refusal)
}

/** Turns every error into a problem (API behaviour, Errors), and serves the pages of typed problems. */
export function errorRoutes(
  app: FastifyInstance,
  { baseUrl, docs }: { baseUrl: string; docs: boolean },
): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const refusal = placed(problemOf(error, request), request.body)
    // An order of an operator that cannot be done is no lack of authority.
    if (!(error instanceof Refusal)) noteRefusal(request, refusal)
    if (refusal.slug === 'already-exists')
      return send(reply, withDifferences(refusal, request, request.body), baseUrl)
    if (refusal.status < 500) {
      if (refusal.cause instanceof Error) request.refusedFor = refusal.cause.message
      return send(reply, refusal, baseUrl)
    }
    logFault(error, refusal, request)
    return send(reply, refusal, baseUrl, request.id)
  })
  // Refuse an unknown path before its body is read.
  app.addHook('onRequest', (request, _reply, done) => done(request.is404 ? noSuchPath(request) : undefined))
  app.addHook('onRequest', requireDecodable)
  app.setNotFoundHandler((request, reply) => send(reply, noSuchPath(request), baseUrl))
  problemPages(app, { baseUrl, docs })
}

/** Adds where the request, a body or one of its items, names a missing record. */
function placed(refusal: Problem, asked: unknown): Problem {
  const places = refusal.missing === undefined ? [] : placesOf(refusal.missing, asked)
  return places.length === 0 ? refusal : refusal.at(...places)
}

/** The paths of the members of a validated value that have this text. */
function placesOf(text: string, value: unknown, path: string[] = []): string[][] {
  if (value === text) return [path]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => placesOf(text, inner, [...path, name]))
}

/**
 * Adds the members of the request, a body or one of its items, that differ from the existing record. Adds nothing where no
 * member can be compared, as for the members of an account: an empty list would say that request and record agree.
 */
function withDifferences(refusal: Problem, { routeOptions }: FastifyRequest, asked: unknown): Problem {
  const { comparable } = routeOptions.config as { comparable?: Comparable }
  if (comparable === undefined || comparable.members.length === 0) return refusal
  const differs = differingMembers(asked, refusal.meta?.existing, comparable)
  return new Problem(refusal.slug, refusal.detail, { ...refusal.meta, differs })
}

/** A path that the service does not have (404), or not with this method (405). */
export const noSuchPath = ({ method, url, knownPath }: FastifyRequest): Problem =>
  knownPath === undefined
    ? problem.notFound(`${method} ${url.split('?')[0]!.slice(0, 200)}`)
    : problem.methodNotAllowed(method, knownPath.allowed.join(', '))

/** Refuses a path that is not percent-encoded correctly. */
export const refuseUrl =
  (baseUrl: string) =>
  (_error: FastifyError, _request: unknown, reply: FastifyReply): void =>
    void send(reply, problem.badRequest('the path is not percent-encoded correctly'), baseUrl)

/** Refuses a query that is not percent-encoded correctly: its parser would put other characters into the values. */
const requireDecodable: onRequestHookHandler = ({ raw }, _reply, done) => {
  const url = raw.url!
  const query = url.indexOf('?')
  if (query === -1 || !url.includes('%', query)) return done()
  try {
    decodeURIComponent(url.slice(query))
    done()
  } catch {
    done(problem.badRequest('the query is not percent-encoded correctly'))
  }
}

/** Refuses input that never becomes a request: not HTTP, or headers that are too large or too slow. */
export const refuseConnection =
  (headerBytesMax: number) =>
  (error: Error & { code?: string }, socket: Socket): void => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    endConnection(
      socket,
      error.code === 'HPE_HEADER_OVERFLOW'
        ? problem.headersTooLarge(headerBytesMax)
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? problem.requestTimeout()
          : problem.badRequest('not an HTTP request'),
    )
  }

/**
 * Answers with a refusal and destroys the connection. Closing only the service's side would let the client hold the file
 * descriptor open, and later data would still be parsed as requests.
 */
export function endConnection(socket: Socket, refusal: Problem): void {
  // These problems are untyped, so the base URL of a page is not needed.
  const body = JSON.stringify(refusal.body(''))
  socket.write(
    [
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]!}`,
      'Content-Type: application/problem+json',
      'Cache-Control: no-store',
      'X-Content-Type-Options: nosniff',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  )
  socket.destroy()
}

function send(reply: FastifyReply, refusal: Problem, baseUrl: string, requestId?: string): FastifyReply {
  return reply
    .status(refusal.status)
    .headers(refusal.headers)
    .type('application/problem+json')
    .serializer(JSON.stringify)
    .send(refusal.body(baseUrl, requestId))
}

/** Logs a fault of the service. The log has the cause, and the answer only the request id. */
function logFault(error: Error, refusal: Problem, request: FastifyRequest): void {
  const where = {
    reqId: request.id,
    client_id: (request.caller as typeof request.caller | undefined)?.clientId,
    route: request.routeOptions.url,
  }
  // A reached limit has no cause and can occur often, so it is only a warning.
  if (error instanceof Problem && error.slug === 'unavailable' && error.cause === undefined)
    request.log.warn(where, refusal.detail)
  else request.log.error({ ...where, err: refusal.cause ?? error }, refusal.detail)
}

/**
 * Converts an error of one item, in a request that is answered item by item, to the problem body of a single request.
 */
export function itemProblems(
  request: FastifyRequest,
  baseUrl: string,
): (error: unknown, item: unknown) => ProblemBody {
  // All items often have the same fault, for which one line of the log suffices.
  const logged = new Set<string>()
  return (error, item) => {
    const refusal = placed(problemOf(error as FastifyError, request), item)
    // An order of an operator that cannot be done is no lack of authority.
    if (!(error instanceof Refusal)) noteRefusal(request, refusal)
    if (refusal.slug === 'already-exists') return withDifferences(refusal, request, item).body(baseUrl)
    if (refusal.status < 500) return refusal.body(baseUrl)
    if (!logged.has(refusal.detail)) logFault(error as Error, refusal, request)
    logged.add(refusal.detail)
    return refusal.body(baseUrl, request.id)
  }
}

function problemOf(error: FastifyError, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error
  if (error instanceof Refusal) return problem.forbidden(error.message)
  switch (error.statusCode) {
    case 400:
      return problem.badRequest(error.message)
    // @fastify/static answers 403 for a forbidden file; answer 404 as for a missing one.
    case 403:
    case 404:
      return noSuchPath(request)
    case 413:
      return problem.payloadTooLarge(request.routeOptions.bodyLimit)
    case 415:
      return problem.unsupportedMediaType('application/json')
    default:
      break
  }
  if (connectionLost(error)) return problem.unavailable('the database does not answer; try again')
  if (tookTooLong(error))
    return problem.unavailable('the database took too long; nothing was changed; try again')
  if (lacksResources(error))
    return problem.unavailable('the database lacks disk, memory or the like; nothing was changed', error)
  if (deadlocked(error) || notSerializable(error))
    return problem.unavailable('another change came in between; nothing was changed; try again')
  return problem.internalError()
}
