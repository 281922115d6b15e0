/** The API document is complete and well-formed, and matches the server's behaviour. */
import { fileURLToPath } from 'node:url'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, test } from 'vitest'
import { EVENT_TYPES } from '../src/contract/event-types.ts'
import { documentedPath, DocumentSchemas } from './api-document.ts'
import { ORCHESTRATIONS, RULES, WITHDRAWALS } from './paths.ts'
import { writtenOut } from './written-out.ts'
import { OPERATIONS, OPERATOR_OPERATIONS } from '../src/program/app.ts'
import { keyHooks } from '../src/http/idempotency-key.ts'
import { EXAMPLE, withRecords, type ExampleRecords } from '../src/contract/example-records.ts'
import { PROBLEM_EXAMPLES, PROBLEM_META } from '../src/contract/problem-examples.ts'
import { PROBLEMS, type ProblemSlug } from '../src/contract/problems.ts'
import { isWithoutOperations, SCOPES } from '../src/contract/scopes.ts'
import { BASE_URL, fund, newCustomer, startTestService, withdrawalOf, ownTestService } from './support.ts'

interface Schema {
  type?: string | string[]
  items?: Schema
  [limit: string]: unknown
}
interface Media {
  schema: object
  examples?: Record<string, { summary: string; value: Record<string, unknown> }>
}
interface Documented {
  operationId: string
  summary: string
  tags: string[]
  security: Record<string, string[]>[]
  description: string
  parameters?: { name: string; in: string; description?: string; schema: Schema; example?: unknown }[]
  requestBody?: { required: boolean; content: Record<string, Media> }
  responses: Record<string, { description: string; content: Record<string, Media> }>
}
interface Document {
  openapi: string
  servers: { url: string }[]
  paths: Record<string, Record<string, Documented>>
  components: {
    securitySchemes: Record<
      string,
      { flows: { clientCredentials: { tokenUrl: string; scopes: Record<string, string> } } }
    >
    schemas: Record<string, object>
  }
}

// For code generators, and for reviewers of a change to the API.
const SNAPSHOT = fileURLToPath(new URL('../openapi.json', import.meta.url))
const OF_OPERATORS = fileURLToPath(new URL('../console/openapi.json', import.meta.url))

const service = await ownTestService()
const customer = await newCustomer(service)
await fund(customer, '1000')
const reply = await service.app.inject('/openapi.json')
expect(reply.headers['content-type']).toMatch(/^application\/json\b/)
const source = reply.body
const document = writtenOut(reply.json<Document>())
const schemas = new DocumentSchemas(document)

const documented = (operation: { method: string; url: string }) =>
  document.paths[documentedPath(operation.url)]![operation.method.toLowerCase()]!
const nameOf = ({ method, url }: { method: string; url: string }) => `${method} ${url}`
const each = OPERATIONS.map((operation) => [nameOf(operation), operation] as const)

