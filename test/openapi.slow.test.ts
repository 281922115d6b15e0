/** The API document is complete and well-formed, and matches the server's behaviour. */
import { fileURLToPath } from 'node:url'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EVENT_TYPES } from '../src/contract/event-types.ts'
import { originOfLoop } from '../src/contract/actor.ts'
import { signStatement } from '../src/governance/approvals/approval-statement.ts'
import { readApproval } from '../src/rails/payouts/decide-approval.ts'
import { addTestApprover, withdrawWithApproval } from './approvers.ts'
import { writtenOut } from './written-out.ts'
import { OPERATIONS, OPERATOR_OPERATIONS } from '../src/program/app.ts'
import { keyHooks } from '../src/http/idempotency-key.ts'
import { transaction } from '../src/db/database.ts'
import { EXAMPLE, withRecords, type ExampleRecords } from '../src/contract/example-records.ts'
import { PROBLEM_EXAMPLES, PROBLEM_META } from '../src/contract/problem-examples.ts'
import { PROBLEMS, type ProblemSlug } from '../src/contract/problems.ts'
import { isWithoutOperations, SCOPES } from '../src/contract/scopes.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { setRewardRate } from '../src/resources/statements/reward-rates.ts'
import { lockMarket, writePrices } from '../src/resources/markets/write-prices.ts'
import {
  ROW_MACS,
  approve,
  BASE_URL,
  fund,
  insertStatements,
  newCustomer,
  startTestService,
  TEST_ORIGIN,
  type TestCustomer,
  type TestService,
  withdrawalOf,
} from './support.ts'

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

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const QUOTES = '/v2/transfer/fees/crypto-withdrawal'
const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'
const DEPOSITS = '/v2/sandbox/fiat-deposits'
const INTERNAL = '/v2/transfer/internal'
const PAXOS = '/v2/transfer/paxos'
const CONVERSIONS = '/v2/conversion/stablecoins'
const ADDRESSES = '/v2/transfer/deposit-addresses'
const FIAT_ACCOUNTS = '/v2/transfer/fiat-accounts'
const FIAT_WITHDRAWALS = '/v2/transfer/fiat-withdrawals'
const IDENTITIES = '/v2/identity/identities'
const ACCOUNTS = '/v2/identity/accounts'
const INSTITUTION_MEMBERS = '/v2/identity/institution-members'
const ACCOUNT_MEMBERS = '/v2/identity/account-members'
const RULES = '/v2/orchestration/rules'
const ORCHESTRATIONS = '/v2/orchestration/orchestrations'
const STATEMENTS = '/v2/statements'

const WEBHOOKS = '/v2/webhooks'
const APPROVALS = '/v2/approvals'

const DESTINATION = '0x52908400098527886E0F7030069857D2E4169EE7'
const PERSON = { first_name: 'Ada', last_name: 'Lovelace' }
const FIAT_ACCOUNT = {
  fiat_account_owner: { person_details: PERSON },
  fiat_network_instructions: { wire: { account_number: '1' } },
}

let service: TestService
let customer: TestCustomer
/** The ids of the customer's own records, by the field that holds them. */
let ids: Record<string, string>
let source: string
let document: Document

beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
  await fund(customer, '1000')
  ids = await recordsOf(customer)
  const reply = await service.app.inject('/openapi.json')
  expect(reply.headers['content-type']).toMatch(/^application\/json\b/)
  source = reply.body
  document = writtenOut(reply.json<Document>())
})
afterAll(() => service.close())

/** Creates one record of each kind that an example can name. */
async function recordsOf(of: TestCustomer): Promise<Record<string, string>> {
  const { profile_id, call } = of
  const made = async (url: string, body: object) =>
    (await call<Record<string, string>>('POST', url, body)).body
  const instructions = await made(INSTRUCTIONS, { profile_id, fiat_network: 'WIRE' })
  const second = await made('/v2/profiles', { nickname: 'Second' })
  const identity = await made(IDENTITIES, { ref_id: 'own', person_details: PERSON })
  await approve(of, identity.id!)
  const account = await made(ACCOUNTS, { account: { identity_id: identity.id } })
  return {
    profile_id,
    memo_id: instructions.memo_id!,
    from_profile_id: profile_id,
    to_profile_id: second.id!,
    identity_id: identity.id!,
    account_id: account.id!,
    fiat_account_id: (await made(FIAT_ACCOUNTS, FIAT_ACCOUNT)).id!,
    client_id: await unusedClient(),
  }
}
/** Returns the id of a new API client with one scope. */
const unusedClient = async () =>
  (await createApiClient(service.db, ROW_MACS, customer.customer_id, ['funding:read_profile'])).client_id

/** `/v2/profiles/:id` is `/v2/profiles/{id}` in the document. */
const pathOf = (url: string) => url.replaceAll(/:(\w+)/g, '{$1}')
const documented = (operation: { method: string; url: string }) =>
  document.paths[pathOf(operation.url)]![operation.method.toLowerCase()]!
