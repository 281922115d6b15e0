import {
  createRemoteJWKSet,
  decodeJwt,
  errors,
  jwtVerify,
  SignJWT,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose'
import type { Database } from '../../db/database.ts'
import type { Nodes } from '../../db/nodes.ts'
import { invalidToken, type Verified, type VerifyToken } from '../../http/authenticate.ts'
import { uuidsOf } from '../../http/lists.ts'
import type { Caller } from '../../http/operation.ts'
import { problem } from '../../contract/problems.ts'
import { isOperatorScope } from '../../contract/scopes.ts'
import {
  OPERATOR_TOKEN_SECONDS,
  operatorClaims,
  operatorOf,
  scopesIn,
  type OperatorGrant,
} from './operator-tokens.ts'
import type { SigningKeys } from './signing-keys.ts'

const CLOCK_TOLERANCE_SECONDS = 5
const METADATA_TIMEOUT_MS = 5_000
/** Pause after an external issuer did not answer. Without it, every anonymous request could cause a call. */
const ISSUER_SILENT_MS = 2_000

/**
 * Issues and verifies access tokens: signed JWTs (RFC 9068), whose signature any process verifies without a look-up.
 * `verify` also reads whether the token's customer, client or session still exists and is enabled.
 */
export interface AccessTokens {
  issue(caller: Pick<Caller, 'customerId' | 'clientId' | 'scopes'>): Promise<IssuedToken>
  /** Issues a token of an operator, also where an external issuer makes the tokens of API clients. */
  issueToOperator(grant: OperatorGrant): Promise<IssuedToken>
  /** Throws the 401 problem for a token that is malformed, expired, forged or for another service. */
  verify: VerifyToken
  /** Whether the key that signed a verified token is still trusted. */
  isTrusted: (verified: Pick<Verified, 'keyId' | 'session'>) => boolean
}

interface IssuedToken {
  token: string
  ttlSeconds: number
}

export interface AccessTokenOptions {
  nodes: Nodes
  keys: SigningKeys
  /** This service: the tokens' audience, and their issuer unless an external one is configured. */
  baseUrl: string
  ttlSeconds: number
  externalIssuer: string | undefined
}

export function accessTokens({
  nodes,
  keys,
  baseUrl,
  ttlSeconds,
  externalIssuer,
}: AccessTokenOptions): AccessTokens {
  const issuer = externalIssuer ?? baseUrl
  const isOurs = externalIssuer === undefined
  const keySet: JWTVerifyGetKey = isOurs ? keys.keyOf : externalKeySet(externalIssuer)

  const sign = async (claims: JWTPayload & { sub: string }, ttlSeconds: number): Promise<IssuedToken> => {
    const issuedAt = Math.floor(Date.now() / 1000)
    const { id: kid, privateKey } = keys.signer
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid })
      .setIssuer(baseUrl)
      .setAudience(baseUrl)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ttlSeconds)
      .setJti(crypto.randomUUID())
      .sign(privateKey)
    return { token, ttlSeconds }
  }

  return {
    issue: ({ customerId, clientId, scopes }) =>
      sign(
        { sub: clientId, client_id: clientId, customer_id: customerId, scope: scopes.join(' ') },
        ttlSeconds,
      ),

    issueToOperator: (grant) =>
      sign(operatorClaims(grant), Math.min(OPERATOR_TOKEN_SECONDS, ttlSeconds, grant.secondsLeft)),

    async verify(token) {
      // Bursar itself issues the tokens of operators, whoever issues those of API clients.
      const fromUs = isOurs || issuerOf(token) === baseUrl
      const { payload, protectedHeader } = await jwtVerify(token, fromUs ? keys.keyOf : keySet, {
        issuer: fromUs ? baseUrl : issuer,
        audience: baseUrl,
        typ: 'at+jwt',
        algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
        requiredClaims: ['exp', 'sub', 'customer_id'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        // Requires an iat that is not in the future. An external issuer sets its own token lifetime.
        ...(fromUs && { maxTokenAge: ttlSeconds }),
      }).catch((error: unknown) => {
        if (error instanceof errors.JWTExpired) throw invalidToken('the access token has expired')
        if (error instanceof errors.JOSEError) throw invalidToken('the access token is not valid here')
        throw error
      })
      const { customer_id, client_id, scope } = payload
      // Bursar never issues such a token, so its signing key must have leaked.
      if (fromUs && payload.exp! - payload.iat! > ttlSeconds)
        throw invalidToken('the access token has a longer lifetime than this service issues')
      const [customerId] = typeof customer_id === 'string' ? uuidsOf([customer_id.toLowerCase()])! : []
      if (customerId === undefined) throw invalidToken('the access token names no customer')
      const verified = { customerId, expiresAt: payload.exp!, keyId: protectedHeader.kid }
      if (fromUs && payload.operator_id !== undefined)
        return { ...verified, ...(await operatorOf(nodes.shared, customerId, payload)) }
      if (fromUs !== isOurs) throw invalidToken('the access token is not valid here')
      // Bursar's own tokens name existing customers. An external issuer's token may name any id.
      if (!fromUs) {
        const { rowCount } = await nodes
          .of(customerId)
          .query('select 1 from customers where id = $1', [customerId])
        if (rowCount === 0) throw invalidToken('the access token names a customer that does not exist')
      }
      const clientId = typeof client_id === 'string' ? client_id : payload.sub!
      if (fromUs) await requireEnabledClient(nodes.of(customerId), customerId, clientId)
      return {
        ...verified,
        clientId,
        scopes: scopesIn(scope).filter((name) => !isOperatorScope(name)),
        actor: { type: 'API_CLIENT', id: clientId },
      }
    },

    isTrusted: ({ keyId, session }) =>
      (!isOurs && session === undefined) || (keyId !== undefined && keys.isTrusted(keyId)),
  }
}

