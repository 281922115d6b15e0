import { createRemoteJWKSet, errors, jwtVerify, SignJWT, type JWTVerifyGetKey } from 'jose'
import { invalidToken } from '../http/authenticate.ts'
import type { Caller } from '../http/operation.ts'
import { problem } from '../http/problems.ts'
import type { SigningKeys } from './signing-keys.ts'

const CLOCK_TOLERANCE_SECONDS = 5
const METADATA_TIMEOUT_MS = 5_000

/** Issues and verifies access tokens: signed JWTs (RFC 9068), so that any process verifies without a look-up. */
export interface AccessTokens {
  issue(caller: Caller): Promise<{ token: string; expiresAt: Date }>
  /** Throws the 401 problem for a token that is malformed, expired, forged or for another service. */
  verify(token: string): Promise<Caller & { expiresAt: number }>
}

export interface AccessTokenOptions {
  keys: SigningKeys
  /** This service: the tokens' audience, and their issuer unless an external one is configured. */
  baseUrl: string
  ttlSeconds: number
  externalIssuer: string | undefined
}

export function accessTokens({
  keys,
  baseUrl,
  ttlSeconds,
  externalIssuer,
}: AccessTokenOptions): AccessTokens {
  const issuer = externalIssuer ?? baseUrl
  const keySet: JWTVerifyGetKey = externalIssuer === undefined ? keys.keySet : externalKeySet(externalIssuer)

  return {
    async issue({ customerId, clientId, scopes }) {
      const expiresAt = new Date((Math.floor(Date.now() / 1000) + ttlSeconds) * 1000)
      const token = await new SignJWT({
        client_id: clientId,
        customer_id: customerId,
        scope: scopes.join(' '),
      })
        .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: keys.id })
        .setIssuer(issuer)
        .setAudience(baseUrl)
        .setSubject(clientId)
        .setIssuedAt()
        .setExpirationTime(expiresAt)
        .setJti(crypto.randomUUID())
        .sign(keys.privateKey)
      return { token, expiresAt }
    },

    async verify(token) {
      const { payload } = await jwtVerify(token, keySet, {
        issuer,
        audience: baseUrl,
        typ: 'at+jwt',
        algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
        requiredClaims: ['exp', 'sub', 'customer_id'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      }).catch((error: unknown) => {
        if (error instanceof errors.JWTExpired) throw invalidToken('the access token has expired')
        if (error instanceof errors.JOSEError) throw invalidToken('the access token is not valid here')
        throw error
      })
      const { customer_id, client_id, scope } = payload
      if (typeof customer_id !== 'string' || !/^[0-9a-f-]{36}$/.test(customer_id)) {
        throw invalidToken('the access token names no customer')
      }
      return {
        customerId: customer_id,
        clientId: typeof client_id === 'string' ? client_id : payload.sub!,
        scopes: typeof scope === 'string' ? scope.split(' ').filter((name) => name !== '') : [],
        expiresAt: payload.exp!,
      }
    },
  }
}

/** The published keys of an external issuer, found through its metadata (RFC 8414) at the first token. */
function externalKeySet(issuer: string): JWTVerifyGetKey {
  let remote: JWTVerifyGetKey | undefined
  return async (header, token) => {
    if (remote === undefined) {
      const { origin, pathname } = new URL(issuer)
      const path = pathname === '/' ? '' : pathname
      const response = await fetch(`${origin}/.well-known/oauth-authorization-server${path}`, {
        signal: AbortSignal.timeout(METADATA_TIMEOUT_MS),
      }).catch(() => undefined)
      if (!response?.ok) throw problem.unavailable('the configured token issuer does not answer')
      const { jwks_uri } = (await response.json()) as { jwks_uri: string }
      remote = createRemoteJWKSet(new URL(jwks_uri))
    }
    return remote(header, token)
  }
}
