import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { AccessTokens } from '../oauth/access-tokens.ts'
import type { Caller } from './operation.ts'
import { problem } from './problems.ts'
import type { Scope } from './scopes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
  }
}

const VERIFIED_MAX = 10_000

/**
 * Gives the hook that asks for a bearer token with a scope (spec section 5, RFC 6750). A token's signature is
 * checked once in its life by a process, its expiry each time.
 */
export function authenticator(
  tokens: AccessTokens,
): (scope: Scope) => (request: FastifyRequest) => Promise<void> {
  const verified = new LRUCache<string, Caller & { expiresAt: number }>({ max: VERIFIED_MAX })

  async function callerOf(token: string): Promise<Caller> {
    let caller = verified.get(token)
    if (caller === undefined) {
      caller = await tokens.verify(token)
      verified.set(token, caller)
    }
    if (caller.expiresAt * 1000 <= Date.now()) throw invalidToken('the access token has expired')
    return caller
  }

  return (scope) => async (request) => {
    const { authorization } = request.headers
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
    request.caller = await callerOf(token)
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
