import type { FastifyReply, FastifyRequest } from 'fastify'

/** The cookie that has the secret of the operator's session. No script can read it. */
export class SessionCookie {
  readonly #name: string
  readonly #path: string
  readonly #isHttps: boolean
  readonly #secret: RegExp

  constructor(baseUrl: string) {
    const { port, pathname, protocol } = new URL(baseUrl)
    // Browsers send a cookie to all ports of a host: without the port, two sandboxes on one machine would sign each other
    // out.
    this.#name = port === '' ? 'bursar_console' : `bursar_console_${port}`
    this.#path = `${pathname.replace(/\/$/, '')}/console`
    this.#isHttps = protocol === 'https:'
    this.#secret = new RegExp(`(?:^|; *)${this.#name}=(bursar_session_[\\w-]{20,100})(?:;|$)`)
  }

  /** The secret of the session; undefined without a cookie. */
  secretIn({ headers }: FastifyRequest): string | undefined {
    return this.#secret.exec(headers.cookie ?? '')?.[1]
  }

  /** Sets the cookie, or removes it without a secret. Browsers send the cookie to the console's own paths only. */
  set({ protocol }: FastifyRequest, reply: FastifyReply, secret: string | undefined): void {
    const secure = this.#isHttps || protocol === 'https' ? '; Secure' : ''
    const life = secret === undefined ? '; Max-Age=0' : ''
    reply.header(
      'set-cookie',
      `${this.#name}=${secret ?? ''}; Path=${this.#path}; HttpOnly; SameSite=Strict${secure}${life}`,
    )
  }
}
