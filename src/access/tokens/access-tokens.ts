import { decodeJwt, SignJWT, type JWTPayload } from 'jose'
import type { Database } from '../../db/database.ts'
import { forCustomer } from '../../db/parts.ts'
import { invalidToken, type Verified, type VerifyToken } from '../../http/authenticate.ts'
import { uuidsOf } from '../../http/lists.ts'
import type { Caller } from '../../http/operation.ts'
import { isOperatorScope } from '../../contract/scopes.ts'
import type { ExternalIssuer } from './external-issuer.ts'
import { customerIn, scopesIn, verifyJwt } from './jwt.ts'
import { OPERATOR_TOKEN_SECONDS, operatorClaims, operatorOf, type OperatorGrant } from './operator-tokens.ts'
import type { SigningKeys } from './signing-keys.ts'

const CLOCK_TOLERANCE_SECONDS = 5

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
  isTrusted: (verified: Pick<Verified, 'keyId' | 'session'>) => boolean
}

interface IssuedToken {
  token: string
  ttlSeconds: number
}

export interface AccessTokenOptions {
  db: Database
  keys: SigningKeys
  /** This service: the tokens' audience, and their issuer unless an external one is configured. */
  baseUrl: string
  ttlSeconds: number
  /** Issues the tokens of API clients instead of this service. */
  externalIssuer: ExternalIssuer | undefined
}

export function accessTokens({
  db,
  keys,
  baseUrl,
  ttlSeconds,
  externalIssuer,
}: AccessTokenOptions): AccessTokens {
  const sign = async (
    claims: JWTPayload & { sub: string },
    lifetimeSeconds: number,
  ): Promise<IssuedToken> => {
    const issuedAt = Math.floor(Date.now() / 1000)
    const { id: kid, privateKey } = keys.signer
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid })
      .setIssuer(baseUrl)
      .setAudience(baseUrl)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + lifetimeSeconds)
      .setJti(crypto.randomUUID())
      .sign(privateKey)
    return { token, ttlSeconds: lifetimeSeconds }
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
      if (externalIssuer !== undefined && issuerOf(token) !== baseUrl) {
        const { scopes, ...external } = await externalIssuer.verify(token)
        // Bursar's own tokens name existing customers. An external issuer's token may name any id.
        const { rowCount } = await forCustomer(db, external.customerId).query(
          'select 1 from customers where id = $1',
          [external.customerId],
        )
        if (rowCount === 0) throw invalidToken('the access token names a customer that does not exist')
        return { ...external, ...ofClient(external.clientId, scopes) }
      }
      const { payload, protectedHeader } = await verifyJwt(token, keys.keyOf, {
        issuer: baseUrl,
        audience: baseUrl,
        typ: 'at+jwt',
        requiredClaims: ['exp', 'sub', 'customer_id'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        // Requires an iat that is not in the future.
        maxTokenAge: ttlSeconds,
      })
      // Bursar never issues such a token, so its signing key must have leaked.
      if (payload.exp! - payload.iat! > ttlSeconds)
        throw invalidToken('the access token has a longer lifetime than this service issues')
      const customerId = customerIn(payload.customer_id)
      if (customerId === undefined) throw invalidToken('the access token names no customer')
      const verified = { customerId, expiresAt: payload.exp!, keyId: protectedHeader.kid }
      if (payload.operator_id !== undefined)
        return { ...verified, ...(await operatorOf(db, customerId, payload)) }
      if (externalIssuer !== undefined) throw invalidToken('the access token is not valid here')
      await requireEnabledClient(forCustomer(db, customerId), customerId, payload.sub!)
      return { ...verified, ...ofClient(payload.sub!, scopesIn(payload.scope)) }
    },

    isTrusted: ({ keyId, session }) =>
      (externalIssuer !== undefined && session === undefined) ||
      (keyId !== undefined && keys.isTrusted(keyId)),
  }
}

/** An API client, and what it may do: no issuer makes an operator of it. */
const ofClient = (clientId: string, scopes: string[]): Pick<Verified, 'clientId' | 'scopes' | 'actor'> => ({
  clientId,
  scopes: scopes.filter((name) => !isOperatorScope(name)),
  actor: { type: 'API_CLIENT', id: clientId },
})

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
