import { once } from 'node:events'
import { createServer } from 'node:http'
import Provider, { type Configuration } from 'oidc-provider'
import { freePort } from './free-port.ts'

interface RunningProvider {
  issuer: string
  close: () => void
}

/** Starts a real OpenID provider, which signs in everybody under the name that they type. */
export const startOpenIdProvider = (redirectUri: string): Promise<RunningProvider> =>
  start({
    clients: [
      {
        client_id: 'bursar',
        token_endpoint_auth_method: 'none',
        redirect_uris: [redirectUri],
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    pkce: { required: () => true },
    cookies: { keys: ['for the test'] },
  })

/** Starts a provider that gives its client `shop` tokens for this service, which name a customer. */
export const startTokenProvider = (
  service: string,
  scope: string,
  customerId: () => string,
): Promise<RunningProvider> =>
  start({
    clients: [
      {
        ...{ client_id: 'shop', client_secret: 'of the test', redirect_uris: [], response_types: [] },
        grant_types: ['client_credentials'],
      },
    ],
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => service,
        getResourceServerInfo: () => ({ scope, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } }),
      },
    },
    extraTokenClaims: () => ({ customer_id: customerId() }),
    cookies: { keys: ['for the test'] },
  })

async function start(configuration: Configuration): Promise<RunningProvider> {
  const issuer = `http://127.0.0.1:${await freePort()}`
  const provider = new Provider(issuer, configuration)
  const server = createServer((request, reply) => void provider.callback()(request, reply))
  server.listen(Number(new URL(issuer).port), '127.0.0.1')
  await once(server, 'listening')
  return {
    issuer,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
