import { warnings, type Finding } from '../finding.ts'
import type { Settings } from '../settings.ts'

/** sslmode values with which a connection to the database is always encrypted (docs/guides/operating.md). */
const VERIFIED = new Set(['require', 'verify-ca', 'verify-full'])

export const isHere = (host: string): boolean =>
  host === '' ||
  host === 'localhost' ||
  host.endsWith('.localhost') ||
  host.startsWith('/') ||
  /^\[?(?:::1|(?:::ffff:)?127\.[\d.]+)\]?$/.test(host)

/**
 * Warns of the unencrypted connections of live mode: the API or the token issuer over http, or a database on another machine
 * without TLS. Connections within this machine need no TLS, and neither does a sandbox.
 */
export function plainTransports({ mode, baseUrl, oauthIssuer, databaseUrl }: Settings): Finding[] {
  if (mode !== 'live') return []
  const isPlain = (address = 'https://x') =>
    new URL(address).protocol === 'http:' && !isHere(new URL(address).hostname)
  const http = (setting: string, address: string | undefined, what: string) =>
    warnings([
      isPlain(address),
      `${setting} begins with http: ${what} unencrypted`,
      `serve it with TLS, and begin ${setting} with https`,
    ])
  const { hostname, searchParams } = new URL(databaseUrl ?? 'postgres://localhost')
  const host = searchParams.get('host') ?? hostname
  return [
    ...http('BURSAR_BASE_URL', baseUrl, 'clients send their secrets and tokens'),
    ...http('BURSAR_OAUTH_ISSUER', oauthIssuer, 'the keys that tokens are checked with come'),
    ...warnings([
      !isHere(decodeURIComponent(host)) && !VERIFIED.has(searchParams.get('sslmode') ?? ''),
      `the database is on another machine (${host}), and DATABASE_URL asks for no TLS`,
      'add ?sslmode=verify-full&sslrootcert=<file> to DATABASE_URL',
    ]),
  ]
}
