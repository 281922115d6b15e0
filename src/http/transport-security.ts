import type { Settings } from '../settings.ts'

/** sslmode values with which a connection to the database is always encrypted (docs/guides/operating.md). */
const VERIFIED = new Set(['require', 'verify-ca', 'verify-full'])

/** Whether a host is this machine. */
export const isHere = (host: string): boolean =>
  host === '' ||
  host === 'localhost' ||
  host.endsWith('.localhost') ||
  host.startsWith('/') ||
  /^\[?(?:::1|(?:::ffff:)?127\.[\d.]+)\]?$/.test(host)

/** An unencrypted connection in live mode, and how to fix it. */
export interface PlainTransport {
  setting: 'DATABASE_URL' | 'BURSAR_BASE_URL' | 'BURSAR_OAUTH_ISSUER'
  says: string
  advice: string
}

/**
 * Finds the unencrypted connections of live mode: the API or the token issuer over http, or a database on another machine
 * without TLS. Connections within this machine need no TLS, and neither does a sandbox.
 */
export function plainTransports({ mode, baseUrl, oauthIssuer, databaseUrl }: Settings): PlainTransport[] {
  if (mode !== 'live') return []
  const found: PlainTransport[] = []
  for (const [setting, address, what] of [
    ['BURSAR_BASE_URL', baseUrl, 'clients send their secrets and tokens'],
    ['BURSAR_OAUTH_ISSUER', oauthIssuer, 'the keys that tokens are checked with come'],
  ] as const)
    if (address !== undefined && new URL(address).protocol === 'http:' && !isHere(new URL(address).hostname))
      found.push({
        setting,
        says: `${setting} begins with http: ${what} unencrypted`,
        advice: `serve it with TLS, and begin ${setting} with https`,
      })
  if (databaseUrl !== undefined) {
    const { hostname, searchParams } = new URL(databaseUrl)
    const host = searchParams.get('host') ?? hostname
    if (!isHere(decodeURIComponent(host)) && !VERIFIED.has(searchParams.get('sslmode') ?? ''))
      found.push({
        setting: 'DATABASE_URL',
        says: `the database is on another machine (${host}), and DATABASE_URL asks for no TLS`,
        advice: 'add ?sslmode=verify-full&sslrootcert=<file> to DATABASE_URL',
      })
  }
  return found
}
