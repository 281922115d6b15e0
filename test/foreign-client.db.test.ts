/**
 * A client that was generated from the API of another platform (foreign-client/openapi.yaml) runs here unchanged: the
 * compiler holds its requests against that document, and every answer is validated by it. Enumerations are closed there:
 * strict clients refuse values that they do not know.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseYaml } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import createClient, { type Middleware } from 'openapi-fetch'
import type { OpenAPI3 } from 'openapi-typescript'
import { expect, test } from 'vitest'
import type { paths } from './foreign-client/schema.ts'
import { BASE_URL, DESTINATION, insertStatements, newCustomer, ownTestService } from './support.ts'

const YAML = fileURLToPath(new URL('./foreign-client/openapi.yaml', import.meta.url))
const NIL = '00000000-0000-0000-0000-000000000000'
const PERSON = { first_name: 'Ada', last_name: 'Lovelace', date_of_birth: '1815-12-10' }

type Replies = Record<string, Record<string, { responses: Record<string, object> }>>
const document = parseYaml(readFileSync(YAML, 'utf8')) as OpenAPI3 & { paths: Replies }
/** The operations that were called, as method and path. */
const called = new Set<string>()

const service = await ownTestService()
const customer = await newCustomer(service)
const client = createClient<paths>({ baseUrl: BASE_URL, fetch: inject })
client.use(validating())

async function inject(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const payload = await request.text()
  const answer = await service.app.inject({
    method: request.method as 'GET',
    url: pathname + search,
    headers: { ...Object.fromEntries(request.headers), authorization: `Bearer ${customer.token}` },
    ...(payload !== '' && { payload }),
  })
  return new Response(answer.body, {
    status: answer.statusCode,
    headers: { 'content-type': String(answer.headers['content-type']) },
  })
}

/** Validates each answer by the foreign document. */
function validating(): Middleware {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajvFormats.default(ajv)
  ajv.addSchema(document, 'foreign')
  return {
    async onResponse({ request, response, schemaPath }) {
      const name = `${request.method} ${schemaPath}`
      const body: unknown = await response.clone().json()
      expect(response.status, `${name}: ${JSON.stringify(body)}`).toBe(200)
      const reply = document.paths[schemaPath]![request.method.toLowerCase()]!.responses['200']!
      const place =
        '$ref' in reply
          ? String(reply.$ref).slice(1)
          : `/paths/${schemaPath.replaceAll('/', '~1')}/${request.method.toLowerCase()}/responses/200`
      const validate = ajv.compile({ $ref: `foreign#${encodeURI(place)}/content/application~1json/schema` })
      expect(validate(body), `${name}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(body)}`).toBe(
        true,
      )
      called.add(name)
    },
  }
}

/** The data of a reply. Refusals fail in the middleware. */
async function of<T>(reply: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  const { data } = await reply
  return data!
}

async function approvedPerson(): Promise<string> {
  const identity = await of(
    client.POST('/v2/identity/identities', {
      body: {
        ref_id: crypto.randomUUID(),
        person_details: PERSON,
        tax_details: [{ tax_payer_id: '123-45-6789', tax_payer_country: 'USA' }],
        customer_due_diligence: { employment_status: 'EMPLOYED', source_of_wealth: 'EMPLOYMENT_INCOME' },
        is_merchant: false,
        metadata: { tier: 'gold' },
      },
    }),
  )
  await of(
    client.PUT('/v2/identity/identities/{id}/sandbox-status', {
      params: { path: { id: identity.id } },
      body: {
        id_verification_status: 'APPROVED',
        sanctions_verification_status: 'APPROVED',
        document_verification_status: 'APPROVED',
        additional_screening_status: 'APPROVED',
        user_disabled: { disabled: false },
        admin_disabled: { disabled: false },
      },
    }),
  )
  const read = await of(client.GET('/v2/identity/identities/{id}', { params: { path: { id: identity.id } } }))
  expect(read.summary_status).toBe('APPROVED')
  return identity.id
}

