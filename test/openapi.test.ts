/** The API document: what it says is complete, well-formed and true of the server. */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OPERATIONS } from '../src/app.ts'
import { PROBLEMS } from '../src/http/problems.ts'
import { SCOPES } from '../src/http/scopes.ts'
import {
  BASE_URL,
  fund,
  newCustomer,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from './support.ts'

interface Media {
  schema: object
  example?: object
  examples?: Record<string, { value: Record<string, unknown> }>
}
interface Documented {
  operationId: string
  summary: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters?: { name: string; in: string; description?: string; schema: object }[]
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

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const QUOTES = '/v2/transfer/fees/crypto-withdrawal'
const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'
const DEPOSITS = '/v2/sandbox/fiat-deposits'

let service: TestService
let customer: TestCustomer
let memo_id: string
let source: string
let document: Document

beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
  await fund(customer, '1000')
  const instructions = { profile_id: customer.profile_id, fiat_network: 'WIRE' }
  memo_id = String((await customer.call('POST', INSTRUCTIONS, instructions)).body.memo_id)
  const reply = await service.app.inject('/openapi.json')
  expect(reply.headers['content-type']).toMatch(/^application\/json\b/)
  source = reply.body
  document = reply.json<Document>()
})
afterAll(() => service.close())

/** `/v2/profiles/:id` is `/v2/profiles/{id}` in the document. */
const pathOf = (url: string) => url.replaceAll(/:(\w+)/g, '{$1}')
const documented = (operation: { method: string; url: string }) =>
  document.paths[pathOf(operation.url)]![operation.method.toLowerCase()]!
const nameOf = ({ method, url }: { method: string; url: string }) => `${method} ${url}`
const each = OPERATIONS.map((operation) => [nameOf(operation), operation] as const)

/** The validator of a schema of the document, by its place there. */
function validatorOf(...place: string[]) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajvFormats.default(ajv)
  ajv.addSchema(document, 'document')
  const pointer = place.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
  const validate = ajv.compile({ $ref: `document#/${encodeURI(pointer)}` })
  return (value: unknown) => {
    validate(value)
    return validate.errors ?? []
  }
}

const schemaOf = ({ method, url }: { method: string; url: string }, ...rest: string[]) =>
  validatorOf('paths', pathOf(url), method.toLowerCase(), ...rest, 'schema')

