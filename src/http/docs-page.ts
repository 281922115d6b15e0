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
import { isWithoutOperations, SCOPES } from '../contract/scopes.ts'

const JAVASCRIPT = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'
const SVG = 'image/svg+xml; charset=utf-8'

/**
 * Reads a file of Swagger UI. This package has it as it is published; Swagger UI's own package also runs a tracker when it
 * is installed.
 */
const ofSwaggerUi = (name: string) =>
  readFileSync(new URL(`static/${name}`, import.meta.resolve('@fastify/swagger-ui')), 'utf8')

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
  const addFile = (name: string, type: string, content: string): string => {
    const digest = createHash('sha256').update(content).digest('base64url').slice(0, 10)
    const hashed = name.replace(/(?=\.\w+$)/, `.${digest}`)
    app.get(
      `/docs/${hashed}`,
      options,
      keptText(() => Promise.resolve(content), type, IMMUTABLE),
    )
    return `./${hashed}`
  }
  const page = pageOf({
    styles: [
      addFile('swagger-ui.css', CSS, ofSwaggerUi('swagger-ui.css')),
      addFile('bursar.css', CSS, STYLE),
    ],
    scripts: [
      addFile('swagger-ui-bundle.js', JAVASCRIPT, ofSwaggerUi('swagger-ui-bundle.js')),
      addFile('bursar.js', JAVASCRIPT, scriptOf(sandbox)),
    ],
    icon: addFile('favicon.svg', SVG, COIN),
    logo: addFile('logo.svg', SVG, LOGO),
    hasDemo: demoToken !== undefined,
  })
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

