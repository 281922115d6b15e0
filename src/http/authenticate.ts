import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Caller } from './operation.ts'
import { problem } from './problems.ts'
import type { Scope } from './scopes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
  }
}

const VERIFIED_MAX = 10_000

/** Says whose token it is. Throws the 401 problem for one that is not good here. `expiresAt` is in seconds. */
export type VerifyToken = (token: string) => Promise<Caller & { expiresAt: number }>

/**
 * Gives the hook that asks for a bearer token with a scope (spec section 5, RFC 6750). A token's signature is
 * checked once in its life by a process, its expiry each time.
 */
export function authenticator(tokens: {
  verify: VerifyToken
}): (scope: Scope) => (request: FastifyRequest) => Promise<void> {
  // By the whole header, so that a known one is taken apart no more.
  const verified = new LRUCache<string, Caller & { expiresAt: number }>({ max: VERIFIED_MAX })

  async function verify(authorization: string | undefined): Promise<Caller & { expiresAt: number }> {
    if (authorization === undefined) {
      throw problem.unauthorized('the Authorization header is missing', 'Bearer realm="bursar"')
    }
    const [, token] = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization) ?? []
    if (token === undefined) {
      throw problem.unauthorized(
        'the Authorization header must be: Bearer <access token>',
        'Bearer realm="bursar", error="invalid_request"',
      )
    }
    const caller = await tokens.verify(token)
    verified.set(authorization, caller)
    return caller
  }

  return (scope) => async (request) => {
    const { authorization } = request.headers
    const caller = verified.get(authorization ?? '') ?? (await verify(authorization))
    if (caller.expiresAt * 1000 <= Date.now()) throw invalidToken('the access token has expired')
    request.caller = caller
    if (!request.caller.scopes.includes(scope)) {
      const found = request.caller.scopes.join(' ')
      throw problem.forbidden(
        `the access token lacks a scope: required ${scope}, found ${found === '' ? 'none' : found}`,
        { required_scope: scope, found_scopes: [...request.caller.scopes] },
        { 'www-authenticate': `Bearer realm="bursar", error="insufficient_scope", scope="${scope}"` },
      )
    }
  }
}

/** The refusal of a token that is expired, forged or somebody else's. */
export const invalidToken = (detail: string) =>
  problem.unauthorized(
    detail,
    `Bearer realm="bursar", error="invalid_token", error_description="${detail.replaceAll('"', "'")}"`,
  )