test('it is OpenAPI 3.1 and passes the linter, all recommended rules on', async () => {
  expect(document.openapi).toMatch(/^3\.1\./)
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config })
  const lines = problems.map(
    ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ''}`,
  )
  expect(lines).toEqual([])
})

test('it has every operation of the service and no others', () => {
  const found = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(found.sort()).toEqual(OPERATIONS.map(({ method, url }) => `${method} ${pathOf(url)}`).sort())
})

test('it names this server, its token endpoint and exactly the scopes there are', async () => {
  expect(document.servers).toEqual([{ url: BASE_URL }])
  const { tokenUrl, scopes } = document.components.securitySchemes.oauth2!.flows.clientCredentials
  expect(tokenUrl).toBe(`${BASE_URL}/oauth2/token`)
  expect(Object.keys(scopes).sort()).toEqual([...SCOPES].sort())
  expect([...new Set(OPERATIONS.map(({ scope }) => scope))].sort()).toEqual([...SCOPES].sort())
})

test('no two operations have one operationId', () => {
  const ids = OPERATIONS.map((operation) => documented(operation).operationId)
  expect(new Set(ids).size).toBe(OPERATIONS.length)
})

describe.each(each)('%s', (_, operation) => {
  test('says what it is, which scope it takes and what each parameter means', () => {
    const { operationId, summary, tags, security, parameters = [] } = documented(operation)
    expect(operationId).toMatch(/^[a-z][A-Za-z]+$/)
    expect(summary).toBe(operation.summary)
    expect(tags).toEqual([operation.tag])
    expect(security).toEqual([{ oauth2: [operation.scope] }])
    const declared = { ...operation.params?.properties, ...operation.query?.properties }
    expect(parameters.map(({ name }) => name).sort()).toEqual(Object.keys(declared).sort())
    for (const { name, description = '' } of parameters) expect(description, name).toMatch(/\w \w.*\.$/)
  })

  test('documents its success and every kind of problem, each with an example', () => {
    const { responses } = documented(operation)
    const always = ['200', '400', '401', '403', '500', '503']
    const withBody = operation.body ? ['413', '415'] : []
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

const bodies = each.filter(([, { body }]) => body !== undefined)

describe.each(bodies)('the example of %s', (_, operation) => {
  const { method, url } = operation
  const example = () => {
    const { required, content } = documented(operation).requestBody!
    expect(required).toBe(true)
    const { example } = content['application/json']!
    expect(example).toBeDefined()
    return example!
  }

  test('is valid by the schema beside it', () => {
    expect(schemaOf(operation, 'requestBody', 'content', 'application/json')(example())).toEqual([])
  })

  test('is taken by the server as it is, but for records that the reader does not have', async () => {
    const answer = await customer.call(method, url, example())
    if (answer.status === 200) return
    expect(answer.status).toBe(404)
    expect(answer.body.detail).toMatch(/^(profile|memo_id) \S+ not found$/)
  })

  test("works with the reader's own profile and memo", async () => {
    const own = await newCustomer(service)
    await fund(own, '1000')
    const instructions = { profile_id: own.profile_id, fiat_network: 'WIRE' }
    const { body } = await own.call('POST', INSTRUCTIONS, instructions)
    const owned = { profile_id: own.profile_id, memo_id: body.memo_id }
    const replaced = Object.fromEntries(
      Object.entries(example()).map(([name, value]) => [
        name,
        name in owned ? owned[name as 'memo_id'] : value,
      ]),
    )
    expect(await own.call(method, url, replaced)).toMatchObject({ status: 200 })
  })
})

describe('replies are what the document says', () => {
  const quote = (changes: object = {}) => ({
    asset: 'USDP',
    crypto_network: 'ETHEREUM',
    destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
    amount: '10',
    ...changes,
  })
  /** For each operation, a request that is answered with 200. Those further down read what those before made. */
  const REQUESTS: Record<string, () => Promise<[url: string, body?: object][]>> = {
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
      [DEPOSITS, { amount: '1', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }],
    ],
    'POST /v2/profiles': async () => [
      ['/v2/profiles', { nickname: 'Documented', description: 'With one' }],
      ['/v2/profiles', { nickname: 'Without one' }],
    ],
    'GET /v2/profiles': async () => [['/v2/profiles'], ['/v2/profiles?limit=1']],
    'GET /v2/profiles/:id': async () => [[`/v2/profiles/${customer.profile_id}`]],
    'GET /v2/profiles/:id/balances': async () => [[`/v2/profiles/${customer.profile_id}/balances`]],
    'GET /v2/profiles/:id/balances/:asset': async () =>
      ['USD', 'BTC'].map((asset) => [`/v2/profiles/${customer.profile_id}/balances/${asset}`]),
    'GET /v2/transfer/transfers/:id': async () => {
      const { body } = await customer.call<{ items: { id: string }[] }>('GET', '/v2/transfer/transfers')
      return body.items.map(({ id }) => [`/v2/transfer/transfers/${id}`])
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
    [`GET ${INSTRUCTIONS}`]: async () => [[INSTRUCTIONS], [`${INSTRUCTIONS}?limit=1`]],
    [`POST ${QUOTES}`]: async () => [
      [QUOTES, quote()],
      [QUOTES, quote({ amount: undefined, total: '11' })],
    ],
  }

  test('of every operation', () => {
    expect(Object.keys(REQUESTS).sort()).toEqual(OPERATIONS.map(nameOf).sort())
  })

  test.each(each)('%s', async (name, operation) => {
    const validate = schemaOf(operation, 'responses', '200', 'content', 'application/json')
    const requests = await REQUESTS[name]!()
    expect(requests.length).toBeGreaterThan(0)
    for (const [url, body] of requests) {
      const answer = await customer.call(operation.method, url, body)
      expect(answer.status).toBe(200)
      expect(validate(answer.body), JSON.stringify(answer.body)).toEqual([])
    }
  })

  test('also of a withdrawal that failed and one that is held', async () => {
    // As the worker leaves them.
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

  test('a refusal is a Problem, too', async () => {
    const validate = validatorOf('components', 'schemas', 'Problem')
    const answer = await customer.call('POST', WITHDRAWALS, withdrawalOf(customer, { amount: '5000' }))
    expect(answer.status).toBe(403)
    expect(validate(answer.body)).toEqual([])
  })

  test('and what the document does not say is found', async () => {
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
