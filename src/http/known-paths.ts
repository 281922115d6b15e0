import type { FastifyInstance } from 'fastify'
import FindMyWay from 'find-my-way'

interface KnownPath {
  /** As declared, with the names of its parameters. */
  url: string
  /** The methods that the path has. */
  allowed: string[]
  /** An operation of the path reads no token. */
  isPublic: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The path, of a request that only asks for a method which the path does not have. */
    knownPath: KnownPath | undefined
  }
}

/**
 * Tells the request which path it asks for when the path lacks its method. Call it before routes are added: a router of its
 * own finds paths of any method, for declaring a route for each of 34 methods took longer than the rest of a start.
 */
export function knowPaths(app: FastifyInstance, maxParamLength: number): void {
  const router = FindMyWay({ maxParamLength })
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ method, url, config }) => {
    let known = paths.get(url)
    if (known === undefined) {
      known = { url, allowed: [], isPublic: false }
      paths.set(url, known)
      router.on('GET', url, () => undefined, known)
    }
    known.allowed.push(...[method].flat())
    known.isPublic ||= config?.isPublic === true
  })
  app.decorateRequest('knownPath', undefined)
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.is404) request.knownPath = router.find('GET', request.url)?.store as KnownPath | undefined
    done()
  })
}