test('onboards a person and an institution, and opens accounts', async () => {
  const person = await approvedPerson()
  const institution = await of(
    client.POST('/v2/identity/identities', {
      body: {
        ref_id: crypto.randomUUID(),
        institution_details: { name: 'Analytical Engines', email: 'desk@engines.example' },
        institution_members: [{ identity_id: person, roles: ['BENEFICIAL_OWNER'] }],
        tax_details: [{ tax_payer_id: '98-7654321', tax_payer_country: 'USA' }],
      },
    }),
  )
  const query = {
    identity_type: 'INSTITUTION' as const,
    summary_status: 'PENDING' as const,
    include_details: true,
    include_institution_members: true,
    'updated_at.gte': '2020-01-01T00:00:00Z',
    order_by: 'CREATED_AT' as const,
  }
  const listed = await of(client.GET('/v2/identity/identities', { params: { query } }))
  expect(listed.items.map(({ id }) => id)).toEqual([institution.id])
  expect(listed.items[0]!.institution_members).toMatchObject([
    { identity_id: person, roles: ['BENEFICIAL_OWNER'] },
  ])

  const member = await approvedPerson()
  const account = await of(
    client.POST('/v2/identity/accounts', {
      body: {
        create_profile: true,
        account: {
          identity_id: person,
          ref_id: crypto.randomUUID(),
          type: 'BROKERAGE',
          description: 'first',
          members: [{ identity_id: member, roles: ['AUTHORIZED_USER'] }],
        },
      },
    }),
  )
  expect(account.members).toMatchObject([{ identity_id: member, type: expect.any(String) as unknown }])
  const changed = await of(
    client.PUT('/v2/identity/accounts', {
      body: {
        set_user_disabled: true,
        account: { id: account.id, description: 'second', metadata: { a: 'b' } },
      },
    }),
  )
  expect(changed).toMatchObject({ description: 'second', user_disabled: true, summary_status: 'DISABLED' })
  const accounts = await of(
    client.GET('/v2/identity/accounts', {
      params: {
        query: { identity_id: person, order_by: 'CREATED_AT', 'updated_at.lt': '2100-01-01T00:00:00Z' },
      },
    }),
  )
  expect(accounts.items.map(({ id }) => id)).toEqual([account.id])
})

