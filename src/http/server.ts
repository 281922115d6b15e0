import { METHODS, type IncomingMessage } from 'node:http'
import Fastify, { LogController, type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Settings } from '../settings.ts'
import { compressAnswers } from './compression.ts'
import { Connections } from './connections.ts'
import { allowOrigins } from './cross-origin.ts'
import { refuseConnection, refuseUrl } from './errors.ts'
import { knowPaths } from './known-paths.ts'
import { Requests, type RequestMeter } from './requests.ts'
import type { Tracing } from '../contract/tracing.ts'
import { parseJson, serializerCompiler, validatorCompiler } from './validation.ts'

export const BODY_LIMIT = 64 * 1024
/** Limit of the request line and the headers together. Two filters of 100 non-Latin `ref_ids` take 100 KiB. */
const HEADERS_BYTES_MAX = 128 * 1024
/** How often to look for connections that take too long to send a request. */
const CONNECTIONS_CHECK_MS = 1_000
/** Time limits for a client to send a whole request, and for its headers alone. */
const RECEIVE_MS_MAX = 20_000
const HEADERS_MS_MAX = 10_000
/** How long a connection may stall while its answer is written, on top of the time limit of a request. */
const STALLED_MS_MAX = 30_000

interface ServerOptions {
  settings: Settings
  baseUrl: string
  log: Logger
  meter?: RequestMeter | undefined
  tracing?: Tracing | undefined
  /** Returns another path for a request, before it is routed. */
  rewriteUrl?: ((request: IncomingMessage) => string) | undefined
}

/** Removes slashes that some clients send, the last one and a second one after `/v2`. Relative links of other pages need the last. */
const withoutMoreSlashes = (url: string): string =>
  url.endsWith('/') || url.includes('/?')
    ? url.replace(/^(\/(?:(?:v2|oauth2)\/[^?]*[^/?]|problems(?:\/[^/?]+)?))\/(?=\?|$)/, '$1')
    : url.replace(/^\/v2\/+/, '/v2/')

/** Creates the HTTP server with its limits, its parser of JSON and its validation, and counts its requests. */
export function createServer({ settings, baseUrl, log, meter, tracing, rewriteUrl }: ServerOptions): {
  app: FastifyInstance
  requests: Requests
} {
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => crypto.randomUUID(),
    // A logger per request costs more than its few log lines are worth. http/errors.ts logs the request's id itself.
    childLoggerFactory: (logger) => logger,
    bodyLimit: BODY_LIMIT,
    // Overlong ids reach the schema and get its error. No route has a pattern that a long id could slow down.
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: HEADERS_BYTES_MAX },
    rewriteUrl: (request) => withoutMoreSlashes(rewriteUrl?.(request) ?? request.url!),
    frameworkErrors: refuseUrl(baseUrl),
    forceCloseConnections: 'idle',
    clientErrorHandler: refuseConnection(HEADERS_BYTES_MAX),
    http: {
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
      headersTimeout: HEADERS_MS_MAX,
      maxHeaderSize: HEADERS_BYTES_MAX,
    },
    requestTimeout: RECEIVE_MS_MAX,
    connectionTimeout: settings.requestTimeoutMs + STALLED_MS_MAX,
    trustProxy: settings.trustedProxies ?? false,
  }) as unknown as FastifyInstance
  knowPaths(app, HEADERS_BYTES_MAX)
  const connections = new Connections({
    perAddress: settings.connectionsPerAddress,
    trustedProxies: settings.trustedProxies,
    databaseConnections: settings.databaseConnections,
    log,
  })
  connections.watch(app.server)
  for (const method of METHODS.filter(
    (method) => method !== 'CONNECT' && !app.supportedMethods.includes(method),
  ))
    app.addHttpMethod(method)
  app.removeContentTypeParser('text/plain')
  parseJson(app)
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler(app))
  const requests = new Requests({
    max: settings.requestsMax,
    timeoutMs: settings.requestTimeoutMs,
    meter,
    tracing,
    connections,
    secure: { baseUrl, behindProxy: settings.trustedProxies !== undefined },
    ...(settings.logRequests && { log }),
  })
  requests.watch(app)
  allowOrigins(app, settings.corsOrigins?.split(',') ?? [])
  compressAnswers(app)
  return { app, requests }
}
