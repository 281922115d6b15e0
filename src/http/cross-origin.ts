import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation reads no token, so every page may read its answer. */
    isPublic?: boolean
    /** Of a route that refuses all other methods of its path: the methods that the path has. */
    allowed?: string[]
  }
}

/** Headers beside those of the Fetch standard that a page may send, and that it may read. */
const SENT = 'Authorization, Content-Type, Idempotency-Key, Prefer, Last-Event-ID, Traceparent'
const READ = 'X-Request-Id, Retry-After, Preference-Applied, WWW-Authenticate'
/** How long a browser keeps the answer to a preflight: the longest that Chromium takes. */
const KEPT_SECONDS = 7_200

/**
 * Lets pages of other origins call the API (Fetch standard, CORS): public operations any page, all others and tokens those
 * of `origins`. Never with cookies: the console's session stays on its own origin. Answers preflights.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { origin, 'access-control-request-method': method } = request.headers
    const { knownPath, routeOptions } = request
    const { url = '' } = knownPath ?? routeOptions
    const { isPublic, allowed } = knownPath ?? routeOptions.config
    if (origin === undefined || !/^\/(?:v2|oauth2)\//.test(url)) return done()
    const granted = isPublic === true ? '*' : origins.find((known) => known === origin)
    if (granted === undefined) return done()
    reply.headers({
      'access-control-allow-origin': granted,
      'access-control-expose-headers': READ,
      vary: 'origin',
    })
    if (method === undefined || allowed === undefined) return done()
    void reply
      .status(204)
      .headers({
        'access-control-allow-methods': allowed.join(', '),
        'access-control-allow-headers': SENT,
        'access-control-max-age': KEPT_SECONDS,
      })
      .send()
  })
}