test('pays in, moves, converts and pays out', async () => {
  const { profile_id } = customer
  const identity_id = await approvedPerson()
  const savings = await of(client.POST('/v2/profiles', { body: { nickname: 'Savings' } }))
  await of(
    client.PUT('/v2/profiles/{id}', {
      params: { path: { id: savings.id } },
      body: { nickname: 'Long savings', description: 'for later' },
    }),
  )
  const profiles = await of(
    client.GET('/v2/profiles', { params: { query: { order_by: 'CREATED_AT', order: 'ASC', limit: 10 } } }),
  )
  expect(profiles.items.map(({ nickname }) => nickname)).toContain('Long savings')

  const address = await of(
    client.POST('/v2/transfer/deposit-addresses', { body: { profile_id, crypto_network: 'ETHEREUM' } }),
  )
  expect(address.identity_id).toBe(NIL)
  await of(
    client.POST('/v2/transfer/deposit-addresses', {
      body: { profile_id, crypto_network: 'SOLANA', identity_id, ref_id: crypto.randomUUID() },
    }),
  )
  const addresses = await of(
    client.GET('/v2/transfer/deposit-addresses', {
      params: {
        query: { networks: ['SOLANA', 'BITCOIN'], identity_ids: [identity_id], order_by: 'CREATED_AT' },
      },
    }),
  )
  expect(addresses.items).toMatchObject([{ identity_id, crypto_network: 'SOLANA' }])

  const made = await of(
    client.POST('/v2/transfer/fiat-deposit-instructions', {
      body: { profile_id, fiat_network: 'WIRE', routing_number_type: 'ABA' },
    }),
  )
  const path = { id: made.id }
  const instructions = await of(
    client.GET('/v2/transfer/fiat-deposit-instructions/{id}', { params: { path } }),
  )
  expect(instructions).toMatchObject({ memo_id: made.memo_id, identity_id: NIL })
  await of(
    client.POST('/v2/sandbox/fiat-deposits', {
      body: {
        amount: '1000.00',
        asset: 'USD',
        memo_id: instructions.memo_id,
        fiat_network_instructions: { wire: { account_number: '123456789' } },
        fiat_account_owner: { institution_details: { name: 'Analytical Engines' } },
      },
    }),
  )
  await of(
    client.POST('/v2/sandbox/profiles/{id}/deposit', {
      params: { path: { id: profile_id } },
      body: { asset: 'USDG', amount: '50' },
    }),
  )

  const moved = await of(
    client.POST('/v2/transfer/internal', {
      body: {
        asset: 'USD',
        amount: '100',
        from_profile_id: profile_id,
        to_profile_id: savings.id,
        from_identity_id: identity_id,
        to_identity_id: identity_id,
        ref_id: crypto.randomUUID(),
        metadata: { side: 'from' },
        recipient_metadata: { side: 'to' },
      },
    }),
  )
  const sides = await of(
    client.GET('/v2/transfer/transfers', {
      params: { query: { group_ids: [moved.group_id!], statuses: ['COMPLETED'], order_by: 'UPDATED_AT' } },
    }),
  )
  const sideOf = (direction: string) => sides.items.find((one) => one.direction === direction)
  expect(sideOf('DEBIT')).toMatchObject({ identity_id, metadata: { side: 'from' } })
  expect(sideOf('CREDIT')).toMatchObject({ identity_id, metadata: { side: 'to' } })

  const bank = await of(
    client.POST('/v2/transfer/fiat-accounts', {
      body: {
        ref_id: crypto.randomUUID(),
        fiat_account_owner: { person_details: { first_name: 'Ada', last_name: 'Lovelace' } },
        fiat_network_instructions: { wire: { account_number: '987654321' } },
      },
    }),
  )
  await of(client.GET('/v2/transfer/fiat-accounts/{id}', { params: { path: { id: bank.id } } }))
  const banks = await of(client.GET('/v2/transfer/fiat-accounts'))
  expect(banks.items.map(({ id }) => id)).toContain(bank.id)
  const wired = await of(
    client.POST('/v2/transfer/fiat-withdrawals', {
      body: { profile_id, asset: 'USD', fiat_account_id: bank.id, amount: '25', ref_id: crypto.randomUUID() },
    }),
  )
  expect(wired).toMatchObject({ type: 'WIRE_WITHDRAWAL', status: 'PENDING' })

  const where = { asset: 'USDP', crypto_network: 'ETHEREUM' as const, destination_address: DESTINATION }
  const quote = await of(
    client.POST('/v2/transfer/fees/crypto-withdrawal', { body: { ...where, amount: '10' } }),
  )
  const paid = await of(
    client.POST('/v2/transfer/crypto-withdrawals', {
      body: {
        ...where,
        profile_id,
        amount: '10',
        fee_id: quote.id,
        balance_asset: 'USD',
        identity_id,
        ref_id: crypto.randomUUID(),
        beneficiary: { person_details: { first_name: 'Charles', last_name: 'Babbage' } },
        metadata: { invoice: '1' },
      },
    }),
  )
  expect(paid).toMatchObject({ type: 'CRYPTO_WITHDRAWAL', status: 'PENDING', fee: quote.fee, identity_id })

  const ref_id = crypto.randomUUID()
  const converted = await of(
    client.POST('/v2/orchestration/orchestrations', {
      body: {
        ref_id,
        profile_id,
        source_asset: 'USDG',
        destination_asset: 'USD',
        source_amount: '20',
        source: { profile: { profile_id } },
        destination: { fiat: { bank_account_id: bank.id } },
      },
    }),
  )
  const found = await of(
    client.GET('/v2/orchestration/orchestrations', {
      params: { query: { ref_id: [ref_id], status: ['PENDING', 'PROCESSING', 'COMPLETED'] } },
    }),
  )
  expect(found.items.map(({ id }) => id)).toEqual([converted.id])
  expect(found.items[0]!.destination.fiat!.bank_account_id).toBe(bank.id)
})

