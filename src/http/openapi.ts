import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { Operation } from './operation.ts'
import { PROBLEMS, type ProblemSlug } from './problems.ts'
import { SCOPES } from './scopes.ts'
import { OWN_KEYWORDS } from './validation.ts'

/** The body of every refusal (RFC 9457). */
const Problem = Type.Object(
  {
    type: Type.String({ description: 'about:blank, or the URI of a page that explains the problem.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What is wrong: the field and the rule.' }),
    meta: Type.Optional(Type.Object({}, { additionalProperties: true, description: 'Facts, by type.' })),
  },
  { $id: 'Problem' },
)

/** What the API document says of itself. */
export async function openApi(app: FastifyInstance, options: { baseUrl: string }): Promise<void> {
  const { baseUrl } = options
  app.addSchema(Problem)
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Bursar',
        version: '2',
        description:
          'Financial platform API: balances on a double-entry ledger, withdrawals and deposits, orchestrations, statements, sandbox and market history.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: baseUrl }],
      components: {
        securitySchemes: {
          oauth2: {
            type: 'oauth2',
            flows: {
              clientCredentials: {
                tokenUrl: `${baseUrl}/oauth2/token`,
                scopes: Object.fromEntries(SCOPES.map((scope) => [scope, scope])),
              },
            },
          },
        },
      },
    },
    refResolver: {
      buildLocalReference: (json, _base, _fragment, i) =>
        typeof json.$id === 'string' ? json.$id : `def-${i}`,
    },
  })
  const withoutOwn = (key: string, value: unknown) => (OWN_KEYWORDS.includes(key) ? undefined : value)
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) =>
    reply.type('application/json').send(JSON.stringify(app.swagger(), withoutOwn)),
  )
}

const ALWAYS: ProblemSlug[] = ['bad-request', 'unauthorized', 'forbidden', 'internal-error', 'unavailable']
const WITH_BODY: ProblemSlug[] = ['payload-too-large', 'unsupported-media-type']

/** The refusals of an operation, by status, with an example for each kind. */
export function problemResponses({ body, problems = [] }: Operation): Record<number, object> {
  const slugs = [...ALWAYS, ...(body ? WITH_BODY : []), ...problems]
  const byStatus = new Map<number, ProblemSlug[]>()
  for (const slug of new Set(slugs)) {
    const { status } = PROBLEMS[slug]
    byStatus.set(status, [...(byStatus.get(status) ?? []), slug])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, kinds]) => [
      status,
      {
        description: kinds.map((slug) => PROBLEMS[slug].title).join('; '),
        content: {
          'application/problem+json': {
            schema: { $ref: 'Problem#' },
            examples: Object.fromEntries(
              kinds.map((slug) => [slug, { summary: PROBLEMS[slug].title, value: problemExample(slug) }]),
            ),
          },
        },
      },
    ]),
  )
}

function problemExample(slug: ProblemSlug) {
  const { title, status, explanation } = PROBLEMS[slug]
  const type = explanation === undefined ? 'about:blank' : `http://127.0.0.1:8080/problems/${slug}`
  return { type, title, status, detail: explanation ?? title }
}
