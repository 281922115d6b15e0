import type { FastifyRequest } from 'fastify'

const LOOPBACK_ADDRESS = /^(?:::ffff:)?127\.|^::1$/
const LOOPBACK_NAME = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/

/**
 * Whether a sandbox that only its own machine can reach got this request: then it needs no proof to act as the demo
 * customer. The name in the address is checked, too: a page elsewhere could let its own name point to this machine.
 */
export function isOfOwnMachine(
  { ip, headers }: FastifyRequest,
  { mode, host, trustedProxies }: { mode: string; host: string; trustedProxies: unknown },
): boolean {
  const isLocal = host === 'localhost' || LOOPBACK_ADDRESS.test(host)
  if (mode !== 'sandbox' || !isLocal || trustedProxies !== undefined) return false
  return LOOPBACK_ADDRESS.test(ip) && LOOPBACK_NAME.test(headers.host ?? '')
}
