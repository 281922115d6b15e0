import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey } from 'jose'
import { problem } from '../../contract/problems.ts'
import { invalidToken } from '../../http/authenticate.ts'
import type { Settings } from '../../settings.ts'
import { customerIn, scopesIn, verifyJwt } from './jwt.ts'

const METADATA_TIMEOUT_MS = 5_000
/** Pause after an issuer did not answer. Without it, every anonymous request could cause a call. */
const SILENT_MS = 2_000
/** How long keys go on that an issuer gave before it stopped to answer. */
const KNOWN_MS_MAX = 3_600_000
/** How far the clocks of issuer and service may differ for `nbf`. */
const CLOCK_TOLERANCE_SECONDS = 60
/** The value of BURSAR_OAUTH_AUDIENCE for an issuer whose tokens name none. */
const NO_AUDIENCE = '-'

export interface ExternalToken {
  customerId: string
  clientId: string
  scopes: string[]
  /** In seconds. */
  expiresAt: number
  keyId: string | undefined
}

type OAuthSettings = Pick<
  Settings,
  'oauthAudience' | 'oauthTokenType' | 'oauthCustomerClaim' | 'oauthScopeClaim' | 'oauthScopePrefix'
>

/** Verifies the tokens of an identity provider, as its settings say that it makes them (docs/guides/identity-provider.md). */
export class ExternalIssuer {
  readonly #issuer: string
  readonly #audience: string
  readonly #settings: OAuthSettings
  #keySet: Promise<ReturnType<typeof createRemoteJWKSet>> | undefined
  #silentUntil = 0
  /** The keys that were read last. */
  #known: { keyOf: JWTVerifyGetKey; until: number } | undefined

  constructor(issuer: string, baseUrl: string, settings: OAuthSettings) {
    this.#issuer = issuer
    this.#audience = settings.oauthAudience ?? baseUrl
    this.#settings = settings
  }

  /** Throws the 401 problem for a token that is not for this service, and 503 while the issuer's keys cannot be read. */
  async verify(token: string): Promise<ExternalToken> {
    const { oauthTokenType, oauthCustomerClaim, oauthScopeClaim, oauthScopePrefix } = this.#settings
    const { payload, protectedHeader } = await verifyJwt(token, this.#keyOf, {
      issuer: this.#issuer,
      ...(this.#audience !== NO_AUDIENCE && { audience: this.#audience }),
      ...(oauthTokenType !== 'any' && { typ: oauthTokenType }),
      requiredClaims: ['exp'],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    })
    const other = otherThanAccess(payload)
    if (other !== undefined)
      throw invalidToken('the access token is not valid here', new Error(`"${other}" is of an ID token`))
    const customerId = customerIn(payload[oauthCustomerClaim])
    if (customerId === undefined)
      throw invalidToken(
        'the access token names no customer',
        new Error(`"${oauthCustomerClaim}" is not the id of a customer`),
      )
    const clientId = clientOf(payload)
    if (clientId === undefined)
      throw invalidToken('the access token names no client', new Error(`none of ${CLIENT_CLAIMS.join(', ')}`))
    const claimed = scopesIn(
      oauthScopeClaim === undefined ? (payload.scope ?? payload.scp) : payload[oauthScopeClaim],
    )
    const scopes = claimed.flatMap((name) =>
      name.startsWith(oauthScopePrefix) ? name.slice(oauthScopePrefix.length) : [],
    )
    return { customerId, clientId, scopes, expiresAt: payload.exp!, keyId: protectedHeader.kid }
  }

  /**
   * The keys, found through the metadata at the first token. At most one request for the metadata is under way. While the
   * issuer does not answer, the keys that it gave last go on: a token with a made-up key must not shut out the others.
   */
  readonly #keyOf: JWTVerifyGetKey = async (header, token) => {
    if (performance.now() < this.#silentUntil) return this.#knownKeyOf(header, token)
    try {
      this.#keySet ??= keysAddress(this.#issuer).then((address) => createRemoteJWKSet(new URL(address)))
      const keyOf = await this.#keySet.catch((error: unknown) => {
        this.#keySet = undefined
        throw error
      })
      const key = await keyOf(header, token)
      if (keyOf.fresh)
        this.#known = { keyOf: createLocalJWKSet(keyOf.jwks()!), until: performance.now() + KNOWN_MS_MAX }
      return key
    } catch (error) {
      if (isNoKey(error)) throw error
      this.#silentUntil = performance.now() + SILENT_MS
      return this.#knownKeyOf(header, token, error)
    }
  }

  /** The key among those that the issuer gave last. Throws the 503 problem for another one: the issuer may have it. */
  async #knownKeyOf(...[header, token, cause]: [...Parameters<JWTVerifyGetKey>, unknown?]) {
    const silent = problem.unavailable('the configured token issuer does not answer with its keys', cause)
    if (this.#known === undefined || performance.now() > this.#known.until) throw silent
    try {
      return await this.#known.keyOf(header, token)
    } catch (error) {
      throw isNoKey(error) ? silent : error
    }
  }
}

const isNoKey = (error: unknown): boolean =>
  error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys

/** Claims with the client's id, by provider: RFC 9068, Keycloak and Auth0, Okta, Entra. */
const CLIENT_CLAIMS = ['client_id', 'azp', 'cid', 'appid', 'sub'] as const

const clientOf = (payload: JWTPayload): string | undefined =>
  CLIENT_CLAIMS.map((name) => payload[name]).find((id): id is string => typeof id === 'string' && id !== '')

/**
 * The claim by which a token is none of access. A header `typ` of `at+jwt` says that it is one; where a provider makes no
 * such header, an ID token for another program must not pay here.
 */
function otherThanAccess(payload: JWTPayload): string | undefined {
  const { typ = 'Bearer', token_use = 'access' } = payload
  if (typ !== 'Bearer') return 'typ'
  if (token_use !== 'access') return 'token_use'
  return ['nonce', 'at_hash', 'c_hash'].find((name) => name in payload)
}

/**
 * Reads where an issuer publishes its keys: from its metadata by RFC 8414, or else by OpenID Connect Discovery. Throws an
 * error with what each address answered.
 */
export async function keysAddress(issuer: string): Promise<string> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const told: string[] = []
  for (const address of [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]) {
    const found = await keysIn(address, issuer).catch((error: Error) => error)
    if (!(found instanceof Error)) return found
    told.push(`${address}: ${found.message}`)
  }
  throw new Error(told.join('; '))
}

async function keysIn(address: string, issuer: string): Promise<string> {
  const response = await fetch(address, { signal: AbortSignal.timeout(METADATA_TIMEOUT_MS) })
  if (!response.ok) throw new Error(`${response.status}`)
  const metadata = (await response.json()) as { issuer?: string; jwks_uri?: string }
  // RFC 8414, 3.3: metadata that names another issuer must not be used.
  if (metadata.issuer !== issuer) throw new Error(`it names another issuer, ${metadata.issuer}`)
  if (!URL.canParse(metadata.jwks_uri ?? '')) throw new Error('it names no jwks_uri')
  return metadata.jwks_uri!
}
