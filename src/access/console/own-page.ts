import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { problem } from '../../contract/problems.ts'

/**
 * Requests of the console's page. The page sends the API's own requests to `/console/api/...`. In the place of an access
 * token they carry the session's cookie and a header.
 */

const PREFIX = '/console/api'
/** Only addresses below this prefix are rewritten. */
const PAGE_PATHS = `${PREFIX}/v2/`
const FROM_PAGE = Symbol('request of the console')

type Marked = IncomingMessage & { [FROM_PAGE]?: true }

/** Rewrites the address of a request of the console to that of the operation, and marks the request. */
export function rewriteConsole(request: { url?: string | undefined }): string {
  const { url = '/' } = request
  if (!url.startsWith(PAGE_PATHS)) return url
  ;(request as Marked)[FROM_PAGE] = true
  return url.slice(PREFIX.length)
}

/** Whether the request came to `/console/api/...`. */
export const isOfConsole = ({ raw }: FastifyRequest): boolean => (raw as Marked)[FROM_PAGE] === true

/** The header that every request of the page has. Another site's page cannot send it without asking this service first. */
const HEADER = 'x-bursar-console'
/** Methods whose requests change nothing. Browsers send no Origin with them. */
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/**
 * Throws the 403 problem unless the console's own page sent the request: protection against forged requests, beside the
 * cookie's SameSite=Strict.
 */
export function requireOwnPage({ headers, method }: FastifyRequest, baseUrl: string): void {
  if (headers[HEADER] === undefined)
    throw problem.forbidden(`requests of the console have the header ${HEADER}`)
  const { origin, host } = headers
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin')
    throw problem.forbidden('the request came from a page of another origin')
  if (READS.has(method)) return
  const isOwn =
    origin !== undefined &&
    (origin === new URL(baseUrl).origin || (URL.canParse(origin) && new URL(origin).host === host))
  if (!isOwn) throw problem.forbidden('the Origin of the request is not that of the console')
}

/** Whether the page refreshes itself: such a request does not keep a session open. */
export const isBackground = ({ headers }: FastifyRequest): boolean => headers[HEADER] === 'background'
