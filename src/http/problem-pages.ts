import type { FastifyInstance } from 'fastify'
import { PROBLEM_EXAMPLES, PROBLEM_META } from '../contract/problem-examples.ts'
import { PROBLEMS, type ProblemKind, type ProblemSlug } from '../contract/problems.ts'

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"

/** GET /problems/<slug>: the page of a typed problem, at the address in its `type`; GET /problems: the list of all problems. */
export function problemPages(
  app: FastifyInstance,
  { baseUrl, docs }: { baseUrl: string; docs: boolean },
): void {
  const send = (url: string, page: string) =>
    app.get(url, { schema: { hide: true } }, async (_request, reply) =>
      reply.type('text/html; charset=utf-8').header('content-security-policy', POLICY).send(page),
    )
  send('/problems', listPage(baseUrl))
  for (const [slug, kind] of Object.entries(PROBLEMS))
    if (kind.explanation !== undefined)
      send(`/problems/${slug}`, problemPage(slug as ProblemSlug, kind, baseUrl, docs))
}

/** The path of the service, without a host: a page may be opened by another name than the base URL's. */
const rootOf = (baseUrl: string) => new URL(baseUrl).pathname.replace(/\/$/, '')

/** The list of all problems. A problem without a page has the type about:blank, and the list says what to do about it. */
function listPage(baseUrl: string): string {
  const root = rootOf(baseUrl)
  const lines = Object.entries(PROBLEMS).map(
    ([slug, { title, status, explanation, hint }]: [string, ProblemKind]) => {
      const name = explanation === undefined ? title : `<a href="${root}/problems/${slug}">${title}</a>`
      const code = explanation === undefined ? 'about:blank' : slug
      return `<li id="${slug}">${status} ${name} <code>${code}</code>${hint === undefined ? '' : `<p>${html(hint)}</p>`}</li>`
    },
  )
  return pageOf('Problems', `<h1>Problems</h1>\n<ul>\n${lines.join('\n')}\n</ul>`)
}

/** Converts Bursar's own text to HTML; backquotes mark code. */
const html = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')

function problemPage(
  slug: ProblemSlug,
  { title, status, explanation }: ProblemKind,
  baseUrl: string,
  docs: boolean,
): string {
  const members = Object.entries(PROBLEM_META[slug] ?? {})
  const example = JSON.stringify(PROBLEM_EXAMPLES[slug].body(baseUrl), null, 2)
  return pageOf(
    title,
    `<h1>${title}</h1>
<p>HTTP status ${status} · <code>${slug}</code></p>
<p>${html(explanation!)}</p>
<h2>Members of <code>meta</code></h2>
<dl>
${members.map(([name, text]) => `<dt><code>${name}</code></dt><dd>${html(text)}</dd>`).join('\n')}
</dl>
<h2>Example</h2>
<pre><code>${html(example)}</code></pre>
<nav><a href="${rootOf(baseUrl)}/problems">All problems</a>${docs ? ` · <a href="${rootOf(baseUrl)}/docs/">API reference</a>` : ''}</nav>`,
  )
}

const pageOf = (title: string, body: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} · Bursar</title>
<style>
  :root { color-scheme: light dark }
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 3rem auto; padding: 0 1rem }
  h1 { line-height: 1.2; margin-bottom: 0.25rem }
  h2 { font-size: 1.1rem; margin-top: 2rem }
  code { font: 0.9em/1.5 ui-monospace, monospace }
  pre { overflow-x: auto; padding: 1rem; border: 1px solid #8886; border-radius: 0.5rem }
  dt { float: left; clear: left; min-width: 11rem }
  dd { margin: 0 0 0.25rem 11rem }
  nav { margin-top: 2rem; border-top: 1px solid #8886; padding-top: 1rem }
  @media (max-width: 30rem) { dt { float: none } dd { margin-left: 1rem } }
</style>
${body}
</html>
`