test('pays an address of the address book', async () => {
  const { profile_id } = customer
  const { address } = await of(
    client.PUT('/v2/transfer/crypto-destination-address', {
      body: {
        crypto_network: 'ETHEREUM',
        address: DESTINATION,
        nickname: 'Supplier',
        bookmarked_status: true,
        travelrule_metadata: { custodian_type: 'VASP' },
      },
    }),
  )
  const book = await of(client.GET('/v2/transfer/crypto-destination-addresses'))
  expect(book.items).toEqual([address])
  const paid = await of(
    client.POST('/v2/orchestration/orchestrations', {
      body: {
        ref_id: crypto.randomUUID(),
        source_asset: 'USD',
        destination_asset: 'USDP',
        source_amount: '10',
        source: { profile: { profile_id } },
        destination: { crypto: { address_id: address.id } },
      },
    }),
  )
  expect(paid.destination).toMatchObject({ crypto: { address_id: address.id, address: DESTINATION } })
})

test('lets a rule convert deposits', async () => {
  const { profile_id } = customer
  const identity_id = await approvedPerson()
  const { rule } = await of(
    client.POST('/v2/orchestration/rules', {
      body: {
        ref_id: crypto.randomUUID(),
        profile_id,
        identity_id,
        source_asset: 'USD',
        destination_asset: 'USDG',
        nickname: 'into USDG',
        source: { fiat: { network: 'WIRE' } },
      },
    }),
  )
  await of(
    client.POST('/v2/sandbox/fiat-deposits', {
      body: {
        amount: '5',
        asset: 'USD',
        memo_id: rule.source.fiat!.memo_id!,
        fiat_network_instructions: { wire: {} },
      },
    }),
  )
  const query = { profile_id, status: ['ACTIVE' as const], source_asset: 'USD', destination_asset: 'USDG' }
  const { rules } = await of(client.GET('/v2/orchestration/rules', { params: { query } }))
  expect(rules.map(({ id }) => id)).toEqual([rule.id])
  const { items } = await of(
    client.GET('/v2/orchestration/orchestrations', {
      params: { query: { orchestration_rule_id: [rule.id] } },
    }),
  )
  expect(items).toMatchObject([{ identity_id, source_transfer: { status: 'COMPLETED' } }])
  expect(items[0]!.ref_id).toBe(`orchestration_id.${items[0]!.id}`)
})

test('reads markets, statements and credentials', async () => {
  await insertStatements(service.db, customer.customer_id)
  const { customer_id } = customer
  const { statements } = await of(client.GET('/v2/statements', { params: { query: { customer_id } } }))
  expect(statements.length).toBeGreaterThan(0)
  const { markets } = await of(client.GET('/v2/markets'))
  expect(markets.length).toBeGreaterThan(30)
  const candles = { path: { market: 'BTCUSD' }, query: { increment: 'ONE_HOUR' as const } }
  await of(client.GET('/v2/markets/{market}/historical-candles', { params: candles }))
  const { items } = await of(client.GET('/v2/api-creds/credentials'))
  expect(items.map(({ status }) => status)).toEqual(['APPROVED'])
})

test('every operation of the document was called', () => {
  const methods = ['get', 'post', 'put', 'delete'] as const
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    methods.filter((method) => method in item).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect([...called].sort()).toEqual(operations.sort())
})
