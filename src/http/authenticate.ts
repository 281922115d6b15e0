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

/** The longest access token. Ours have 1 KiB with every scope. */
const TOKEN_LENGTH_MAX = 4_096
/** The longest header that is looked at: the scheme, as many spaces as RFC 9110 allows, but not endlessly, the token. */
const AUTHORIZATION_LENGTH_MAX = TOKEN_LENGTH_MAX + 64
/** Most tokens that are known at once, and roughly how many bytes they may take. */
const VERIFIED_MAX = 10_000
const VERIFIED_BYTES_MAX = 16 * 1024 * 1024
/** How long a signature counts as checked: a key that is retired is not believed for longer than this. */
const VERIFIED_MS_MAX = 60_000
const SCHEME = 'Bearer '
const LAST = Symbol('the caller of the last request on a connection')

/** Whose token it is, until when it is good (in seconds since 1970), and the key that signed it. */
export type Verified = Caller & { expiresAt: number; keyId?: string | undefined }
interface Known extends Verified {
  /** When its signature is checked again, in milliseconds since 1970. */
  until: number
}
/** Most connections send one header again and again: to compare it takes a tenth of the 3 us of hashing and looking up. */
type Socket = FastifyRequest['raw']['socket'] & { [LAST]?: { authorization: string; caller: Known } }

/** Says whose token it is. Throws the 401 problem for one that is not good here. */
export type VerifyToken = (token: string) => Promise<Verified>

/** Which API clients and customers are disabled, as this process knows it. */
export interface Standing {
  /** Throws the 401 problem for a caller whose client or customer is disabled. */
  requireEnabled: (caller: Caller) => void
  /** Throws the 503 problem when that is not known for sure at this moment. */
  requireKnown: () => void
}

/** Sets `request.caller`, at once where the token is known; throws the refusal, or rejects with it. */
export type Authenticate = (request: FastifyRequest) => Promise<void> | undefined

/**
 * Asks for a bearer token with one of these scopes (API behaviour, Access tokens; RFC 6750). A process checks a token's
 * signature once a minute, its expiry and whether its key is still good each time.
 */
export function authenticator(
  tokens: {
    verify: VerifyToken
    isTrusted: (verified: Verified) => boolean
  },
  standing: Standing,
): (scopes: readonly Scope[]) => Authenticate {
  // By the hash of the token: an entry has the same size however the header was written.
  const verified = new LRUCache<string, Known>({
    max: VERIFIED_MAX,
    maxSize: VERIFIED_BYTES_MAX,
    sizeCalculation: bytesOf,
  })

  const isCurrent = (known: Known, now: number) => known.until > now && tokens.isTrusted(known)

  function knownCaller(token: string, now: number): Known | undefined {
    const found = verified.get(keyOf(token))
    return found !== undefined && isCurrent(found, now) ? found : undefined
  }

  async function callerOf(authorization: string | undefined, now: number): Promise<Known> {
    if (authorization === undefined) {
      throw problem.unauthorized('the Authorization header is missing', 'Bearer realm="bursar"')
    }
    if (authorization.length > AUTHORIZATION_LENGTH_MAX) {
      throw problem.unauthorized(
        `the Authorization header has more than ${AUTHORIZATION_LENGTH_MAX} characters`,
        'Bearer realm="bursar", error="invalid_request"',
      )
    }
    // As nearly all clients write it: the header is not taken apart for a token that is known.
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
    verified.set(keyOf(token), caller)
    return caller
  }

  function admit(request: FastifyRequest, caller: Known, now: number, scopes: readonly Scope[]): undefined {
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

/** The hook of a route. What is known needs no promise, which took 1 % of a withdrawal. */
export const hookOf =
  (authenticate: Authenticate): onRequestHookHandler =>
  (request, _reply, done) => {
    const waiting = authenticate(request)
    if (waiting === undefined) done()
    else waiting.then(() => done(), done)
  }

const keyOf = (token: string) => hash('sha256', token, 'base64')

/** Roughly what an entry takes in memory, in bytes. An external issuer may give any number of scopes. */
const bytesOf = ({ clientId, scopes }: Caller) =>
  400 + 2 * clientId.length + scopes.reduce((sum, scope) => sum + 40 + 2 * scope.length, 0)

/** The refusal of a token that is expired, forged or somebody else's. */
export const invalidToken = (detail: string) =>
  problem.unauthorized(
    detail,
    `Bearer realm="bursar", error="invalid_token", error_description="${detail.replaceAll('"', "'")}"`,
  )
