import { once } from 'node:events'
import { createServer } from 'node:http'
import Provider from 'oidc-provider'
import { freePort } from './free-port.ts'

/** Starts a real OpenID provider, which signs in everybody under the name that they type. */
export async function startOpenIdProvider(
  redirectUri: string,
): Promise<{ issuer: string; close: () => void }> {
  const issuer = `http://127.0.0.1:${await freePort()}`
  const provider = new Provider(issuer, {
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
