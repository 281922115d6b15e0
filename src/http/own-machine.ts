import { timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

const LOOPBACK_ADDRESS = /^(?:::ffff:)?127\.|^::1$/
const LOOPBACK_NAME = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d+))?$/
/** What proxies add to a request. Some add none of these, so their absence alone proves nothing. */
const OF_PROXY = /^(?:forwarded|via|x-real-ip|x-forwarded-.*)$/
const HTTP_PORT = '80'
/** In characters of base64url: 128 bits. */
const KEY_LENGTH = 22

interface Settings {
  mode: string
  host: string
  trustedProxies: unknown
}

/**
 * Recognises the person at the machine of a sandbox, who needs no sign-in to act as the demo customer. The proof is a key in
 * the addresses that the start prints: a browser that opens one gets a cookie. With a proxy on this machine, anybody's
 * requests come from here, so address and Host alone are no proof.
 */
export class OwnMachine {
  /** Undefined: other machines may reach the service, or the money is real. */
  readonly #key: string | undefined

  /** `secret` is a key that is derived from the master key for this purpose. */
  constructor({ mode, host, trustedProxies }: Settings, secret: Buffer) {
    const isLocal = host === 'localhost' || LOOPBACK_ADDRESS.test(host)
    if (mode === 'sandbox' && isLocal && trustedProxies === undefined)
      this.#key = secret.toString('base64url').slice(0, KEY_LENGTH)
  }

  /** The address of a page with the key, where there is one. */
  addressOf(page: string): string {
    return this.#key === undefined ? page : `${page}?key=${this.#key}`
  }

  /** Sets the cookie where the address of a page has the key. */
  remember(request: FastifyRequest, reply: FastifyReply): void {
    const { key } = request.query as { key?: unknown }
    if (typeof key === 'string' && this.#isKey(key) && isDirect(request))
      reply.header('set-cookie', `${cookieOf(request)}=${key}; Path=/; HttpOnly; SameSite=Strict`)
  }

  /** Whether the browser of that person sent this request, from a page of this service. */
  sent(request: FastifyRequest): boolean {
    const { headers, method } = request
    const isOwnPage =
      headers.origin === undefined ? method === 'GET' : headers.origin === `http://${headers.host}`
    if (!isOwnPage || !isDirect(request)) return false
    const cookies = (headers.cookie ?? '').split(/; */)
    const prefix = `${cookieOf(request)}=`
    return cookies.some((cookie) => cookie.startsWith(prefix) && this.#isKey(cookie.slice(prefix.length)))
  }

  #isKey(given: string): boolean {
    const [key, other] = [Buffer.from(this.#key ?? ''), Buffer.from(given)]
    return key.length > 0 && key.length === other.length && timingSafeEqual(key, other)
  }
}

/** Whether the request comes from this machine, to its own name and port: a foreign name may point here (DNS rebinding). */
function isDirect({ ip, headers, socket }: FastifyRequest): boolean {
  const name = LOOPBACK_NAME.exec(headers.host ?? '')
  const isHere =
    LOOPBACK_ADDRESS.test(ip) && name !== null && (name[1] ?? HTTP_PORT) === String(socket.localPort)
  return isHere && !Object.keys(headers).some((header) => OF_PROXY.test(header))
}

/** The name of the cookie. Browsers send a cookie to all ports of a host, so each sandbox has its own name. */
const cookieOf = ({ socket }: FastifyRequest): string => `bursar_demo_${socket.localPort}`
