import { lookup, type LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { isPublicName, type TargetRules } from './targets.ts'

export type Resolve = (
  name: string,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** A server of the DNS is asked twice: for 1 s, then for 2 s. */
const ANSWER_MS_MAX = 1_000
const TRIES = 2
/** All servers together have this long: a connection has 5 s. */
const LOOKUP_MS_MAX = 4_500

/**
 * Returns how the names of targets are resolved. Public names go to the DNS servers directly. The system's own function
 * (getaddrinfo) blocks one of the two threads that Node has for it until the servers answer. Two names whose servers never
 * answer would hold up every other name that the process looks up, such as those of nodes and of the database. getaddrinfo
 * resolves the names of the operator's own network, which may be in /etc/hosts: in a sandbox, and with an allow-list.
 * `servers` replace the system's DNS servers.
 */
export function resolverFor(rules: TargetRules, servers?: readonly string[]): Resolve {
  return (name, done) => {
    if (!rules.live || !isPublicName(name)) return lookup(name, { all: true }, done)
    askServers(name, servers).then(
      (addresses) => done(null, addresses),
      (error: NodeJS.ErrnoException) => done(error, []),
    )
  }
}

/** Throws the DNS error when a name has neither an IPv4 nor an IPv6 address. */
async function askServers(name: string, servers: readonly string[] | undefined): Promise<LookupAddress[]> {
  // Each lookup has its own resolver: it uses the DNS servers of the moment, and can be cancelled alone.
  const resolver = new Resolver({ timeout: ANSWER_MS_MAX, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  const limit = setTimeout(() => resolver.cancel(), LOOKUP_MS_MAX)
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  clearTimeout(limit)
  const found = [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ]
  if (found.length === 0 && four.status === 'rejected') throw four.reason as Error
  return found
}