/** The issuer that an unverified token names. */
function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/**
 * Throws the 401 problem unless the client exists and is enabled. A database restored from a backup may lack clients that
 * hold tokens, and a new process has not read the disabled clients yet.
 */
async function requireEnabledClient(db: Database, customerId: string, clientId: string): Promise<void> {
  const { rows } = await db.query<{ is_enabled: boolean }>(
    'select disabled_at is null as is_enabled from api_clients where customer_id = $1 and id = any ($2::uuid[])',
    [customerId, uuidsOf([clientId.toLowerCase()])],
  )
  if (rows[0] === undefined) throw invalidToken('the access token names an API client that does not exist')
  if (!rows[0].is_enabled) throw invalidToken('the API client of the access token is disabled')
}

/**
 * The published keys of an external issuer, found through its metadata (RFC 8414) at the first token. At most one request
 * for the metadata is under way, and none is sent for a while after a failure.
 */
function externalKeySet(issuer: string): JWTVerifyGetKey {
  let remote: Promise<JWTVerifyGetKey> | undefined
  let silentUntil = 0
  const silent = () => problem.unavailable('the configured token issuer does not answer with its keys')
  return async (header, token) => {
    if (performance.now() < silentUntil) throw silent()
    try {
      remote ??= jwksAddress(issuer).then((address) => createRemoteJWKSet(address))
      const keyOf = await remote.catch((error: unknown) => {
        remote = undefined
        throw error
      })
      return await keyOf(header, token)
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
        throw error
      silentUntil = performance.now() + ISSUER_SILENT_MS
      throw silent()
    }
  }
}

async function jwksAddress(issuer: string): Promise<URL> {
  const { origin, pathname } = new URL(issuer)
  const response = await fetch(
    `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, '')}`,
    { signal: AbortSignal.timeout(METADATA_TIMEOUT_MS) },
  )
  const metadata = (await response.json()) as { issuer?: string; jwks_uri?: string }
  // RFC 8414, 3.3: metadata that names another issuer must not be used.
  if (metadata.issuer !== issuer) throw new Error(`the metadata of ${issuer} names ${metadata.issuer}`)
  return new URL(metadata.jwks_uri ?? '')
}
