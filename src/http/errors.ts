import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorObject } from 'ajv'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { connectionLost, tookTooLong } from '../db/database.ts'
import { problemPages } from './problem-pages.ts'
import { Problem, problem } from '../contract/problems.ts'
import { describeSchemaError } from './validation.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'] as const

/** Turns whatever goes wrong into a problem (API behaviour, Errors), and serves the pages of the typed ones. */
export function errorRoutes(
  app: FastifyInstance,
  { baseUrl, docs }: { baseUrl: string; docs: boolean },
): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const refusal = problemOf(error, request, app)
    if (refusal.status < 500) return send(reply, refusal, baseUrl)
    const where = {
      reqId: request.id,
      client_id: (request.caller as typeof request.caller | undefined)?.clientId,
      route: request.routeOptions.url,
    }
    // Our fault, not the client's: the log has the cause, the answer only the id to find it by. A limit that was
    // reached has no other cause, and may be reached often.
    if (error instanceof Problem && error.slug === 'unavailable' && error.cause === undefined)
      request.log.warn(where, refusal.detail)
    else request.log.error({ ...where, err: refusal.cause ?? error }, refusal.detail)
    return send(reply, refusal, baseUrl, request.id)
  })
  app.setNotFoundHandler((request, reply) => send(reply, noSuchPath(request), baseUrl))
  problemPages(app, { baseUrl, docs })
}

/** The refusal of a path that no route is for. */
export const noSuchPath = ({ method, url }: FastifyRequest): Problem =>
  problem.notFound(`${method} ${url.split('?')[0]!.slice(0, 200)}`)

/** For a path that no route can be found for, because it is not percent-encoded as it should be. */
export const refuseUrl =
  (baseUrl: string) =>
  (_error: FastifyError, _request: unknown, reply: FastifyReply): void =>
    void send(reply, problem.badRequest('the path is not percent-encoded correctly'), baseUrl)

/** For what is no request that a route could be found for: not HTTP, or too large or too slow in its headers. */
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
          : problem.badRequest('this is no HTTP request'),
    )
  }

/**
 * Says why and closes both sides of a connection. Closing ours alone would leave its descriptor to the client, who may
 * hold the other side open for as long as it likes; and what still came would be a request all the same.
 */
export function endConnection(socket: Socket, refusal: Problem): void {
  // It is untyped, and so leads to no page.
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

/** A known path with another method: 405 with what it allows, instead of a 404. Comes after all routes. */
export function refuseOtherMethods(
  app: FastifyInstance,
  baseUrl: string,
  routes: { method: string; url: string }[],
): void {
  for (const url of new Set(routes.map((route) => route.url))) {
    const allowed = routes.filter((route) => route.url === url).map(({ method }) => method)
    app.route({
      method: METHODS.filter((method) => !allowed.includes(method)),
      url,
      schema: { hide: true },
      // Before the body is parsed: whatever it is, it is not wanted here.
      onRequest: async (request, reply) =>
        send(reply, problem.methodNotAllowed(request.method, allowed.join(', ')), baseUrl),
      handler: () => undefined,
    })
  }
}

function send(reply: FastifyReply, refusal: Problem, baseUrl: string, requestId?: string): FastifyReply {
  return reply
    .status(refusal.status)
    .headers(refusal.headers)
    .type('application/problem+json')
    .serializer(JSON.stringify)
    .send(refusal.body(baseUrl, requestId))
}

function problemOf(error: FastifyError, request: FastifyRequest, app: FastifyInstance): Problem {
  if (error instanceof Problem) return error
  if (error.validation !== undefined) {
    const errors = error.validation as unknown as ErrorObject[]
    // What is wrong with a key stands before the error that says it is a key.
    const told = errors.find(({ keyword }) => keyword === 'propertyNames') ?? errors[0]!
    return problem.badRequest(describeSchemaError(told, error.validationContext ?? 'body'))
  }
  switch (error.statusCode) {
    case 400:
      return problem.badRequest(BODY_ERRORS[error.code] ?? error.message)
    // Of a file that may not be read, as of one that is not there (@fastify/static).
    case 403:
    case 404:
      return noSuchPath(request)
    case 413:
      return problem.payloadTooLarge(app.initialConfig.bodyLimit ?? 0)
    case 415:
      return problem.unsupportedMediaType('application/json')
    default:
      break
  }
  if (connectionLost(error)) return problem.unavailable('the database does not answer; try again')
  if (tookTooLong(error))
    return problem.unavailable('the database took too long; nothing was changed; try again')
  return problem.internalError()
}

const BODY_ERRORS: Record<string, string> = {
  FST_ERR_CTP_EMPTY_JSON_BODY: 'the body is empty; it must be a JSON object',
  FST_ERR_CTP_INVALID_JSON_BODY:
    'the body is not valid JSON, or has a key __proto__ or constructor.prototype',
}
