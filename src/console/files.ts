import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { noSuchPath } from '../http/errors.ts'
import type { OwnMachine } from '../http/own-machine.ts'
import { PAGE_POLICY } from '../http/page-policy.ts'

/** Where `npm run build` writes the console's files: below the built program. */
const FOLDER = fileURLToPath(new URL('../../dist/console/', import.meta.url))
const ASSETS = 'assets/'
const PAGE = 'index.html'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Encodings that the build has made, the smallest first. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

interface BuiltFile {
  type: string
  plain: Buffer
  /** The compressed forms by their encoding. */
  compressed: Map<string, Buffer>
}

/** Whether the console was built. */
export const isConsoleBuilt = (): boolean => existsSync(`${FOLDER}${PAGE}`)

/** Throws an Error where a link to the console would lead to no page. */
export function requireBuiltConsole(): void {
  if (!isConsoleBuilt())
    throw new Error(
      'the console is not built here, so its links lead nowhere: npm run build:console in a checkout with its build tools (docs/guides/going-live.md)',
    )
}

/** Reads the console's built files: some 300 kB, kept in memory. Undefined when the console was not built. */
function readFiles(): Map<string, BuiltFile> | undefined {
  if (!isConsoleBuilt()) return undefined
  const names = [PAGE, ...readdirSync(`${FOLDER}${ASSETS}`).map((name) => `${ASSETS}${name}`)]
  const files = new Map<string, BuiltFile>()
  for (const name of names) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const compressed = ENCODINGS.filter(([, suffix]) => existsSync(`${FOLDER}${name}${suffix}`)).map(
      ([encoding, suffix]) => [encoding, readFileSync(`${FOLDER}${name}${suffix}`)] as const,
    )
    files.set(name, { type, plain: readFileSync(`${FOLDER}${name}`), compressed: new Map(compressed) })
  }
  return files
}

/**
 * Serves the console's page and its files under `/console`. Names of files have the hash of their content, so browsers keep
 * them; the page itself is asked for each time. Every other address below `/console` is one of the page's own.
 */
export function consoleFiles(app: FastifyInstance, root: string, ownMachine: OwnMachine): void {
  const files = readFiles()
  if (files === undefined)
    app.log.warn('the console is not built, so /console answers 404: npm run build:console')
  // The page's addresses are absolute, because it is served at every depth. Behind a proxy, the service may have a prefix.
  const page = Buffer.from(files?.get(PAGE)?.plain.toString().replaceAll('{{root}}', root) ?? '')
  const options = { schema: { hide: true } }

  app.get('/console', options, async (request, reply) => {
    ownMachine.remember(request, reply)
    return reply.redirect(`${root}console/`)
  })
  app.get('/console/assets/:name', options, async (request, reply) => {
    const { name } = request.params as { name: string }
    const file = files?.get(`${ASSETS}${name}`)
    if (file === undefined) throw noSuchPath(request)
    reply.header('cache-control', 'public, max-age=31536000, immutable')
    return sendFile(request, reply, file)
  })
  app.get('/console/*', options, async (request, reply) => {
    if (files === undefined) throw noSuchPath(request)
    return reply
      .headers({ 'content-security-policy': PAGE_POLICY, 'cross-origin-opener-policy': 'same-origin' })
      .header('cache-control', 'no-cache')
      .type(TYPES['.html']!)
      .send(page)
  })

  // The addresses that `bursar operator link` prints, and that a provider of OpenID returns the browser to.
  app.get('/sign-in', options, async (_request, reply) => reply.redirect(`${root}console/sign-in`))
  app.get('/sign-in/openid', options, async (request, reply) => {
    const at = request.url.indexOf('?')
    return reply.redirect(`${root}console/sign-in/openid${at < 0 ? '' : request.url.slice(at)}`)
  })
}

/** Sends the smallest form that the client accepts. */
function sendFile({ headers }: FastifyRequest, reply: FastifyReply, { type, plain, compressed }: BuiltFile) {
  const accepted = (headers['accept-encoding'] ?? '').split(',').map((part) => part.trim().split(';'))
  const takes = (encoding: string) =>
    accepted.some(([name, weight]) => name === encoding && !/^ *q=0(?:\.0*)?$/.test(weight ?? ''))
  reply.type(type).headers({ vary: 'accept-encoding', 'content-security-policy': PAGE_POLICY })
  for (const [encoding, content] of compressed)
    if (takes(encoding)) return reply.header('content-encoding', encoding).send(content)
  return reply.send(plain)
}