const pageOf = ({
  styles,
  scripts,
  icon,
  logo,
  hasDemo,
}: {
  styles: string[]
  scripts: string[]
  icon: string
  logo: string
  hasDemo: boolean
}) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Bursar API reference</title>
<link rel="icon" type="image/svg+xml" sizes="any" href="${icon}">
${styles.map((href) => `<link rel="stylesheet" href="${href}">`).join('\n')}
</head>
<body>
<header class="bar"><a href="./"><img src="${logo}" width="165" height="40" alt="Bursar"></a>${hasDemo ? '<button id="demo" type="button">Authorize as the demo customer</button>' : ''}</header>
<main id="swagger-ui"><noscript>This page needs JavaScript. The same as a document: <a href="./json">OpenAPI</a>.</noscript></main>
${scripts.map((src) => `<script src="${src}"></script>`).join('\n')}
</body>
</html>
`

/**
 * Adapts the document to the page. Its addresses become relative to that of the page. An operation's refusals become one
 * row, since in full they are several screens. In live mode the page asks for an access token, not for a client secret:
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

const COIN = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<circle cx="16" cy="16" r="15" fill="#b8860b"/><circle cx="16" cy="16" r="12" fill="#f2c14e"/>
<path d="M12 9h5.2c2.6 0 4.1 1.3 4.1 3.4 0 1.5-.8 2.6-2.1 3 1.7.4 2.7 1.6 2.7 3.4 0 2.6-1.8 4.2-4.9 4.2H12z
m3 5.4h1.7c1.1 0 1.7-.5 1.7-1.5s-.6-1.4-1.7-1.4H15zm0 6.1h1.9c1.3 0 2-.6 2-1.8s-.7-1.8-2-1.8H15z" fill="#5c4204"/></svg>`

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 132 32" width="165" height="40">
${COIN.replace(' viewBox="0 0 32 32"', ' width="32" height="32" viewBox="0 0 32 32"')}
<text x="42" y="23" font-family="system-ui, sans-serif" font-size="21" font-weight="600" fill="#fff">Bursar</text></svg>`

// Swagger UI has a dark mode of its own; light colours must not apply to it.
const STYLE = `
:root { --accent: #0f6b5c; --line: #d8dee6; --panel: #f6f8fa }
html.dark-mode { --accent: #4db6a2; --line: #3b4248; --panel: #23282b }
body { margin: 0 }
html:not(.dark-mode) body { background: #fff }
html.dark-mode body { background: #1c2022 }
.swagger-ui, .swagger-ui .info .title, .swagger-ui .opblock-tag, .swagger-ui table thead tr td,
.swagger-ui table thead tr th, .swagger-ui .opblock .opblock-summary-description, .swagger-ui .btn,
.swagger-ui .parameter__name, .swagger-ui .response-col_status, .swagger-ui .opblock-description-wrapper p,
.swagger-ui .opblock .opblock-section-header h4, .swagger-ui .opblock .opblock-section-header > label,
.swagger-ui .info li, .swagger-ui .info p, .swagger-ui label, .swagger-ui select, .swagger-ui .tab li {
  font-family: system-ui, sans-serif;
}
.bar { background: #1f2a37; padding: 0.6rem 1.25rem; display: flex; align-items: center; justify-content: space-between }
.bar img { display: block }
.bar button { font: 600 0.875rem system-ui, sans-serif; color: #fff; background: #0f6b5c; border: 0; border-radius: 4px; padding: 0.6rem 1rem; cursor: pointer }
.bar button:disabled { background: none; cursor: default }
.swagger-ui .info { margin: 2rem 0 }
.swagger-ui .info .link { display: none }
.swagger-ui .info li { line-height: 1.5; margin: 0.25rem 0 }
.swagger-ui .info code { padding: 0 0.3em }
.swagger-ui .info a, .swagger-ui .opblock-description-wrapper a, .swagger-ui .response-col_description a { color: var(--accent) }
.swagger-ui .scheme-container { box-shadow: none; border-block: 1px solid var(--line); background: var(--panel); padding: 1rem 0 }
/* The only server is the server of this page. */
.swagger-ui .scheme-container .servers-title, .swagger-ui .scheme-container .servers { display: none }
.swagger-ui .btn.authorize { color: var(--accent); border-color: var(--accent) }
.swagger-ui .btn.authorize svg { fill: var(--accent) }
.swagger-ui .btn.execute { background: #0f6b5c; border-color: #0f6b5c }
.swagger-ui .opblock, .swagger-ui .opblock .opblock-section-header { box-shadow: none }
.swagger-ui .response-col_links { display: none }
.swagger-ui .examples-select__section-label { color: inherit }
@media (max-width: 45rem) {
  .swagger-ui .wrapper { padding: 0 0.75rem }
  .swagger-ui .opblock .opblock-summary-description { display: none }
  .swagger-ui .opblock .opblock-summary-method { min-width: 4rem; padding: 0.4rem 0.25rem }
  .swagger-ui .opblock-tag { flex-wrap: wrap; position: relative; padding-right: 2.5rem }
  .swagger-ui .opblock-tag small { flex: 1 1 100%; padding: 0 }
  .swagger-ui .opblock-tag .expand-operation { position: absolute; right: 0; top: 0.75rem }
  .swagger-ui table.parameters, .swagger-ui table.parameters > tbody, .swagger-ui table.parameters tr,
  .swagger-ui table.responses-table, .swagger-ui table.responses-table > tbody, .swagger-ui tr.response,
  .swagger-ui .parameters-col_name, .swagger-ui .parameters-col_description, .swagger-ui .response-col_status,
  .swagger-ui .response-col_description { display: block; width: 100% }
  .swagger-ui table.parameters > thead, .swagger-ui table.responses-table > thead { display: none }
  .swagger-ui table.responses-table .response-col_status { font-weight: 600; padding: 1rem 0 0 }
  .swagger-ui table.responses-table .response-col_description { padding: 0.25rem 0 0 }
  .swagger-ui .parameters-col_description input, .swagger-ui .parameters-col_description select { max-width: 100% }
  .swagger-ui .dialog-ux .modal-ux { min-width: 0; width: 96vw }
  .swagger-ui .dialog-ux .modal-ux-content { padding: 1rem }
}
`

/** What the page shows and remembers. A browser keeps the authorization of a sandbox, never that of a live service. */
const optionsOf = (sandbox: boolean) => ({
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  filter: true,
  persistAuthorization: sandbox,
  validatorUrl: null,
})

/**
 * The script of the page. Swagger UI filters by tags alone, so a plug-in compares the words of the filter with path, summary and
 * tag of each operation.
 */
const scriptOf = (sandbox: boolean) => `\
const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()

const filterOperations = (tags, text) => {
  const words = text.toLowerCase().split(/\\s+/)
  const fits = (tag) => (operation) => {
    const summary = operation.getIn(['operation', 'summary'], '')
    const all = [tag, operation.get('method'), operation.get('path'), summary].join(' ').toLowerCase()
    return words.every((word) => all.includes(word))
  }
  return tags
    .map((group, tag) => group.update('operations', (operations) => operations.filter(fits(tag))))
    .filter((group) => group.get('operations').size > 0)
}
const ui = SwaggerUIBundle({
  ...${JSON.stringify(optionsOf(sandbox))},
  url: new URL('json', document.baseURI).href,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [() => ({ fn: { opsFilter: filterOperations } })],
  onComplete: () =>
    document.querySelector('.operation-filter-input').setAttribute('placeholder', 'Filter by path, name or tag'),
})
const demo = document.getElementById('demo')
demo?.addEventListener('click', async () => {
  demo.disabled = true
  const answer = await fetch('demo-token', { method: 'POST' }).catch(() => undefined)
  const body = await answer?.json().catch(() => undefined)
  if (answer?.ok) {
    const scheme = ui.specSelectors.securityDefinitions().get('oauth2').toJS()
    const scopes = Object.keys(scheme.flows.clientCredentials.scopes)
    ui.authActions.authorizeOauth2WithPersistOption({
      auth: { name: 'oauth2', schema: { ...scheme, flow: 'clientCredentials' }, scopes },
      token: body,
    })
    demo.textContent = 'Authorized as the demo customer'
  } else demo.textContent = body?.detail ?? 'The service does not answer'
})
${sandbox ? `ui.initOAuth(${JSON.stringify({ appName: 'Bursar', scopes: SCOPES.filter((scope) => !isWithoutOperations(scope)) })})` : ''}
`
