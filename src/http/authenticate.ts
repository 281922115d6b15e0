import { hash } from 'node:crypto'
import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Caller } from './operation.ts'
import { problem } from '../contract/problems.ts'
import type { Scope } from '../contract/scopes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
  }
}

/** The longest access token. Bursar's own tokens have 1 KiB with every scope. */
const TOKEN_LENGTH_MAX = 4_096
/** The longest accepted header: the scheme, some spaces (RFC 9110 sets no limit), the token. */
const AUTHORIZATION_LENGTH_MAX = TOKEN_LENGTH_MAX + 64
/** Limits of the cache of verified tokens: entries, and their approximate bytes. */
const VERIFIED_MAX = 10_000
const VERIFIED_BYTES_MAX = 16 * 1024 * 1024
/** How long a verified signature is cached. A retired key is trusted for no longer than this. */
const VERIFIED_MS_MAX = 60_000
const SCHEME = 'Bearer '
const LAST = Symbol('the caller of the last request on a connection')

/** A verified token: its caller, its expiry in seconds since 1970, and the key that signed it. */
export type Verified = Caller & { expiresAt: number; keyId?: string | undefined }
interface KnownToken extends Verified {
  /** When its signature is checked again, in milliseconds since 1970. */
  until: number
}
/**
 * Remembers the caller of a connection's last request. Most connections repeat one header, and comparing that header takes a
 * tenth of the 3 us for a hash and a look-up.
 */
type Socket = FastifyRequest['raw']['socket'] & { [LAST]?: { authorization: string; caller: KnownToken } }

/** Verifies a token and returns its caller. Throws the 401 problem for an invalid token. */
export type VerifyToken = (token: string) => Promise<Verified>

/** Which API clients and customers are disabled, as this process knows it. */
export interface CallerStanding {
  /** Throws the 401 problem for a caller whose client or customer is disabled. */
  requireEnabled: (caller: Caller) => void
  /**
   * Undefined where this process's list is new enough for the caller. Otherwise reads it again; rejects with the 503 problem
   * where that fails, and with the refusal of `requireEnabled`.
   */
  requireKnown: (caller: Caller) => Promise<void> | undefined
}

/** Sets `request.caller`, synchronously for a cached token. Throws the refusal, or rejects with it. */
export type Authenticate = (request: FastifyRequest) => Promise<void> | undefined

/**
 * Requires a bearer token with one of these scopes (API behaviour, Access tokens; RFC 6750). A process verifies the
 * signature of a token once a minute; it checks the expiry and the trust in the key on every request.
 */
export function authenticator(
  tokens: {
    verify: VerifyToken
    isTrusted: (verified: Verified) => boolean
  },
  standing: CallerStanding,
): (scopes: readonly Scope[]) => Authenticate {
  // Keyed by the hash of the token, so that keys are small and independent of the header's spelling.
  const verified = new LRUCache<string, KnownToken>({
    max: VERIFIED_MAX,
    maxSize: VERIFIED_BYTES_MAX,
    sizeCalculation: bytesOf,
  })

  const isCurrent = (known: KnownToken, now: number) => known.until > now && tokens.isTrusted(known)

  function knownCaller(token: string, now: number): KnownToken | undefined {
    const found = verified.get(keyOfToken(token))
    return found !== undefined && isCurrent(found, now) ? found : undefined
  }

  async function callerOf(authorization: string | undefined, now: number): Promise<KnownToken> {
    if (authorization === undefined) {
      throw problem.unauthorized('the Authorization header is missing', 'Bearer realm="bursar"')
    }
    if (authorization.length > AUTHORIZATION_LENGTH_MAX) {
      throw problem.unauthorized(
        `the Authorization header has more than ${AUTHORIZATION_LENGTH_MAX} characters`,
        'Bearer realm="bursar", error="invalid_request"',
      )
    }
    // The usual spelling: a cached token needs no parsing of the header.
    const known = authorization.startsWith(SCHEME)
      ? knownCaller(authorization.slice(SCHEME.length), now)
      : undefined
    if (known !== undefined) return known
    const [, token] = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization) ?? []
    if (token === undefined) {
      throw problem.unauthorized(
        'the Authorization header must be: Bearer <access token>',
        'Bearer realm="bursar", error="invalid_request"',
      )
    }
    if (token.length > TOKEN_LENGTH_MAX)
      throw invalidToken(`the access token has more than ${TOKEN_LENGTH_MAX} characters`)
    const knownAfterAll = knownCaller(token, now)
    if (knownAfterAll !== undefined) return knownAfterAll
    const caller = { ...(await tokens.verify(token)), until: now + VERIFIED_MS_MAX }
    verified.set(keyOfToken(token), caller)
    return caller
  }

  function admit(
    request: FastifyRequest,
    caller: KnownToken,
    now: number,
    scopes: readonly Scope[],
  ): undefined {
    if (caller.expiresAt * 1000 <= now) throw invalidToken('the access token has expired')
    standing.requireEnabled(caller)
    request.caller = caller
    if (!scopes.some((scope) => caller.scopes.includes(scope)))
      throw problem.missingScope(scopes, caller.scopes)
    return undefined
  }

  return (scopes) => (request) => {
    const now = Date.now()
    const { authorization } = request.headers
    const socket: Socket = request.raw.socket
    const last = socket[LAST]
    if (last !== undefined && last.authorization === authorization && isCurrent(last.caller, now))
      return admit(request, last.caller, now, scopes)
    return callerOf(authorization, now).then((caller) => {
      socket[LAST] = { authorization: authorization!, caller }
      return admit(request, caller, now, scopes)
    })
  }
}

/** The hook of a route. A cached token needs no promise, which took 1 % of the time of a withdrawal. */
export const hookOf =
  (authenticate: Authenticate): onRequestHookHandler =>
  (request, _reply, done) => {
    const waiting = authenticate(request)
    if (waiting === undefined) done()
    else waiting.then(() => done(), done)
  }

const keyOfToken = (token: string) => hash('sha256', token, 'base64')

/** Approximate bytes of a cache entry. An external issuer may grant any number of scopes. */
const bytesOf = ({ clientId, scopes }: Caller) =>
  400 + 2 * clientId.length + scopes.reduce((sum, scope) => sum + 40 + 2 * scope.length, 0)

/** The refusal of a token that is expired, forged or issued for another service. The log has the cause, and no answer. */
export const invalidToken = (detail: string, cause?: Error) =>
  Object.assign(
    problem.unauthorized(
      detail,
      `Bearer realm="bursar", error="invalid_token", error_description="${detail.replaceAll('"', "'")}"`,
    ),
    { cause },
  )