const nameOf = ({ method, url }: { method: string; url: string }) => `${method} ${url}`
/** Operations on the whole program: sandbox-reset.program.test.ts and sandbox-clock.program.test.ts read their answers. */
const OF_A_PROGRAM = ['POST /v2/sandbox/reset', 'POST /v2/sandbox/clock']

const each = OPERATIONS.map((operation) => [nameOf(operation), operation] as const)

/**
 * One instance for all schemas: one instance per schema blocked the process for so long that the service took its
 * database for unreachable.
 */
let ajv: Ajv2020 | undefined

/** Returns the validator of the schema at this place in the document. */
function validatorOf(...place: string[]) {
  if (ajv === undefined) {
    ajv = new Ajv2020({ strict: false, allErrors: true })
    ajvFormats.default(ajv)
    ajv.addSchema(document, 'document')
  }
  const pointer = place.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
  const validate = ajv.compile({ $ref: `document#/${encodeURI(pointer)}` })
  return (value: unknown) => {
    validate(value)
    return validate.errors ?? []
  }
}

const schemaOf = ({ method, url }: { method: string; url: string }, ...rest: string[]) =>
  validatorOf('paths', pathOf(url), method.toLowerCase(), ...rest, 'schema')

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
      const validate = validatorOf('webhooks', type, 'post', 'requestBody', 'content', media, 'schema')
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
    expect.arrayContaining(OPERATOR_OPERATIONS.map(({ method, url }) => `${method} ${pathOf(url)}`)),
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
  expect(found.sort()).toEqual(OPERATIONS.map(({ method, url }) => `${method} ${pathOf(url)}`).sort())
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
    ...[
      'add',
      'advance',
      'approve',
      'cancel',
      'create',
      'deactivate',
      'delete',
      'deposit',
      'explain',
      'get',
      'initiate',
    ],
    ...[
      'list',
      'put',
      'recover',
      'reject',
      'remove',
      'resend',
      'reset',
      'rotate',
      'search',
      'set',
      'test',
      'update',
    ],
    'verify',
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
    // A POST with a ref_id takes it in a header, too: test/bad-input.slow.test.ts walks them.
    const key = keyHooks(operation).preValidation === undefined ? [] : ['Idempotency-Key']
    expect(parameters.map(({ name }) => name).sort()).toEqual([...key, ...Object.keys(declared)].sort())
    for (const { name, description = '' } of parameters) expect(description, name).toMatch(/\w \w.*\.$/)
  })

  test('documents its success and every kind of problem, each with an example', () => {
    const { responses } = documented(operation)
    const always = ['200', '400', '500', '503', ...(operation.scope === null ? [] : ['401', '403'])]
    const withBody = operation.body || ['POST', 'PUT'].includes(operation.method) ? ['413', '415'] : []
    expect(Object.keys(responses)).toEqual(expect.arrayContaining([...always, ...withBody]))
    const validate = validatorOf('components', 'schemas', 'Problem')
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
    const validate = schemaOf(operation, 'requestBody', 'content', 'application/json')
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

interface Added {
  members: { id: string }[]
}
interface MadeRule {
  rule: { source: { fiat?: { memo_id: string }; crypto?: { address: string; network: string } } }
}

describe('replies match the document', () => {
  const quote = (changes: object = {}) => ({
    asset: 'USDP',
    crypto_network: 'ETHEREUM',
    destination_address: DESTINATION,
    amount: '10',
    ...changes,
  })
  const rule = (changes: object) => ({
    ref_id: crypto.randomUUID(),
    profile_id: ids.profile_id,
    source_asset: 'USD',
    destination_asset: 'USDP',
    source: { fiat: {} },
    ...changes,
  })
  const orchestration = (changes: object) => ({
    ref_id: crypto.randomUUID(),
    source_asset: 'USD',
    destination_asset: 'USDP',
    source_amount: '10',
    source: { profile: { profile_id: ids.profile_id } },
    ...changes,
  })
  const held = () => ({ identity_id: ids.identity_id, account_id: ids.account_id, metadata: { a: 'b' } })
  const destinations = () => [
    {},
    { destination: { profile: { profile_id: ids.to_profile_id } } },
    { destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } } },
    { destination_asset: 'USD', destination: { fiat: { fiat_account_id: ids.fiat_account_id, memo: 'm' } } },
  ]
  /** Returns the ids of the records in a list. */
  const listed = async (url: string) => {
    const { body } = await customer.call<{ items: { id: string }[] }>('GET', url)
    return body.items.map(({ id }) => id)
  }
  const hook = (changes: object = {}) => ({
    name: crypto.randomUUID(),
    url: 'https://hooks.example.com/',
    event_types: ['*'],
    ...changes,
  })
  /** Creates a withdrawal that waits for approvers, and returns the path of its approval and a signed decision. */
  const signed = async (decision: 'APPROVE' | 'REJECT') => {
    const { approval_id } = await withdrawWithApproval(service, customer, originOfLoop('test'))
    const { id: approver_id, jwk } = await addTestApprover(service.owner, customer.customer_id)
    const { statements } = await readApproval(service.db, customer.customer_id, approval_id)
    return {
      path: `${APPROVALS}/${approval_id}`,
      body: { approver_id, ...signStatement(statements[decision], jwk) },
    }
  }
  /** Creates a webhook in place of those before, and returns its path. */
  const webhook = async () => {
    for (const id of await listed(WEBHOOKS)) await customer.call('DELETE', `${WEBHOOKS}/${id}`)
    const { body } = await customer.call<{ webhook: { id: string } }>('POST', WEBHOOKS, hook())
    return `${WEBHOOKS}/${body.webhook.id}`
  }
  /** Creates a webhook with a delivered test, and returns its path and the event. */
  const delivered = async () => {
    const path = await webhook()
    const { body } = await customer.call<{ id: string }>('POST', `${path}/test`, { type: 'statement.paid' })
    await service.owner.query(
      `update webhook_deliveries set status = 'DELIVERED', attempts = 1, due_at = null, ended_at = created_at
       where event_id = $1`,
      [body.id],
    )
    await service.owner.query(
      `insert into webhook_attempts (customer_id, webhook_id, event_id, id, created_at, attempt, status_code, duration_ms,
                                     response)
       select customer_id, webhook_id, event_id, event_id, created_at, 1, 200, 12, 'ok'
       from webhook_deliveries where event_id = $1`,
      [body.id],
    )
    return { path, event: body.id }
  }
  /** Writes the prices of three minutes of one market. */
  const price = () =>
    transaction(service.db, async (tx) => {
      const id = await lockMarket(tx, 'BTCUSD', 'REAL')
      const prices: [string[]] = [['63450.125', '63450', '1']]
      await writePrices(tx, id!, { coversMinutes: 1, minute: [1, 2, 3], second: [0, 0, 0], prices })
    })
  /** The ids of the customer's statements, which are inserted once. */
  let statementIds: Promise<string[]> | undefined
  const statements = () => (statementIds ??= insertStatements(service.db, customer.customer_id))
  const internal = () => {
    const { from_profile_id, to_profile_id } = ids
    return { asset: 'USD', amount: '1', from_profile_id, to_profile_id }
  }
  const wire = () => {
    const { profile_id, fiat_account_id } = ids
    return { profile_id, asset: 'USD', fiat_account_id, amount: '1' }
  }
  const anInstitution = async () => {
    const body = { ref_id: crypto.randomUUID(), institution_details: { name: 'A' } }
    return (await customer.call<{ id: string }>('POST', IDENTITIES, body)).body.id
  }
  const anAccount = async () => {
    const account = { identity_id: ids.identity_id }
    return (await customer.call<{ id: string }>('POST', ACCOUNTS, { account })).body.id
  }
  /** Creates orchestrations of every kind: from a profile, from deposits by wire and by crypto, and a FAILED one. */
  async function orchestrate() {
    for (const destination of destinations()) {
      await customer.call('POST', ORCHESTRATIONS, orchestration({ ...held(), ...destination }))
    }
    const wired = await customer.call<MadeRule>('POST', RULES, rule({}))
    const { memo_id } = wired.body.rule.source.fiat!
    const wire = { amount: '1', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }
    await customer.call('POST', DEPOSITS, wire)
    const onChain = { source_asset: 'USDG', destination_asset: 'USD', source: { crypto: { network: 'INK' } } }
    const sent = await customer.call<MadeRule>('POST', RULES, rule(onChain))
    const { address: crypto_address, network: crypto_network } = sent.body.rule.source.crypto!
    await customer.call('POST', `/v2/sandbox/profiles/${ids.profile_id!}/deposit`, {
      asset: 'USDG',
      amount: '1',
      crypto_network,
      crypto_address,
    })
    // As the worker leaves a failed orchestration.
    await service.db.query(
      "update orchestrations set status = 'FAILED', fail_reason = 'why' where source_asset = 'USDG'",
    )
    const statuses = await service.db.query<{ status: string }>('select distinct status from orchestrations')
    expect(statuses.rows.map(({ status }) => status).sort()).toEqual(['COMPLETED', 'FAILED', 'PROCESSING'])
  }

  /** For each operation, requests that are answered with 200. For lists, they create the listed records first. */
  const REQUESTS: Record<string, () => Promise<[url: string, body?: object][]>> = {
    [`POST ${WITHDRAWALS}/bulk`]: async () => [
      [
        `${WITHDRAWALS}/bulk`,
        {
          withdrawals: [
            withdrawalOf(customer, { ref_id: 'bulk 1' }),
            withdrawalOf(customer, { ref_id: 'bulk 1' }),
            withdrawalOf(customer, { ref_id: 'bulk 2', amount: '5000' }),
            {},
          ],
        },
      ],
    ],
    [`POST ${WITHDRAWALS}`]: async () => [
      [WITHDRAWALS, withdrawalOf(customer)],
      [
        WITHDRAWALS,
        withdrawalOf(customer, {
          ref_id: 'documented',
          memo: 'm',
          metadata: { a: 'b', 'c\nd': '' },
          beneficiary: { institution_details: { name: 'Example Ltd' } },
        }),
      ],
    ],
    [`POST ${DEPOSITS}`]: async () => [
      [
        DEPOSITS,
        { amount: '1', asset: 'USD', memo_id: ids.memo_id, fiat_network_instructions: { wire: {} } },
      ],
    ],
    'POST /v2/sandbox/profiles/:id/deposit': async () => [
      [`/v2/sandbox/profiles/${ids.profile_id!}/deposit`, { asset: 'USD', amount: '1' }],
      [`/v2/sandbox/profiles/${ids.profile_id!}/deposit`, { asset: 'BTC', amount: '.1' }],
    ],
    'POST /v2/sandbox/customers': async () => [
      ['/v2/sandbox/customers', { name: 'Documented' }],
      ['/v2/sandbox/customers', {}],
    ],
    'POST /v2/profiles': async () => [
      ['/v2/profiles', { nickname: 'Documented', description: 'With one' }],
      ['/v2/profiles', { nickname: 'Without one' }],
    ],
    'GET /v2/profiles': async () => [['/v2/profiles'], ['/v2/profiles?limit=1']],
    'PUT /v2/profiles/:id': async () => [
      [`/v2/profiles/${ids.to_profile_id!}`, { nickname: 'Renamed', description: 'By a PUT' }],
    ],
    'PUT /v2/profiles/:id/deactivate': async () => {
      const { body } = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'To end' })
      const path = `/v2/profiles/${body.id}/deactivate`
      return [[path], [path, {}]]
    },
    'GET /v2/profiles/:id': async () => [[`/v2/profiles/${customer.profile_id}`]],
    'GET /v2/profiles/:id/balances': async () => [
      [`/v2/profiles/${customer.profile_id}/balances`],
      [`/v2/profiles/${customer.profile_id}/balances?at=2200-01-01T00:00:00Z`],
    ],
    'GET /v2/profiles/:id/entries': async () => [[`/v2/profiles/${customer.profile_id}/entries`]],
    'GET /v2/profiles/:id/balances/:asset': async () =>
      ['USD', 'BTC'].map((asset) => [`/v2/profiles/${customer.profile_id}/balances/${asset}`]),
    'GET /v2/transfer/transfers/:id': async () => {
      const { body } = await customer.call<{ items: { id: string }[] }>('GET', '/v2/transfer/transfers')
      return body.items.map(({ id }) => [`/v2/transfer/transfers/${id}`])
    },
    'GET /v2/transfer/transfers/:id/history': async () => {
      const { body } = await customer.call<{ items: { id: string }[] }>('GET', '/v2/transfer/transfers')
      return body.items.map(({ id }) => [`/v2/transfer/transfers/${id}/history`])
    },
    'GET /v2/transfer/transfers/:id/verification': async () => {
      const { body } = await customer.call<{ items: { id: string }[] }>('GET', '/v2/transfer/transfers')
      return body.items.map(({ id }) => [`/v2/transfer/transfers/${id}/verification`])
    },
    'GET /v2/search': async () => [
      [`/v2/search?q=${customer.profile_id}`],
      ['/v2/search?q=nobody'],
      ['/v2/search?q=10'],
    ],
    'POST /v2/transfer/transfers/:id/cancel': async () => {
      const { body } = await customer.call<{ id: string }>('POST', WITHDRAWALS, withdrawalOf(customer))
      const path = `/v2/transfer/transfers/${body.id}/cancel`
      return [[path], [path, {}]]
    },
    'GET /v2/transfer/transfers': async () => [
      ['/v2/transfer/transfers'],
      ['/v2/transfer/transfers?limit=1'],
    ],
    [`POST ${INSTRUCTIONS}`]: async () => [
      [INSTRUCTIONS, { profile_id: customer.profile_id, fiat_network: 'WIRE' }],
      [
        INSTRUCTIONS,
        {
          profile_id: customer.profile_id,
          fiat_network: 'WIRE',
          routing_number_type: 'SWIFT',
          ref_id: 'documented',
          metadata: { a: 'b' },
        },
      ],
    ],
    [`GET ${INSTRUCTIONS}/:id`]: async () =>
      (await listed(INSTRUCTIONS)).map((id) => [`${INSTRUCTIONS}/${id}`]),
    [`GET ${INSTRUCTIONS}`]: async () => [[INSTRUCTIONS], [`${INSTRUCTIONS}?limit=1`]],
    [`POST ${INTERNAL}`]: async () => [
      [INTERNAL, { ...internal(), memo: 'm', ref_id: 'internal', metadata: { a: 'b' } }],
      [INTERNAL, internal()],
    ],
    [`POST ${PAXOS}`]: async () => {
      const { profile_id } = await newCustomer(service)
      const body = { asset: 'USD', amount: '1', from_profile_id: ids.profile_id, to_profile_id: profile_id }
      return [
        [PAXOS, { ...body, ref_id: 'paxos', recipient_metadata: {}, ...held() }],
        [PAXOS, body],
      ]
    },
    [`POST ${CONVERSIONS}`]: async () => {
      const body = { profile_id: ids.profile_id, amount: '1', source_asset: 'USD', target_asset: 'USDG' }
      return [
        [CONVERSIONS, { ...body, ref_id: 'converted', ...held() }],
        [CONVERSIONS, body],
      ]
    },
    [`GET ${CONVERSIONS}`]: async () => [[CONVERSIONS], [`${CONVERSIONS}?limit=1`]],
    [`GET ${CONVERSIONS}/:id`]: async () => {
      const body = { profile_id: ids.profile_id, amount: '1', source_asset: 'USD', target_asset: 'USDG' }
      const made = await customer.call<{ id: string }>('POST', CONVERSIONS, body)
      return [[`${CONVERSIONS}/${made.body.id}`]]
    },
    [`POST ${ADDRESSES}`]: async () => [
      [ADDRESSES, { profile_id: ids.profile_id, crypto_network: 'ETHEREUM' }],
      [
        ADDRESSES,
        {
          profile_id: ids.profile_id,
          crypto_network: 'STELLAR',
          ref_id: 'documented',
          conversion_target_asset: 'USD',
          ...held(),
        },
      ],
    ],
    [`GET ${ADDRESSES}`]: async () => {
      const address = { profile_id: ids.profile_id, crypto_network: 'BITCOIN' }
      for (const body of [address, { ...address, ...held() }]) await customer.call('POST', ADDRESSES, body)
      return [[ADDRESSES], [`${ADDRESSES}?limit=1`]]
    },
    [`GET ${FIAT_ACCOUNTS}`]: async () => [
      [FIAT_ACCOUNTS],
      [`${FIAT_ACCOUNTS}?limit=1&include_deleted=true`],
    ],
    [`GET ${FIAT_ACCOUNTS}/:id`]: async () =>
      (await listed(FIAT_ACCOUNTS)).map((id) => [`${FIAT_ACCOUNTS}/${id}`]),
    [`PUT ${FIAT_ACCOUNTS}/:id`]: async () => [
      [`${FIAT_ACCOUNTS}/${ids.fiat_account_id!}`, { metadata: { a: 'b' } }],
    ],
    [`DELETE ${FIAT_ACCOUNTS}/:id`]: async () => {
      const wire = { account_number: '1' }
      const { body } = await customer.call<{ id: string }>('POST', FIAT_ACCOUNTS, {
        fiat_account_owner: { institution_details: { name: 'Example Ltd' } },
        fiat_network_instructions: { wire },
      })
      return [[`${FIAT_ACCOUNTS}/${body.id}`], [`${FIAT_ACCOUNTS}/${body.id}`]]
    },
    [`POST ${FIAT_ACCOUNTS}`]: async () => [
      [FIAT_ACCOUNTS, FIAT_ACCOUNT],
      [
        FIAT_ACCOUNTS,
        {
          fiat_account_owner: { institution_details: { name: 'Example Ltd', x: 1 } },
          fiat_network_instructions: {
            wire: { routing_details: { bank_address: { city: 'London', floor: 2 } } },
          },
          ref_id: 'documented',
          ...held(),
        },
      ],
    ],
    [`POST ${FIAT_WITHDRAWALS}`]: async () => [
      [FIAT_WITHDRAWALS, wire()],
      [FIAT_WITHDRAWALS, { ...wire(), ref_id: 'wire', memo: 'm', ...held() }],
    ],
    [`POST ${IDENTITIES}`]: async () => [
      [
        IDENTITIES,
        {
          ref_id: 'person',
          person_details: {
            ...PERSON,
            date_of_birth: '1815-12-10',
            address: { city: 'London', floor: 2 },
            email: 'ada@example.com',
            phone_number: '1',
            nationality: 'GB',
            x: [null],
          },
          tax_details: [{ tax_payer_id: '1', tax_payer_country: 'GB', x: 1 }],
          tax_details_not_required: false,
          customer_due_diligence: { source_of_wealth: 'INHERITANCE', x: [null] },
          is_merchant: true,
          metadata: { a: 'b' },
        },
      ],
      [
        IDENTITIES,
        {
          ref_id: 'institution',
          institution_details: { name: 'A', business_address: {}, institution_type: 'LLC', email: 'a@b.c' },
          institution_members: [
            { identity_id: ids.identity_id, roles: ['TRUSTEE'], ownership: '1', position: 'p', name: 'n' },
          ],
        },
      ],
    ],
    [`GET ${IDENTITIES}`]: async () => {
      const body = { ref_id: 'another', institution_details: { name: 'A' } }
      await customer.call('POST', IDENTITIES, body)
      const all = 'include_details=true&include_institution_members=true'
      return [[IDENTITIES], [`${IDENTITIES}?limit=1`], [`${IDENTITIES}?${all}`]]
    },
    [`GET ${IDENTITIES}/:id`]: async () =>
      (await listed(IDENTITIES)).flatMap((id) => [
        [`${IDENTITIES}/${id}`],
        [`${IDENTITIES}/${id}?include_details=false&include_institution_members=true`],
      ]),
    [`PUT ${IDENTITIES}/:id`]: async () => [
      [`${IDENTITIES}/${ids.identity_id!}`, { person_details: { phone_number: '2' }, is_merchant: false }],
      [
        `${IDENTITIES}/${ids.identity_id!}`,
        {
          tax_details: [{ tax_payer_id: '1' }],
          set_tax_details_not_required: true,
          customer_due_diligence: { x: 1 },
          last_kyc_refresh_date: '2026-01-31T09:30:00Z',
          metadata: {},
          set_user_disabled: false,
        },
      ],
    ],
    [`POST ${INSTITUTION_MEMBERS}`]: async () => {
      const member = { identity_id: ids.identity_id, roles: ['TRUSTEE', 'GRANTOR'] }
      return Promise.all(
        [{}, { ownership: '1', position: 'p', name: 'n' }].map(async (more): Promise<[string, object]> => {
          const institution_id = await anInstitution()
          return [INSTITUTION_MEMBERS, { institution_id, members: [{ ...member, ...more }] }]
        }),
      )
    },
    [`DELETE ${INSTITUTION_MEMBERS}/:id`]: async () => {
      const institution_id = await anInstitution()
      const members = [{ identity_id: ids.identity_id, roles: ['TRUSTEE'] }]
      const { body } = await customer.call<Added>('POST', INSTITUTION_MEMBERS, { institution_id, members })
      return [[`${INSTITUTION_MEMBERS}/${body.members[0]!.id}`]]
    },
    [`PUT ${IDENTITIES}/:id/sandbox-status`]: async () => [
      [`${IDENTITIES}/${ids.identity_id!}/sandbox-status`, { status: 'ERROR', user_disabled: true }],
      [
        `${IDENTITIES}/${ids.identity_id!}/sandbox-status`,
        { id_verification_status: 'PENDING', admin_disabled: { disabled: false } },
      ],
      [`${IDENTITIES}/${ids.identity_id!}/sandbox-status`, { status: 'APPROVED', user_disabled: false }],
    ],
    [`POST ${ACCOUNTS}`]: async () => [
      [ACCOUNTS, { account: { identity_id: ids.identity_id } }],
      [
        ACCOUNTS,
        {
          account: {
            identity_id: ids.identity_id,
            ref_id: 'documented',
            type: 'ROTH_IRA',
            description: 'd',
            metadata: { a: 'b' },
            members: [{ identity_id: ids.identity_id, roles: ['FINANCIAL_ADVISOR', 'AUTHORIZED_USER'] }],
          },
          create_profile: true,
        },
      ],
    ],
    [`GET ${ACCOUNTS}`]: async () => {
      const account = { identity_id: ids.identity_id, members: [{ identity_id: ids.identity_id }] }
      await customer.call('POST', ACCOUNTS, { account, create_profile: true })
      return [[ACCOUNTS], [`${ACCOUNTS}?limit=1`]]
    },
    [`PUT ${ACCOUNTS}`]: async () => [
      [ACCOUNTS, { account: { id: ids.account_id, description: 'd', metadata: {} } }],
      [ACCOUNTS, { account: { id: ids.account_id }, set_user_disabled: false }],
    ],
    [`POST ${ACCOUNT_MEMBERS}`]: async () =>
      Promise.all(
        [{}, { type: 'FINANCIAL_ADVISOR' }].map(async (more): Promise<[string, object]> => {
          const account_id = await anAccount()
          return [ACCOUNT_MEMBERS, { account_id, members: [{ identity_id: ids.identity_id, ...more }] }]
        }),
      ),
    [`DELETE ${ACCOUNT_MEMBERS}/:id`]: async () => {
      const members = [{ identity_id: ids.identity_id }]
      const body = { account_id: await anAccount(), members }
      const added = await customer.call<Added>('POST', ACCOUNT_MEMBERS, body)
      return [[`${ACCOUNT_MEMBERS}/${added.body.members[0]!.id}`]]
    },
    [`GET ${ACCOUNTS}/:id`]: async () => (await listed(ACCOUNTS)).map((id) => [`${ACCOUNTS}/${id}`]),
    [`POST ${RULES}`]: async () => [
      ...destinations().map((destination): [string, object] => [RULES, rule(destination)]),
      [RULES, rule({ source: { fiat: { network: 'WIRE', account_type: 'CHECKING' } }, nickname: 'n' })],
      [
        RULES,
        rule({ source_asset: 'USDG', destination_asset: 'USD', source: { crypto: { network: 'SOLANA' } } }),
      ],
      [
        RULES,
        rule({
          source: { profile: { profile_id: ids.profile_id } },
          source_asset: 'USDP',
          destination_asset: 'USD',
        }),
      ],
    ],
    [`GET ${RULES}`]: async () => {
      for (const destination of destinations()) await customer.call('POST', RULES, rule(destination))
      return [[RULES], [`${RULES}?limit=1`]]
    },
    [`DELETE ${RULES}/:id`]: async () => {
      const { body } = await customer.call<{ rule: { id: string } }>('POST', RULES, rule({}))
      const path = `${RULES}/${body.rule.id}`
      return [[path], [path]]
    },
    [`POST ${ORCHESTRATIONS}`]: async () => [
      ...destinations().map((destination): [string, object] => [ORCHESTRATIONS, orchestration(destination)]),
      [ORCHESTRATIONS, orchestration(held())],
    ],
    [`GET ${ORCHESTRATIONS}`]: async () => {
      await orchestrate()
      return [[ORCHESTRATIONS], [`${ORCHESTRATIONS}?limit=1`]]
    },
    [`GET ${ORCHESTRATIONS}/:id`]: async () => {
      await orchestrate()
      return (await listed(ORCHESTRATIONS)).map((id) => [`${ORCHESTRATIONS}/${id}`])
    },
    'PUT /v2/transfer/crypto-destination-address': async () => [
      ['/v2/transfer/crypto-destination-address', { crypto_network: 'ETHEREUM', address: DESTINATION }],
      [
        '/v2/transfer/crypto-destination-address',
        {
          crypto_network: 'ETHEREUM',
          address: DESTINATION,
          identity_id: ids.identity_id,
          nickname: 'Supplier',
          bookmarked_status: true,
          travelrule_metadata: { custodian_type: 'VASP' },
        },
      ],
    ],
    'GET /v2/transfer/crypto-destination-addresses': async () => {
      for (const crypto_network of ['BASE', 'INK'])
        await customer.call('PUT', '/v2/transfer/crypto-destination-address', {
          crypto_network,
          address: DESTINATION,
        })
      const list = '/v2/transfer/crypto-destination-addresses'
      return [[list], [`${list}?limit=1`]]
    },
    'GET /v2/audit-log': async () => [['/v2/audit-log'], ['/v2/audit-log?limit=1&actor_type=API_CLIENT']],
    'GET /v2/audit-log/verification': async () => [['/v2/audit-log/verification']],
    'GET /v2/events': async () => [['/v2/events'], ['/v2/events?limit=1&order=DESC']],
    'GET /v2/events/:id': async () => (await listed('/v2/events')).map((id) => [`/v2/events/${id}`]),
    'GET /v2/api-creds/credentials': async () => {
      await unusedClient()
      return [['/v2/api-creds/credentials'], ['/v2/api-creds/credentials?limit=1']]
    },
    'POST /v2/api-creds/credentials/:client_id/rotate': async () => {
      const path = `/v2/api-creds/credentials/${await unusedClient()}/rotate`
      return [
        [path, {}],
        [path, { grace_seconds: 0 }],
      ]
    },
    'DELETE /v2/api-creds/credentials/:client_id': async () => {
      const path = `/v2/api-creds/credentials/${await unusedClient()}`
      return [[path], [path]]
    },
    [`POST ${WEBHOOKS}`]: async () => [
      [WEBHOOKS, hook()],
      [
        WEBHOOKS,
        hook({
          payload: 'FULL',
          auth: { type: 'API_KEY', header: 'x-api-key', key: 'k' },
          profile_ids: [ids.profile_id],
          status: 'DISABLED',
        }),
      ],
    ],
    [`GET ${WEBHOOKS}`]: async () => {
      await webhook()
      return [[WEBHOOKS], [`${WEBHOOKS}?limit=1`]]
    },
    [`GET ${WEBHOOKS}/:id`]: async () => {
      const path = await webhook()
      await customer.call('POST', `${path}/rotate-secret`, {})
      return [[path]]
    },
    [`PUT ${WEBHOOKS}/:id`]: async () => [[await webhook(), { status: 'DISABLED', profile_ids: [] }]],
    [`DELETE ${WEBHOOKS}/:id`]: async () => [[await webhook()]],
    [`POST ${WEBHOOKS}/:id/rotate-secret`]: async () => [[`${await webhook()}/rotate-secret`, {}]],
    [`POST ${WEBHOOKS}/:id/test`]: async () => [[`${await webhook()}/test`, { type: 'webhook.disabled' }]],
    [`POST ${WEBHOOKS}/:id/recover`]: async () => [
      [`${await webhook()}/recover`, { since: '2026-01-01T00:00:00Z' }],
    ],
    [`GET ${WEBHOOKS}/:id/deliveries`]: async () => [[`${(await delivered()).path}/deliveries`]],
    [`GET ${WEBHOOKS}/:id/deliveries/:delivery_id/attempts`]: async () => {
      const { path, event } = await delivered()
      return [[`${path}/deliveries/${event}/attempts`]]
    },
    'POST /v2/events/:id/resend': async () => [[`/v2/events/${(await delivered()).event}/resend`, {}]],
    [`GET ${APPROVALS}`]: async () => {
      await withdrawWithApproval(service, customer, originOfLoop('test'))
      await signed('REJECT')
      return [[APPROVALS], [`${APPROVALS}?limit=1`]]
    },
    [`GET ${APPROVALS}/:id`]: async () => [[(await signed('APPROVE')).path]],
    [`POST ${APPROVALS}/:id/approve`]: async () => {
      const { path, body } = await signed('APPROVE')
      return [[`${path}/approve`, body]]
    },
    [`POST ${APPROVALS}/:id/reject`]: async () => {
      const { path, body } = await signed('REJECT')
      return [[`${path}/reject`, body]]
    },
    'GET /v2/markets': async () => {
      await price()
      return [['/v2/markets']]
    },
    'PUT /v2/policy': async () => [
      [
        '/v2/policy',
        {
          rules: [
            { id: 'day', limit: { amount: '1000000', asset: 'USD', period_seconds: 86400 }, action: 'BLOCK' },
            { match: { destination: 'ADDRESS_BOOK' }, action: 'ALLOW' },
          ],
          address_book: { cooling_seconds: 0 },
        },
      ],
    ],
    'GET /v2/policy': async () => [['/v2/policy']],
    'GET /v2/policy/versions': async () => [['/v2/policy/versions'], ['/v2/policy/versions?before=2']],
    'GET /v2/transfer/limits/utilizations': async () => [
      ['/v2/transfer/limits/utilizations'],
      ['/v2/transfer/limits/utilizations?transfer_type=WIRE_WITHDRAWAL'],
    ],
    'GET /v2/all-markets/prices': async () => {
      await price()
      return [['/v2/all-markets/prices'], ['/v2/all-markets/prices?markets=BTCUSD&markets=ETHUSD']]
    },
    'GET /v2/markets/:market/ticker': async () => {
      await price()
      return [['/v2/markets/BTCUSD/ticker'], ['/v2/markets/ETHUSD/ticker']]
    },
    'GET /v2/markets/:market/historical-prices': async () => {
      await price()
      const path = '/v2/markets/BTCUSD/historical-prices'
      return [[path], [`${path}?increment=ONE_MINUTE&pagination.limit=1`], [`${path}?max_data_points=1`]]
    },
    'GET /v2/markets/:market/historical-candles': async () => {
      await price()
      const path = '/v2/markets/BTCUSD/historical-candles'
      return [[path], [`${path}?increment=ONE_MINUTE&limit=1`], [`${path}?max_data_points=1`]]
    },
    'GET /v2/assets': async () => [['/v2/assets']],
    'GET /v2/transfer/volumes': async () => [
      ['/v2/transfer/volumes'],
      ['/v2/transfer/volumes?created_at.lt=2026-01-01T00:00:00Z'],
    ],
    'GET /v2/balances/history': async () => [
      ['/v2/balances/history'],
      ['/v2/balances/history?assets=BTC&days=1'],
    ],
    'GET /v2/networks': async () => [['/v2/networks']],
    'GET /v2/statements/payments': async () => {
      await statements()
      return [['/v2/statements/payments'], ['/v2/statements/payments?limit=1']]
    },
    'GET /v2/rewards/statements': async () => {
      await statements()
      return [['/v2/rewards/statements'], ['/v2/rewards/statements?limit=1']]
    },
    'GET /v2/rewards/statements/:id': async () =>
      (await statements()).map((id) => [`/v2/rewards/statements/${id}`]),
    'GET /v2/statements/:id/explanation': async () =>
      // The last one is not generated yet.
      (await statements()).slice(0, 2).map((id) => [`/v2/statements/${id}/explanation`]),
    'GET /v2/rewards/rates': async () => {
      await setRewardRate(service.db, '2026-01-01', '0.0376', TEST_ORIGIN)
      return [['/v2/rewards/rates']]
    },
    [`GET ${STATEMENTS}`]: async () => {
      await statements()
      const path = `${STATEMENTS}?customer_id=${customer.customer_id}`
      return [[path], [`${path}&limit=1`]]
    },
    [`POST ${QUOTES}`]: async () => [
      [QUOTES, quote()],
      [QUOTES, quote({ amount: undefined, total: '11' })],
    ],
  }

  test('REQUESTS has every operation and no others', () => {
    expect([...Object.keys(REQUESTS), ...OF_A_PROGRAM].sort()).toEqual(OPERATIONS.map(nameOf).sort())
  })

  test.each(each.filter(([name]) => !OF_A_PROGRAM.includes(name)))('%s', async (name, operation) => {
    const validate = schemaOf(operation, 'responses', '200', 'content', 'application/json')
    const requests = await REQUESTS[name]!()
    expect(requests.length).toBeGreaterThan(0)
    for (const [url, body] of requests) {
      const answer = await customer.call(operation.method, url, body)
      expect(answer.status, JSON.stringify(answer.body)).toBe(200)
      expect(validate(answer.body), JSON.stringify(answer.body)).toEqual([])
    }
  })

  test('the replies for a failed withdrawal and for a held one match too', async () => {
    // As the worker leaves such withdrawals.
    const failed = { invalid_destination_address: { message: 'no', destination_address: '0x1' } }
    const held = { name: 'PENDING_CUSTOMER_APPROVAL', detail: 'wait' }
    const settle =
      'update transfers set status = $2, secondary_status = $3, status_details = $4 where id = $1'
    const operation = { method: 'GET', url: '/v2/transfer/transfers/:id' }
    const validate = schemaOf(operation, 'responses', '200', 'content', 'application/json')
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
    const validate = validatorOf('components', 'schemas', 'Problem')
    const answer = await customer.call('POST', WITHDRAWALS, withdrawalOf(customer, { amount: '5000' }))
    expect(answer.status).toBe(403)
    expect(validate(answer.body)).toEqual([])
  })

  test('the validator refuses a reply that the document does not allow', async () => {
    const validate = schemaOf(
      { method: 'GET', url: '/v2/profiles/:id' },
      'responses',
      '200',
      'content',
      'application/json',
    )
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
