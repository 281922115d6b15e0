import type { FastifyReply, FastifyRequest } from 'fastify'

/** The cookie that has the secret of the operator's session. No script can read it. */
const NAME = 'bursar_console'
const SECRET = new RegExp(`(?:^|; *)${NAME}=(bursar_session_[\\w-]{20,100})(?:;|$)`)

/** The secret of the session; undefined without a cookie. */
export const sessionIn = ({ headers }: FastifyRequest): string | undefined =>
  SECRET.exec(headers.cookie ?? '')?.[1]

/** Sets the cookie, or removes it where there is no secret. It is sent to the console's own paths only. */
export function setSession(
  { protocol }: FastifyRequest,
  reply: FastifyReply,
  baseUrl: string,
  secret: string | undefined,
): void {
  const path = `${new URL(baseUrl).pathname.replace(/\/$/, '')}/console`
  const secure = baseUrl.startsWith('https:') || protocol === 'https' ? '; Secure' : ''
  const life = secret === undefined ? '; Max-Age=0' : ''
  reply.header(
    'set-cookie',
    `${NAME}=${secret ?? ''}; Path=${path}; HttpOnly; SameSite=Strict${secure}${life}`,
  )
}
