import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { noSuchPath } from './errors.ts'
import { keptText } from './kept-text.ts'
import { JSON_TYPE, type ApiDocument } from './openapi.ts'
import { SCOPES } from '../contract/scopes.ts'

/** Content security policy: no external resources, no inline scripts, no framing by other pages. */
const POLICY = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  // The hash allows the inline style of Swagger UI's own logo, which is shown until ours replaces it.
  'style-src': ["'self'", "'sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w='"],
  'img-src': ["'self'", 'data:'],
  'connect-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'frame-ancestors': ["'none'"],
}

/**
 * GET /docs: the API reference, in which operations can be tried. `/` redirects to it. All its files come from this
 * server, and it sends requests to the address at which the page was opened, whatever BURSAR_BASE_URL is.
 */
export async function docsPage(
  app: FastifyInstance,
  { baseUrl, document, sandbox }: { baseUrl: string; document: () => Promise<string>; sandbox: boolean },
): Promise<void> {
  const root = new URL(baseUrl).pathname
  let source: string | undefined
  let served = ''
  /** The document for the page, rebuilt only when it has changed. */
  const read = async () => {
    const text = await document()
    if (text !== source) served = JSON.stringify(toRelative(JSON.parse(text) as ApiDocument, root, sandbox))
    source = text
    return served
  }
  app.get('/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('./docs/'))
  const json = keptText(read, JSON_TYPE)
  app.addHook('onRoute', (route) => {
    if (route.url === '/docs/json') route.handler = json
    // The framework generates the YAML for each request, 100 ms of CPU. The page does not need it.
    if (route.url === '/docs/yaml') route.handler = (request) => Promise.reject(noSuchPath(request))
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    indexPrefix: root === '/' ? '' : root,
    staticCSP: POLICY,
    logo: { type: 'image/svg+xml', content: Buffer.from(LOGO) },
    theme: {
      title: 'Bursar API reference',
      favicon: [
        {
          filename: 'favicon.svg',
          rel: 'icon',
          sizes: 'any',
          type: 'image/svg+xml',
          content: Buffer.from(COIN),
        },
      ],
      css: [{ filename: 'bursar.css', content: STYLE }],
      js: [{ filename: 'bursar.js', content: SCRIPT }],
    },
    uiConfig: {
      docExpansion: 'list',
      defaultModelsExpandDepth: 0,
      displayRequestDuration: true,
      tryItOutEnabled: true,
    },
    // The demo's client has all scopes.
    ...(sandbox && { initOAuth: { appName: 'Bursar', scopes: [...SCOPES] } }),
  })
}

/**
 * Makes the document's addresses relative to the address of the page. In live mode the page asks for an access token, not
 * for a client secret: production secrets do not belong in a page.
 */
function toRelative(document: ApiDocument, root: string, sandbox: boolean): Record<string, unknown> {
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
  return { ...document, servers: [{ url: root }] }
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
html:not(.dark-mode) body { background: #fff }
html.dark-mode body { background: #1c2022 }
.swagger-ui, .swagger-ui .info .title, .swagger-ui .opblock-tag, .swagger-ui table thead tr td,
.swagger-ui table thead tr th, .swagger-ui .opblock .opblock-summary-description, .swagger-ui .btn,
.swagger-ui .parameter__name, .swagger-ui .response-col_status, .swagger-ui .opblock-description-wrapper p,
.swagger-ui .opblock .opblock-section-header h4, .swagger-ui .opblock .opblock-section-header > label,
.swagger-ui .info li, .swagger-ui .info p, .swagger-ui label, .swagger-ui select, .swagger-ui .tab li {
  font-family: system-ui, sans-serif;
}
.swagger-ui .topbar { background: #1f2a37; padding: 0.6rem 0 }
.swagger-ui .topbar .download-url-wrapper, .swagger-ui .topbar a svg { display: none }
.swagger-ui .topbar .topbar-wrapper { flex-flow: row nowrap; align-items: center; justify-content: space-between }
.swagger-ui .topbar .topbar-wrapper a { flex: none; max-width: none }
.swagger-ui .info { margin: 2rem 0 }
.swagger-ui .info .link { display: none }
.swagger-ui .info li { line-height: 1.5; margin: 0.25rem 0 }
.swagger-ui .info code { padding: 0 0.3em }
.swagger-ui .info a, .swagger-ui .opblock-description-wrapper a { color: var(--accent) }
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

// Swagger UI's page has no viewport; without it, a phone shows the page tiny.
const SCRIPT = `const viewport = document.createElement('meta')
viewport.name = 'viewport'
viewport.content = 'width=device-width, initial-scale=1'
document.head.append(viewport)
`
