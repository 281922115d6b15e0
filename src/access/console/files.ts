import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { ok, orElse, warnings, type Finding } from '../../finding.ts'
import { noSuchPath } from '../../http/errors.ts'
import type { OwnMachine } from '../../http/own-machine.ts'
import { PAGE_POLICY } from '../../http/page-policy.ts'
import { ROOT } from '../../package.ts'
import type { Settings } from '../../settings.ts'

/** Where `npm run build` writes the console's files: below the built program. */
const FOLDER = fileURLToPath(new URL('dist/console/', ROOT))
const INDEX_PAGE = `${FOLDER}index.html`

export const isConsoleBuilt = (): boolean => existsSync(INDEX_PAGE)

/** Throws an Error where a link to the console would lead to no page. */
export function requireBuiltConsole(): void {
  if (!isConsoleBuilt())
    throw new Error(
      'the console is not built here, so its links lead nowhere: npm run build:console in a checkout with its build tools (docs/guides/going-live.md)',
    )
}

/** The console as configured (docs/guides/console.md): whether it exists, and whether its links and cookies are safe. */
export function checkConsole(
  { console: isOn, mode, baseUrl }: Pick<Settings, 'console' | 'mode' | 'baseUrl'>,
  isBuilt = isConsoleBuilt(),
): Finding[] {
  if (!isOn) return [ok('switched off')]
  const found = warnings(
    [!isBuilt, 'it is not built, so /console answers 404', 'npm run build:console, or BURSAR_CONSOLE=false'],
    [
      isBuilt && mode === 'live' && baseUrl === undefined,
      'its links name this machine, and its cookies may travel without TLS: BURSAR_BASE_URL is not set',
      'set BURSAR_BASE_URL to the https address of the service',
    ],
  )
  const whoSignsIn =
    mode === 'sandbox'
      ? 'browsers on this machine open it with the demo, others sign in'
      : `operators sign in at ${baseUrl}/console`
  return orElse(found, whoSignsIn)
}

/**
 * Serves the console's page and its files under `/console`. File names contain the hash of their content, so browsers cache
 * the files, and revalidate the page each time. Every other path below `/console` answers the page, which resolves the path.
 */
export function consoleFiles(app: FastifyInstance, root: string, ownMachine: OwnMachine): void {
  // The page's URLs are absolute, because the page is served at every depth. Behind a proxy, the service may have a prefix.
  const page = isConsoleBuilt() ? readFileSync(INDEX_PAGE, 'utf8').replaceAll('{{root}}', root) : undefined
  if (page === undefined)
    app.log.warn('the console is not built, so /console answers 404: npm run build:console')
  else
    // Imported here, because commands import this file, too, and serve no files.
    void app.register(import('@fastify/static'), {
      root: `${FOLDER}assets`,
      prefix: '/console/assets/',
      preCompressed: true,
      maxAge: '1y',
      immutable: true,
      setHeaders: (reply) => {
        reply.setHeader('vary', 'accept-encoding')
        reply.setHeader('content-security-policy', PAGE_POLICY)
      },
    })
  const options = { schema: { hide: true } }

  app.get('/console', options, async (request, reply) => {
    ownMachine.remember(request, reply)
    return reply.redirect(`${root}console/`)
  })
  app.get('/console/*', options, async (request, reply) => {
    if (page === undefined) throw noSuchPath(request)
    return reply
      .headers({ 'content-security-policy': PAGE_POLICY, 'cross-origin-opener-policy': 'same-origin' })
      .header('cache-control', 'no-cache')
      .type('text/html; charset=utf-8')
      .send(page)
  })

  // `bursar operator link` prints the first address. An OpenID provider returns the browser to the second one.
  app.get('/sign-in', options, async (_request, reply) => reply.redirect(`${root}console/sign-in`))
  app.get('/sign-in/openid', options, async (request, reply) => {
    const start = request.url.indexOf('?')
    return reply.redirect(`${root}console/sign-in/openid${start < 0 ? '' : request.url.slice(start)}`)
  })
}
