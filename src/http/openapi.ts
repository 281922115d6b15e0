import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import { withRecords, type ExampleRecords } from '../contract/example-records.ts'
import { keptText } from './kept-text.ts'
import { asOpenApi30 } from './openapi-3-0.ts'
import { asPostman } from './postman.ts'
import type { Operation } from './operation.ts'
import { ProblemBody } from '../contract/problem-body.ts'
import { PROBLEM_EXAMPLES } from '../contract/problem-examples.ts'
import { PROBLEMS, type ProblemSlug } from '../contract/problems.ts'
import { Closed } from '../contract/fields.ts'
import { SCOPES, type OperatorScope } from '../contract/scopes.ts'
import { TAGS, type Tag } from '../contract/tags.ts'
import { OWN_KEYWORDS } from './validation.ts'
import { grouped } from '../db/rows.ts'

const described = (baseUrl: string) => `\
Balances on a double-entry ledger, withdrawals and deposits, orchestrations, statements and market history.

- **Authorize** with the id and the secret of an API client. A sandbox writes the credentials of its demo customer to
  \`sandbox-credentials.json\` in its data folder (\`.bursar\`). Its examples here use the demo's records, so they work
  unchanged.
- **Amounts** are decimal strings, **times** RFC 3339 in UTC with microseconds, **ids** UUIDs.
- A **ref_id** can be used once: the same request again gets 409 with the first record, so a request whose answer was
  lost can be repeated safely.
- **Lists** return \`next_page_cursor\` unless the page is the last; send it as \`page_cursor\` with the same filters.
- **Errors** are \`application/problem+json\` (RFC 9457). Each typed problem has a page:
  ${Object.entries(PROBLEMS)
    .filter(([, { explanation }]) => explanation !== undefined)
    .map(([slug]) => `[${slug}](${baseUrl}/problems/${slug})`)
    .join(', ')}.

This document: [openapi.json](${baseUrl}/openapi.json), and as [OpenAPI 3.0](${baseUrl}/openapi-3.0.json) for generators of clients, and as [a collection](${baseUrl}/postman.json) for Postman and Bruno.`

const OF_OPERATORS =
  'What people do and see, beside the operations of API clients. Signing in is described in docs/reference/operators.md.'
const OPERATOR_TOKEN = {
  type: 'http',
  scheme: 'bearer',
  description: 'An access token that an operator has taken from its session.',
}

interface Issuer {
  baseUrl: string
  /** The external issuer of access tokens; undefined when Bursar issues them. */
  externalIssuer: string | undefined
}

/** What is sent to customers' endpoints, and its schemas. */
export interface DocumentedWebhooks {
  webhooks: Record<string, object>
  schemas: Record<string, object>
}

export interface OpenApiOptions extends Issuer {
  documented: DocumentedWebhooks
  /** Reads the demo's records for the examples; undefined while there are none. */
  exampleRecords: () => Promise<ExampleRecords | undefined>
}

export const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * Generates the API document from the routes that are added later, and serves it. Returns a function that reads its text,
 * to be called once the app is ready.
 */
export async function openApi(app: FastifyInstance, options: OpenApiOptions): Promise<() => Promise<string>> {
  const { baseUrl, exampleRecords } = options
  app.addSchema(ProblemBody)
  const readDocument = await documentOf(app, {
    baseUrl,
    decorator: 'swagger',
    description: described(baseUrl),
    isIn: isPublished,
    scheme: securityScheme(options, {}),
  })
  const readOfOperators = await documentOf(app, {
    baseUrl,
    decorator: 'swaggerOfOperators',
    description: OF_OPERATORS,
    isIn: isForOperators,
    scheme: OPERATOR_TOKEN,
  })

  let text: string | undefined
  let filled: string | undefined
  /** The document as text, with the demo's records as soon as they exist. */
  const readText = async (): Promise<string> => {
    text ??= textOf(
      await completed(readDocument(), (scopes) => securityScheme(options, scopes), options.documented),
    )
    if (filled !== undefined) return filled
    const records = await exampleRecords()
    if (records !== undefined) filled = withRecords(text, records)
    return filled ?? text
  }
  /** Writes the document in another form, again when it changes. */
  const writtenAs = (write: (text: string) => string) => {
    let written: { source: string; text: string } | undefined
    return async (): Promise<string> => {
      const source = await readText()
      if (written?.source !== source) written = { source, text: write(source) }
      return written.text
    }
  }
  let operatorsText: string | undefined
  const readOperatorsText = async () =>
    (operatorsText ??= textOf(withoutUnused(await completed(readOfOperators(), () => OPERATOR_TOKEN))))
  app.get('/v2/operators/openapi.json', { schema: { hide: true } }, keptText(readOperatorsText, JSON_TYPE))
  app.get('/openapi.json', { schema: { hide: true } }, keptText(readText, JSON_TYPE))
  app.get('/openapi-3.0.json', { schema: { hide: true } }, keptText(writtenAs(asOpenApi30), JSON_TYPE))
  app.get('/postman.json', { schema: { hide: true } }, keptText(writtenAs(asPostman), JSON_TYPE))
  return readText
}

