import type { FastifyInstance } from 'fastify'
import type { Database } from '../../db/database.ts'
import { SCOPES } from '../../contract/scopes.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import type { AccessTokens } from './access-tokens.ts'
import { ApiClients } from './find-api-client.ts'
import type { SigningKeys } from './signing-keys.ts'
import { GRANT_TYPE, TOKEN_PATH, tokenEndpoint } from './token-endpoint.ts'

const JWKS_PATH = '/oauth2/jwks'
const METADATA_PATH = '/.well-known/oauth-authorization-server'

export interface OAuthOptions {
  db: Database
  keys: SigningKeys
  tokens: AccessTokens
  baseUrl: string
  failuresPerMinute: number
  macs: RowMacs
  requireRateOfToken: RateLimit['requireRateOfToken']
}

/** The token endpoint, the keys (RFC 7517) and the metadata (RFC 8414). API behaviour, Access tokens. */
export async function oauthRoutes(
  app: FastifyInstance,
  { db, keys, tokens, baseUrl, failuresPerMinute, macs, requireRateOfToken }: OAuthOptions,
): Promise<void> {
  await app.register(tokenEndpoint, {
    clients: new ApiClients(db, macs),
    tokens,
    failuresPerMinute,
    requireRateOfToken,
  })

  app.get(JWKS_PATH, { schema: { hide: true } }, async () => keys.jwks)

  app.get(METADATA_PATH, { schema: { hide: true } }, async () => ({
    issuer: baseUrl,
    token_endpoint: `${baseUrl}${TOKEN_PATH}`,
    jwks_uri: `${baseUrl}${JWKS_PATH}`,
    scopes_supported: SCOPES,
    response_types_supported: [],
    grant_types_supported: [GRANT_TYPE],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  }))
}