test('the document is OpenAPI 3.1 and passes the linter with all recommended rules', async () => {
  expect(document.openapi).toMatch(/^3\.1\./)
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config })
  const lines = problems.map(
    ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ''}`,
  )
  expect(lines).toEqual([])
})

test('documents every type of event with bodies that its schemas allow', () => {
  const { webhooks } = JSON.parse(source) as {
    webhooks: Record<
      string,
      { post: { requestBody: { content: Record<string, { examples: Record<string, { value: object }> }> } } }
    >
  }
  expect(Object.keys(webhooks)).toEqual(Object.keys(EVENT_TYPES))
  for (const [type, { post }] of Object.entries(webhooks))
    for (const [media, payload] of [
      ['application/json', 'thin'],
      ['application/cloudevents+json', 'full'],
    ] as const) {
      const { value } = post.requestBody.content[media]!.examples[payload]!
      const validate = schemas.at('webhooks', type, 'post', 'requestBody', 'content', media, 'schema')
      expect(validate(value), `${type} ${payload}`).toEqual([])
      expect(validate({ ...value, is_test: 5 }), type).not.toEqual([])
      if (payload === 'thin')
        expect(Object.keys(value)).toEqual(['id', 'type', 'source', 'time', 'object', 'is_test'])
      else expect(validate({ ...value, data: {} }), type).not.toEqual([])
    }
})

test('openapi.json equals the document that the service answers', async () => {
  const text = `${JSON.stringify(JSON.parse(source), null, 2)}\n`
  await expect(text, 'the API has changed; `npm run openapi` writes it down').toMatchFileSnapshot(SNAPSHOT)
})

test('the document of operators has their operations and routes, and is console/openapi.json', async () => {
  const { body } = await service.app.inject('/v2/operators/openapi.json')
  const { paths } = JSON.parse(body) as Document
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(found).toEqual(
    expect.arrayContaining(OPERATOR_OPERATIONS.map(({ method, url }) => `${method} ${documentedPath(url)}`)),
  )
  expect(found).toEqual(expect.arrayContaining(['PUT /v2/operators/{id}', 'GET /v2/operators/sessions']))
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source: body, absoluteRef: '/openapi.json', config })
  // Routes that are no operations name no refusals and no id.
  const known = ['operation-4xx-response', 'operation-operationId']
  expect(problems.filter(({ ruleId }) => !known.includes(ruleId))).toEqual([])
  await expect(`${JSON.stringify(JSON.parse(body), null, 2)}\n`).toMatchFileSnapshot(OF_OPERATORS)
})

test('the document has every operation of the service and no others', () => {
  const found = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(found.sort()).toEqual(OPERATIONS.map(({ method, url }) => `${method} ${documentedPath(url)}`).sort())
})

test('the document names this server, its token endpoint and exactly the existing scopes', async () => {
  expect(document.servers).toEqual([{ url: BASE_URL }])
  const { tokenUrl, scopes } = document.components.securitySchemes.oauth2!.flows.clientCredentials
  expect(tokenUrl).toBe(`${BASE_URL}/oauth2/token`)
  const opening = SCOPES.filter((scope) => !isWithoutOperations(scope)).sort()
  expect(Object.keys(scopes).sort()).toEqual(opening)
  const required = OPERATIONS.flatMap(({ scope }) => scope ?? [])
  expect([...new Set(required)].sort()).toEqual(opening)
})

test('each deprecated member names its replacement; the list equals API behaviour, Versioning', () => {
  const deprecated = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => deprecatedIn(operation, [method, path])),
  )
  const place = '200 application/json properties'
  expect(deprecated.map(([at]) => at).toSorted()).toEqual([
    `get ${ORCHESTRATIONS} responses ${place} orchestrations`,
    `get ${RULES} responses ${place} rules`,
  ])
  for (const [, said] of deprecated) expect(said).toMatch(/^Deprecated: .*`items`, which replaces it\.$/)
  expect(Object.values(document.components.schemas).flatMap((schema) => deprecatedIn(schema, []))).toEqual([])

  const { schema } = documented({ method: 'GET', url: ORCHESTRATIONS }).responses['200']!.content[
    'application/json'
  ]! as { schema: { required: string[]; properties: Record<string, { items: object }> } }
  const { items, orchestrations } = schema.properties
  expect(orchestrations!.items).toEqual(items!.items)
  expect(schema.required).toEqual(expect.arrayContaining(['items', 'orchestrations']))
})

/** Returns each deprecated member: its place in the document and its description. */
function deprecatedIn(value: unknown, place: string[]): [place: string, description: unknown][] {
  if (typeof value !== 'object' || value === null) return []
  const { deprecated, description } = value as { deprecated?: unknown; description?: unknown }
  return [
    ...(deprecated === true ? [[place.join(' '), description] as [string, unknown]] : []),
    ...Object.entries(value).flatMap(([name, inner]) =>
      deprecatedIn(inner, name === 'content' || name === 'schema' ? place : [...place, name]),
    ),
  ]
}

test('with an external issuer the document asks for a bearer token', async () => {
  const other = await startTestService({ BURSAR_OAUTH_ISSUER: 'https://issuer.example' })
  try {
    const { components } = (await other.app.inject('/openapi.json')).json<Document>()
    expect(components.securitySchemes.oauth2).toMatchObject({ type: 'http', scheme: 'bearer' })
    expect((await other.app.inject('/docs/json')).statusCode).toBe(200)
  } finally {
    await other.close()
  }
})

describe('problems', () => {
  const typed = Object.entries(PROBLEMS).filter(([, { explanation }]) => explanation !== undefined)

  test.each(typed)(
    '%s has a page with its title, status, meta members and an example',
    async (slug, kind) => {
      const { body, statusCode } = await service.app.inject(`/problems/${slug}`)
      expect(statusCode).toBe(200)
      const example = PROBLEM_EXAMPLES[slug as ProblemSlug].body(BASE_URL)
      const meta = PROBLEM_META[slug as ProblemSlug]!
      expect(Object.keys(meta).sort()).toEqual(Object.keys(example.meta as object).sort())
      for (const part of [kind.title, `HTTP status ${kind.status}`, JSON.stringify(example, null, 2)])
        expect(body).toContain(part)
      for (const member of Object.keys(meta)) expect(body).toContain(`<dt><code>${member}</code></dt>`)
    },
  )

  test('problems without an explanation and unknown slugs have no page', async () => {
    for (const slug of ['bad-request', 'internal-error', 'nothing', '__proto__'])
      expect((await service.app.inject(`/problems/${slug}`)).statusCode, slug).toBe(404)
  })
})

test('names that generators make collide with nothing', () => {
  const ids = OPERATIONS.map((operation) => documented(operation).operationId)
  const names = [...ids, ...Object.keys(document.components.schemas)].map((name) => name.toLowerCase())
  expect(new Set(names).size).toBe(names.length)
  // A verb and a noun, of which no word is all capitals.
  const verbs = [
    ...['add', 'advance', 'approve', 'cancel', 'create', 'deactivate', 'delete', 'deposit'],
    ...['explain', 'get', 'initiate', 'list', 'put', 'recover', 'reject', 'remove'],
    ...['resend', 'reset', 'rotate', 'search', 'set', 'test', 'update', 'verify'],
  ]
  for (const id of ids) expect(id).toMatch(new RegExp(`^(${verbs.join('|')})([A-Z][a-z]+)+$`))
})

test('an object of a union is a named schema: generators derive colliding names for others', () => {
  const inline = (value: unknown, at: string): string[] => {
    if (typeof value !== 'object' || value === null) return []
    const { anyOf = [], oneOf = [] } = value as { anyOf?: Schema[]; oneOf?: Schema[] }
    const choices = [...anyOf, ...oneOf]
    // Beside a boolean, one object takes the name of its property: oapi-codegen and openapi-python-client were tried.
    const isFlag = choices.length === 2 && choices[0]!.type === 'boolean'
    const objects = isFlag ? [] : choices.filter(({ type }) => type === 'object')
    const inner = Object.entries(value).flatMap(([name, each]) => inline(each, `${at}/${name}`))
    return [...objects.map(() => at), ...inner]
  }
  expect(inline(document, '#')).toEqual([])
})

test('the example of a list has records', () => {
  const lists = each.map(([, operation]) => [documented(operation), operation] as const)
  const listing = lists.filter(([{ operationId }]) => /^(list|search)/.test(operationId))
  expect(listing.length).toBeGreaterThan(30)
  for (const [{ operationId, responses }] of listing) {
    const { example = {} } = responses['200']!.content['application/json'] as { example?: object }
    const arrays = Object.values(example).filter(Array.isArray)
    expect(arrays.length, operationId).toBeGreaterThan(0)
    for (const array of arrays) expect(array, operationId).not.toEqual([])
  }
})

describe.each(each)('%s', (_, operation) => {
  test('documents its purpose, its scope and each parameter', () => {
    const { summary, description, tags, security, parameters = [] } = documented(operation)
    expect(description).toMatch(/\w \w.*\.$/s)
    expect(summary).toBe(operation.summary)
    expect(tags).toEqual([operation.tag])
    const scopes = [operation.scope ?? [], operation.alternativeScope ?? []].flat()
    expect(security).toEqual(scopes.map((scope) => ({ oauth2: [scope] })))
    const declared = { ...operation.params?.properties, ...operation.query?.properties }
    // A POST with a ref_id takes it in a header, too: test/accepted.slow.test.ts walks them.
    const key = keyHooks(operation).preValidation === undefined ? [] : ['Idempotency-Key']
    expect(parameters.map(({ name }) => name).sort()).toEqual([...key, ...Object.keys(declared)].sort())
    for (const { name, description = '' } of parameters) expect(description, name).toMatch(/\w \w.*\.$/)
  })

  test('documents its success and every kind of problem, each with an example', () => {
    const { responses } = documented(operation)
    const always = ['200', '400', '500', '503', ...(operation.scope === null ? [] : ['401', '403'])]
    const withBody = operation.body || ['POST', 'PUT'].includes(operation.method) ? ['413', '415'] : []
    expect(Object.keys(responses)).toEqual(expect.arrayContaining([...always, ...withBody]))
    const validate = schemas.at('components', 'schemas', 'Problem')
    for (const [status, { description, content }] of Object.entries(responses)) {
      expect(description, status).not.toBe('')
      if (status === '200') continue
      const { schema, examples = {} } = content['application/problem+json']!
      expect(schema).toEqual({ $ref: '#/components/schemas/Problem' })
      expect(Object.keys(examples).length, status).toBeGreaterThan(0)
      for (const [slug, { value }] of Object.entries(examples)) {
        expect(validate(value)).toEqual([])
        expect(PROBLEMS).toHaveProperty(slug)
        expect(value.status).toBe(Number(status))
        expect(value.type).toMatch(new RegExp(`^about:blank$|/problems/${slug}$`))
      }
    }
  })
})

test('each path parameter has an example, and each body a named example that its schema allows', () => {
  for (const [name, operation] of each) {
    const { parameters = [], requestBody } = documented(operation)
    for (const parameter of parameters) {
      if (parameter.in === 'path') expect(parameter, name).toHaveProperty('example')
    }
    expect(requestBody === undefined, name).toBe(operation.body === undefined)
    if (requestBody === undefined) continue
    expect(requestBody.required, name).toBe(true)
    const validate = schemas.body(operation)
    const bodies = Object.entries(requestBody.content['application/json']!.examples ?? {})
    expect(bodies.length, name).toBeGreaterThan(0)
    for (const [key, { summary, value }] of bodies) {
      expect(key).toMatch(/^[a-z0-9-]+$/)
      expect(summary).not.toBe('')
      expect(validate(value), `${name} ${key}`).toEqual([])
    }
  }
})

test('parameters have limits', () => {
  const unlimited = each.flatMap(([name, operation]) =>
    (documented(operation).parameters ?? [])
      .filter(({ schema }) => !isLimited(schema))
      .map((one) => [name, one.name]),
  )
  expect(unlimited).toEqual([])
})

/** No parameter takes text of any length, a number of any size or a list of any length. */
function isLimited(schema: Schema): boolean {
  if (schema.type === 'array') return schema.maxItems !== undefined && isLimited(schema.items!)
  if (schema.type === 'boolean') return true
  if (schema.type === 'object')
    return schema.maxProperties !== undefined && isLimited(schema.additionalProperties as Schema)
  if (schema.type === 'integer') return schema.minimum !== undefined && schema.maximum !== undefined
  return [schema.enum, schema.format, schema.maxLength, schema.pattern].some((limit) => limit !== undefined)
}

test('the ids of the demo replace those in the examples, and nothing else changes', () => {
  const records = Object.fromEntries(
    Object.keys(EXAMPLE).map((name) => [name, name === 'memo_id' ? 'ABCDEFGHIJKLMNOP' : crypto.randomUUID()]),
  ) as ExampleRecords
  const filled = withRecords(source, records)
  for (const [name, stable] of Object.entries(EXAMPLE)) {
    expect(source, name).toContain(stable)
    expect(filled).not.toContain(stable)
  }
  expect(filled).toHaveLength(source.length)
})

describe('replies match the document; accepted.slow.test.ts shows it of each operation', () => {
  test('the replies for a failed withdrawal and for a held one match too', async () => {
    // As the worker leaves such withdrawals.
    const failed = { invalid_destination_address: { message: 'no', destination_address: '0x1' } }
    const held = { name: 'PENDING_CUSTOMER_APPROVAL', detail: 'wait' }
    const settle =
      'update transfers set status = $2, secondary_status = $3, status_details = $4 where id = $1'
    const operation = { method: 'GET', url: '/v2/transfer/transfers/:id' }
    const validate = schemas.reply(operation)
    for (const values of [
      ['FAILED', null, failed],
      ['PENDING', held, null],
    ]) {
      const { body } = await customer.call('POST', WITHDRAWALS, withdrawalOf(customer))
      await service.db.query(settle, [body.id, ...values])
      const answer = await customer.call('GET', `/v2/transfer/transfers/${String(body.id)}`)
      expect(answer.body).toMatchObject({ status: values[0] })
      expect(answer.body.status_details ?? answer.body.secondary_status).toEqual(values[1] ?? values[2])
      expect(validate(answer.body)).toEqual([])
    }
  })

  test('a refusal matches the schema Problem', async () => {
    const validate = schemas.at('components', 'schemas', 'Problem')
    const answer = await customer.call('POST', WITHDRAWALS, withdrawalOf(customer, { amount: '5000' }))
    expect(answer.status).toBe(403)
    expect(validate(answer.body)).toEqual([])
  })

  test('the validator refuses a reply that the document does not allow', async () => {
    const validate = schemas.reply({ method: 'GET', url: '/v2/profiles/:id' })
    const { body } = await customer.call('GET', `/v2/profiles/${customer.profile_id}`)
    for (const wrong of [
      { type: 'NOPE' },
      { id: 5 },
      { id: 'x' },
      { nickname: undefined },
      { description: null },
    ]) {
      expect(validate({ ...body, ...wrong }), JSON.stringify(wrong)).not.toEqual([])
    }
  })
})