/** The kinds of routes, by whether their schema is hidden. A hidden one with a declared answer is for operators. */
const isPublished = (schema?: FastifySchema): boolean => schema?.hide !== true
const isForOperators = (schema?: FastifySchema): boolean =>
  schema?.hide === true && schema.response !== undefined

/** The schema of a route for operators that is no operation. */
export const ofOperators = (summary: string, scope: OperatorScope, reply: TSchema) => ({
  hide: true,
  tags: ['Operators' satisfies Tag],
  summary,
  security: [{ oauth2: [scope] }],
  querystring: Closed({}),
  response: { 200: { description: 'Success', ...reply } },
})

interface DocumentOptions {
  baseUrl: string
  /** The function that it adds to the app. */
  decorator: string
  description: string
  scheme: object
  isIn: (schema?: FastifySchema) => boolean
}

/** Collects the routes that are added later. Returns a function that makes their document, once the app is ready. */
async function documentOf(
  app: FastifyInstance,
  { baseUrl, decorator, description, scheme, isIn }: DocumentOptions,
): Promise<() => ApiDocument> {
  await app.register(swagger, {
    decorator,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Bursar',
        version: '2',
        description,
        license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
      },
      servers: [{ url: baseUrl }],
      components: { securitySchemes: { oauth2: scheme as { type: 'oauth2'; flows: object } } },
    },
    transform: ({ schema, url }) => ({ schema: { ...schema, hide: !isIn(schema) }, url }),
    refResolver: {
      buildLocalReference: (json, _base, _fragment, i) =>
        typeof json.$id === 'string' ? json.$id : `def-${i}`,
    },
  })
  return () => (app as unknown as Record<string, () => ApiDocument>)[decorator]!()
}

/** The parts of the document that this code reads and writes. */
export interface ApiDocument {
  servers: { url: string }[]
  tags?: object[]
  webhooks?: Record<string, object>
  paths: Record<string, Record<string, DocumentedOperation>>
  components: {
    schemas: Record<string, object>
    securitySchemes: Record<string, SecurityScheme>
    responses: Record<string, DocumentedResponse>
  }
}
interface DocumentedOperation {
  summary: string
  tags: Tag[]
  parameters?: { in: string; schema: { type?: string }; style?: string; explode?: boolean }[]
  security: { oauth2: string[] }[]
  responses: ApiResponses
}
/** The documented responses of an operation, by status; its refusals as references. */
export type ApiResponses = Record<string, DocumentedResponse | { $ref: string }>
export interface DocumentedResponse {
  description: string
  content?: Record<
    string,
    { example?: unknown; examples?: Record<string, { summary: string; value: { type?: string } }> }
  >
}
interface SecurityScheme {
  type: string
  scheme?: string
  description?: string
  flows?: { clientCredentials: { tokenUrl: string; scopes: Record<string, string> } }
}

/**
 * The answer of each operation to its first example, by method and path. The answers are real:
 * `npx vitest run test/documented-examples.program.test.ts --update` writes those that are missing or no longer fit. Answers
 * about records that the demo does not have are written by hand.
 */
const answerExamples = () => import('../contract/answer-examples.json', { with: { type: 'json' } })

/** A value as the document has it: without our keywords, and an object or another type as a choice, at which no generator stops. */
function documented(key: string, value: unknown): unknown {
  if (OWN_KEYWORDS.includes(key)) return undefined
  const { type, description, ...rest } = (value ?? {}) as { type?: unknown; description?: string }
  if (!Array.isArray(type) || !type.includes('object')) return value
  return {
    description,
    anyOf: type.map((name) => ({ type: name as string, ...(name === 'object' && rest) })),
  }
}

async function addAnswers({ paths }: ApiDocument): Promise<void> {
  const examples: Record<string, unknown> = (await answerExamples()).default
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { responses }] of Object.entries(operations)) {
      const example = examples[`${method.toUpperCase()} ${path}`]
      const content = (responses['200'] as DocumentedResponse | undefined)?.content?.['application/json']
      if (example !== undefined && content !== undefined) content.example = example
    }
}

export const PROBLEM_TYPE = 'application/problem+json'
const REFUSALS = '#/components/responses/'

