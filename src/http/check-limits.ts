import { orElse, warnings, type Finding } from '../finding.ts'
import type { Settings } from '../settings.ts'
import { CONNECTIONS_FEW, connectionsMax, descriptorsMax } from './connections.ts'

/** Warns of settings of a live deployment that make denial of service easy (docs/guides/operating.md, "Limits"). */
export function checkLimits(settings: Settings): Finding[] {
  const { rateLimitPerSecond, customerRateLimitPerSecond, docs, baseUrl, trustedProxies } = settings
  const connections = connectionsMax(settings.databaseConnections, descriptorsMax())
  const found = warnings(
    [
      rateLimitPerSecond === 0,
      'clients have no rate limit: a stolen token can fill the disk',
      'set BURSAR_RATE_LIMIT_PER_SECOND',
    ],
    [
      rateLimitPerSecond > 0 && customerRateLimitPerSecond === 0,
      'customers have no rate limit: one with many clients can take the whole process',
      'remove BURSAR_CUSTOMER_RATE_LIMIT_PER_SECOND, or raise it',
    ],
    [
      settings.tokenFailuresPerMinute === 0,
      'failed token requests have no limit',
      'raise BURSAR_TOKEN_FAILURES_PER_MINUTE, or remove it',
    ],
    [
      settings.connectionsPerAddress === 0,
      'one address may take all connections',
      'raise BURSAR_CONNECTIONS_PER_ADDRESS, or remove it',
    ],
    [
      connections < CONNECTIONS_FEW,
      `the limit of open files leaves only ${connections} connections for clients`,
      'raise it for the service (ulimit -n)',
    ],
    [docs, '/docs is public', 'remove BURSAR_DOCS'],
    [
      trustedProxies?.split(',').some((proxy) => proxy.trim().endsWith('/0')) === true,
      'every address is a trusted proxy: limits by address have no effect',
      'name only the proxy in BURSAR_TRUSTED_PROXIES',
    ],
    // Bursar itself has no TLS, so an https address means there is a proxy.
    [
      baseUrl?.startsWith('https:') === true && trustedProxies === undefined,
      'all requests seem to come from the proxy, so all clients share one limit by address',
      'name the proxy in BURSAR_TRUSTED_PROXIES',
    ],
  )
  return orElse(found, 'clients and addresses have limits')
}
