import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { keptText } from './kept-text.ts'
import {
  JSON_TYPE,
  PROBLEM_TYPE,
  refusalsOf,
  type ApiDocument,
  type ApiResponses,
  type DocumentedResponse,
} from './openapi.ts'
import type { OwnMachine } from './own-machine.ts'
import { PAGE_POLICY } from './page-policy.ts'
import { problem } from '../contract/problems.ts'
import { ROOT } from '../package.ts'
import { isWithoutOperations, SCOPES } from '../contract/scopes.ts'

/** The page's own files. They are served as they are written, without a build. */
const OWN = new URL('docs-page/', ROOT)
/** Where the build puts Swagger UI. */
const SWAGGER_UI = new URL('dist/swagger-ui/', ROOT)
const FOLDERS: Record<string, URL> = { 'swagger-ui.css': SWAGGER_UI, 'swagger-ui-bundle.js': SWAGGER_UI }
const TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
}

interface DocsPage {
  baseUrl: string
  document: () => Promise<string>
  sandbox: boolean
  ownMachine: OwnMachine
  /** Issues an access token of the demo customer; undefined where the request may not have one. Absent: nobody may. */
  demoToken?: (request: FastifyRequest) => Promise<string | undefined>
}

/**
 * GET /docs: the API reference, in which operations can be tried. `/` redirects to it. All its files come from this
 * server, and it sends requests to the address at which the page was opened, whatever BURSAR_BASE_URL is. The names of
 * the files have the hash of their content, so browsers keep them.
 */
export function docsPage(
  app: FastifyInstance,
  { baseUrl, document, sandbox, ownMachine, demoToken }: DocsPage,
): void {
  const root = new URL(baseUrl).pathname
  let source: string | undefined
  let served = ''
  /** The document for the page, rebuilt only when it has changed. */
  const read = async () => {
    const text = await document()
    if (text !== source) served = JSON.stringify(forPage(JSON.parse(text) as ApiDocument, root, sandbox))
    source = text
    return served
  }
  const options = { schema: { hide: true } }
  const page = readFileSync(new URL('page.html', OWN), 'utf8')
    .replace('{{demo}}', demoToken === undefined ? '' : DEMO_BUTTON)
    .replace('{{mode}}', sandbox ? `data-sandbox data-scopes="${SCOPES_OF_OPERATIONS.join(' ')}"` : '')
    .replace(/\{\{(.+?)\}\}/g, (_, name: string) => addFile(app, name))
  app.get('/', options, async (_request, reply) => reply.redirect('./docs/'))
  app.get('/docs', options, async (request, reply) => {
    ownMachine.remember(request, reply)
    return reply.redirect('./docs/')
  })
  const sendPage = keptText(() => Promise.resolve(page), 'text/html; charset=utf-8')
  app.get('/docs/', options, (request, reply) => {
    void reply.header('content-security-policy', PAGE_POLICY)
    return sendPage(request, reply)
  })
  app.get('/docs/json', options, keptText(read, JSON_TYPE))
  if (demoToken !== undefined)
    app.post('/docs/demo-token', options, async (request, reply) => {
      const token = await demoToken(request)
      if (token === undefined)
        throw problem.forbidden(
          'only a sandbox that listens on this machine alone authorizes its demo without credentials, at the address that its start printed',
        )
      return reply.header('cache-control', 'no-store').send({ access_token: token, token_type: 'Bearer' })
    })
}

const IMMUTABLE = 'public, max-age=31536000, immutable'
const DEMO_BUTTON = '<button id="demo" type="button">Authorize as the demo customer</button>'
const SCOPES_OF_OPERATIONS = SCOPES.filter((scope) => !isWithoutOperations(scope))

/** Serves a file under a name with the hash of its content, and gives its address. */
function addFile(app: FastifyInstance, name: string): string {
  const content = readFileSync(new URL(name, FOLDERS[name] ?? OWN), 'utf8')
  const [stem, type] = name.split('.') as [string, string]
  const digest = createHash('sha256').update(content).digest('base64url').slice(0, 10)
  const url = `/docs/${stem}.${digest}.${type}`
  if (!app.hasRoute({ method: 'GET', url }))
    app.get(
      url,
      { schema: { hide: true } },
      keptText(() => Promise.resolve(content), TYPES[type]!, IMMUTABLE),
    )
  return `.${url.slice('/docs'.length)}`
}

/**
 * Adapts the document to the page. Its addresses become relative to the page's address. An operation's refusals become one
 * row, because in full they fill several screens. In live mode the page asks for an access token, not for a client secret:
 * production secrets do not belong in a page.
 */
function forPage(document: ApiDocument, root: string, sandbox: boolean): Record<string, unknown> {
  const { securitySchemes } = document.components
  const tokenUrl = `${root.replace(/\/$/, '')}/oauth2/token`
  if (securitySchemes.oauth2?.flows !== undefined) {
    if (sandbox) securitySchemes.oauth2.flows.clientCredentials.tokenUrl = tokenUrl
    else
      securitySchemes.oauth2 = {
        type: 'http',
        scheme: 'bearer',
        description: `An access token from ${tokenUrl}. Do not enter a client secret here.`,
      }
  }
  const paths = Object.entries(document.paths).map(([path, operations]) => [
    path,
    Object.fromEntries(
      Object.entries(operations).map(([method, { responses, ...operation }]) => [
        method,
        { ...operation, responses: withOneRefusal(responses, document) },
      ]),
    ),
  ])
  return { ...document, servers: [{ url: root }], paths: Object.fromEntries(paths) as object }
}

/** Replaces the refusals of an operation by one, which lists their statuses and titles and has all their examples. */
function withOneRefusal(responses: ApiResponses, document: ApiDocument): ApiResponses {
  const refusals = refusalsOf(responses, document)
  const examplesOf = ({ content }: DocumentedResponse) => content![PROBLEM_TYPE]!.examples ?? {}
  const listed = refusals.map(([status, refusal]) => {
    const titles = Object.values(examplesOf(refusal)).map(({ summary, value: { type } }) =>
      type === undefined || type === 'about:blank'
        ? summary
        : `[${summary}](../problems/${type.split('/').at(-1)!})`,
    )
    return `- **${status}** ${titles.join(', ')}`
  })
  const examples = Object.assign({}, ...refusals.map(([, refusal]) => examplesOf(refusal))) as object
  const content = { [PROBLEM_TYPE]: { ...refusals[0]![1].content![PROBLEM_TYPE], examples } }
  return {
    '200': responses['200'],
    default: { description: listed.join('\n'), content },
  } as ApiResponses
}
