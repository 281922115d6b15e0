import formbody from '@fastify/formbody'
import multipart from '@fastify/multipart'
import OAuth2Server from '@node-oauth/oauth2-server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Database } from '../db/database.ts'
import { SCOPES } from '../http/scopes.ts'
import type { AccessTokens } from './access-tokens.ts'
import { findApiClient, type ApiClient } from './api-clients.ts'
import type { SigningKeys } from './signing-keys.ts'

const TOKEN_PATH = '/oauth2/token'
const JWKS_PATH = '/oauth2/jwks'
const METADATA_PATH = '/.well-known/oauth-authorization-server'

export interface OAuthOptions {
  db: Database
  keys: SigningKeys
  tokens: AccessTokens
  baseUrl: string
}

/**
 * The token endpoint for the client credentials grant (RFC 6749, 4.4), the keys (RFC 7517) and the metadata
 * (RFC 8414). Spec section 5; the addresses and formats are design section 5.
 */
export async function oauthRoutes(
  app: FastifyInstance,
  { db, keys, tokens, baseUrl }: OAuthOptions,
): Promise<void> {
  const server = oauthServer(db, tokens)
  await app.register(formbody)
  // Some clients send the form as multipart; it has a handful of short fields and no files.
  await app.register(multipart, { attachFieldsToBody: 'keyValues', limits: { fields: 10, files: 0 } })

  app.post(TOKEN_PATH, { schema: { hide: true } }, async (request, reply) => {
    const response = new OAuth2Server.Response({ headers: {} })
    try {
      await server.token(new OAuth2Server.Request(tokenRequest(request)), response)
    } catch (error) {
      if (!(error instanceof OAuth2Server.OAuthError) || error.code >= 500) throw error
      if (response.status === 200) response.status = error.code
      response.body = { error: error.name, error_description: error.message }
    }
    return answer(reply, response)
  })

  app.get(JWKS_PATH, { schema: { hide: true } }, async () => keys.jwks)

  app.get(METADATA_PATH, { schema: { hide: true } }, async () => ({
    issuer: baseUrl,
    token_endpoint: `${baseUrl}${TOKEN_PATH}`,
    jwks_uri: `${baseUrl}${JWKS_PATH}`,
    scopes_supported: SCOPES,
    response_types_supported: [],
    grant_types_supported: ['client_credentials'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  }))
}

/** The protocol is the library's; who the clients are and what a token looks like is ours. */
function oauthServer(db: Database, tokens: AccessTokens): OAuth2Server {
  const model: OAuth2Server.ClientCredentialsModel = {
    async getClient(clientId, clientSecret) {
      const client = await findApiClient(db, clientId, clientSecret ?? '')
      return client && { ...client, grants: ['client_credentials'] }
    },
    getUserFromClient: async (client) => ({ customer_id: (client as unknown as ApiClient).customer_id }),
    async validateScope(_user, client, scope) {
      const { scopes } = client as unknown as ApiClient
      if (scope === undefined || scope.length === 0) return scopes
      return scope.every((name) => scopes.includes(name)) ? scope : false
    },
    async saveToken(token, client, user) {
      const { customer_id, id } = client as unknown as ApiClient
      const issued = await tokens.issue({ customerId: customer_id, clientId: id, scopes: token.scope ?? [] })
      return { ...token, accessToken: issued.token, accessTokenExpiresAt: issued.expiresAt, client, user }
    },
    // Resource requests are verified by http/authenticate.ts; the library has no part in them.
    getAccessToken: async () => undefined,
  }
  return new OAuth2Server({ model, requireClientAuthentication: { client_credentials: true } })
}

function tokenRequest(request: FastifyRequest) {
  const { 'transfer-encoding': _, ...headers } = request.headers as Record<string, string>
  if (headers['content-type']?.startsWith('multipart/form-data')) {
    headers['content-type'] = 'application/x-www-form-urlencoded'
  }
  return { method: request.method, headers, query: {}, body: request.body ?? {} }
}

function answer(reply: FastifyReply, response: OAuth2Server.Response) {
  return reply
    .status(response.status ?? 200)
    .headers({ ...response.headers, 'cache-control': 'no-store', pragma: 'no-cache' })
    .send(response.body)
}
