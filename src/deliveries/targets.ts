import { BlockList, isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export interface TargetRules {
  /** Live mode allows HTTPS only, and global unicast addresses only. A sandbox delivers everywhere. */
  live: boolean
  /** Networks that live mode allows besides: BURSAR_WEBHOOK_ALLOWED_NETWORKS. */
  allowed: BlockList
  /** Whether `allowed` has any network. A name of the operator's own network is then possible. */
  hasAllowed: boolean
}

export function targetRules({
  mode,
  webhookAllowedNetworks = '',
}: {
  mode: 'sandbox' | 'live'
  webhookAllowedNetworks?: string | undefined
}): TargetRules {
  const allowed = new BlockList()
  const networks = webhookAllowedNetworks
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
    allowed.addSubnet(address, prefix === undefined ? (family === 'ipv4' ? 32 : 128) : Number(prefix), family)
  }
  return { live: mode === 'live', allowed, hasAllowed: networks.length > 0 }
}

/** The addresses that IANA has given out for global unicast. The library calls every IPv6 address without another use unicast. */
const GLOBAL_UNICAST_6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Returns why deliveries must not connect to this IP address, or undefined. Only global unicast addresses are allowed:
 * no loopback, private, link-local, CGNAT, multicast, documentation or reserved ones, and no IPv6 address that carries an
 * IPv4 address (mapped, NAT64, 6to4, Teredo). The allow-list applies to a mapped address as to its IPv4 address.
 */
export function faultOfAddress(address: string, { live, allowed }: TargetRules): string | undefined {
  if (!live) return undefined
  if (isIP(address) === 0 || address.includes('%')) return `${address} is not an IP address`
  const plain = ipaddr.process(address)
  if (allowed.check(plain.toString(), plain.kind())) return undefined
  const given = ipaddr.parse(address)
  const range = given.range()
  const isGlobal = range === 'unicast' && (given.kind() === 'ipv4' || given.match(GLOBAL_UNICAST_6))
  if (isGlobal) return undefined
  return `${address} is not a public address (${range === 'unicast' ? 'unassigned' : range})`
}

/** Names that never mean a public host (RFC 6761, RFC 6762, RFC 8375, and ICANN's reservation of .internal). */
const PRIVATE_NAME = /(^|\.)(localhost|local|internal|home\.arpa|onion|invalid|test)\.?$/

export const isPublicName = (name: string): boolean =>
  name.replace(/\.$/, '').includes('.') && !PRIVATE_NAME.test(name)

/**
 * Returns why this URL cannot be an endpoint or a token endpoint, or undefined. The URL parser turns every form of an
 * IPv4 address (2130706433, 0x7f.1, full-width digits) into its four numbers. A name is resolved at each attempt only.
 */
export function faultOfTarget(text: string, rules: TargetRules): string | undefined {
  if (!URL.canParse(text)) return 'is not a URL'
  const { protocol, hostname, username, password, hash, port } = new URL(text)
  if (protocol !== 'https:' && (rules.live || protocol !== 'http:'))
    return rules.live ? 'must begin with https://' : 'must begin with https:// or http://'
  if (username !== '' || password !== '') return 'must have no user and no password'
  if (hash !== '' || text.includes('#')) return 'must have no # part'
  if (port === '0') return 'must not have port 0'
  const address = literalAddress(hostname)
  if (address !== undefined) return faultOfAddress(address, rules)
  const name = hostname.replace(/\.$/, '')
  if (!isHostname(name)) return `${hostname} is not a host name`
  if (rules.live && !rules.hasAllowed && !isPublicName(name)) return `${hostname} is not a public name`
  return undefined
}

/** Returns the address of a URL's host that is an address, not a name; undefined for a name. */
function literalAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(bare) === 0 ? undefined : bare
}

const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/
const NAME_CHARACTERS_MAX = 253

const isHostname = (name: string): boolean =>
  name.length <= NAME_CHARACTERS_MAX && name.split('.').every((label) => LABEL.test(label))