/** Moves the refusals of all operations to the components: many operations share each. */
function shareRefusals({ paths, components }: ApiDocument): void {
  components.responses = {}
  for (const { responses } of Object.values(paths).flatMap((path) => Object.values(path)))
    for (const [status, response] of Object.entries(responses)) {
      const examples = (response as DocumentedResponse).content?.[PROBLEM_TYPE]?.examples
      if (examples === undefined) continue
      const words = Object.keys(examples).map((slug) =>
        slug.replaceAll(/(?:^|-)./g, (letter) => letter.at(-1)!.toUpperCase()),
      )
      const name = words.join('Or')
      components.responses[name] = response as DocumentedResponse
      responses[status] = { $ref: REFUSALS + name }
    }
}

export const refusalsOf = (
  responses: ApiResponses,
  { components }: ApiDocument,
): [string, DocumentedResponse][] =>
  Object.entries(responses).flatMap(([status, response]) =>
    '$ref' in response ? [[status, components.responses[response.$ref.slice(REFUSALS.length)]!]] : [],
  )

/** The document without the schemas that it does not name. */
function withoutUnused({ components, ...document }: ApiDocument): object {
  const named = (part: unknown) =>
    [...JSON.stringify(part ?? {}).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!)
  const used = new Set(named([document.paths, components.responses]))
  // A set also visits what is added meanwhile.
  for (const name of used) named(components.schemas[name]).forEach((inner) => used.add(inner))
  const schemas = Object.fromEntries(Object.entries(components.schemas).filter(([name]) => used.has(name)))
  return { ...document, components: { ...components, schemas } }
}

const textOf = (document: object): string => JSON.stringify(document, documented)

/** Adds the examples of answers, the webhooks, and the tags and scopes that the operations use. */
async function completed(
  document: ApiDocument,
  scheme: (scopes: Record<string, string>) => SecurityScheme,
  sent: DocumentedWebhooks = { webhooks: {}, schemas: {} },
): Promise<ApiDocument> {
  await addAnswers(document)
  shareRefusals(document)
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
  // An object in a query has a parameter for each of its members.
  for (const parameter of operations.flatMap(({ parameters = [] }) => parameters))
    if (parameter.schema.type === 'object') {
      Object.assign(parameter, { style: 'deepObject', explode: true })
      // Otherwise the page of the API fills in a sample, which no record matches.
      Object.assign(parameter.schema, { default: {} })
    }
  const used = new Set(operations.flatMap(({ tags }) => tags))
  const grants = (scope: string) =>
    operations
      .filter(({ security }) => security.some(({ oauth2 }) => oauth2.includes(scope)))
      .map(({ summary }) => summary)
  const scopes = SCOPES.map((scope) => [scope, grants(scope).join(', ')] as const)
  return {
    ...document,
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name as Tag))
      .map(([name, description]) => ({ name, description })),
    webhooks: sent.webhooks,
    components: {
      ...document.components,
      schemas: { ...document.components.schemas, ...sent.schemas },
      securitySchemes: { oauth2: scheme(Object.fromEntries(scopes.filter(([, granted]) => granted !== ''))) },
    },
  }
}

/** How a client gets a token: from Bursar, or from the external issuer. */
const securityScheme = (
  { baseUrl, externalIssuer }: Issuer,
  scopes: Record<string, string>,
): SecurityScheme =>
  externalIssuer === undefined
    ? {
        type: 'oauth2',
        description:
          'The client credentials grant. A token requested without a scope has all scopes of the client.',
        flows: { clientCredentials: { tokenUrl: `${baseUrl}/oauth2/token`, scopes } },
      }
    : { type: 'http', scheme: 'bearer', description: `An access token from ${externalIssuer}.` }

const ALWAYS: ProblemSlug[] = [
  ...(['bad-request', 'request-timeout', 'request-header-fields-too-large', 'too-many-requests'] as const),
  ...(['internal-error', 'unavailable'] as const),
]
const OF_TOKENS: ProblemSlug[] = ['unauthorized', 'forbidden']
const WITH_BODY: ProblemSlug[] = ['payload-too-large', 'unsupported-media-type']

/** The error responses of an operation by status, with an example of each problem. */
export function problemResponses(
  { method, scope, body, problems = [] }: Operation,
  baseUrl: string,
): Record<number, object> {
  const slugs = [
    ...ALWAYS,
    ...(scope === null ? [] : OF_TOKENS),
    ...(body || method === 'POST' || method === 'PUT' ? WITH_BODY : []),
    ...problems,
  ]
  const byStatus = grouped(new Set(slugs), (slug) => PROBLEMS[slug].status)
  return Object.fromEntries(
    [...byStatus].map(([status, kinds]) => [
      status,
      {
        description: kinds.map((slug) => PROBLEMS[slug].title).join('; '),
        content: {
          [PROBLEM_TYPE]: {
            schema: { $ref: 'Problem#' },
            examples: Object.fromEntries(
              kinds.map((slug) => [
                slug,
                { summary: PROBLEMS[slug].title, value: PROBLEM_EXAMPLES[slug].body(baseUrl) },
              ]),
            ),
          },
        },
      },
    ]),
  )
}
