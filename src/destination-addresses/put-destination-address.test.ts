import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  fund,
  newCustomer,
  startTestService,
  type TestCustomer,
  type TestService,
} from '../../test/support.ts'
import type { DestinationAddress } from '../records/destination-address.ts'

const ENTRY = '/v2/transfer/crypto-destination-address'
const BOOK = '/v2/transfer/crypto-destination-addresses'
const ORCHESTRATIONS = '/v2/orchestration/orchestrations'
const ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

let service: TestService
let customer: TestCustomer

beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

async function put(body: object): Promise<DestinationAddress> {
  const answer = await customer.call<{ address: DestinationAddress }>('PUT', ENTRY, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.address
}
const listed = async (query = '') =>
  (await customer.call<{ items: DestinationAddress[] }>('GET', `${BOOK}${query}`)).body.items

test('an address is created once; a repeat in any spelling changes only the given fields', async () => {
  customer = await newCustomer(service)
  const made = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
  expect(made).toEqual({
    id: made.id,
    customer_id: customer.customer_id,
    crypto_network: 'ETHEREUM',
    address: ADDRESS,
    nickname: 'ETHEREUM 0x5aAeb6…eAed',
    bookmarked: false,
    status: 'APPROVED',
    created_at: made.created_at,
    updated_at: made.created_at,
  })
  expect(await put({ crypto_network: 'ETHEREUM', address: ADDRESS.toLowerCase() })).toEqual(made)
  const facts = { custodian_type: 'VASP' }
  const changed = await put({
    crypto_network: 'ETHEREUM',
    address: ADDRESS,
    nickname: 'Supplier',
    travelrule_metadata: facts,
  })
  expect(changed).toMatchObject({ id: made.id, nickname: 'Supplier', bookmarked: false })
  expect(changed.updated_at > made.updated_at).toBe(true)
  const marked = await put({ id: made.id, bookmarked_status: true })
  expect(marked).toMatchObject({ nickname: 'Supplier', bookmarked: true, travelrule_metadata: facts })
  expect(await put({ id: made.id, bookmarked_status: true })).toEqual(marked)
  expect(await listed()).toEqual([marked])
})

test('the same address has a separate entry for each network and identity', async () => {
  customer = await newCustomer(service)
  const person = { ref_id: 'owner', person_details: { first_name: 'Ada', last_name: 'Lovelace' } }
  const { body: identity } = await customer.call<{ id: string }>('POST', '/v2/identity/identities', person)
  const entries = [
    await put({ crypto_network: 'ETHEREUM', address: ADDRESS }),
    await put({ crypto_network: 'BASE', address: ADDRESS }),
    await put({ crypto_network: 'ETHEREUM', address: ADDRESS, identity_id: identity.id }),
  ]
  expect(new Set(entries.map(({ id }) => id)).size).toBe(3)
  const ids = async (query: string) => (await listed(query)).map(({ id }) => id)
  expect(await ids(`?identity_ids=${identity.id}`)).toEqual([entries[2]!.id])
  expect(await ids('?crypto_networks=BASE')).toEqual([entries[1]!.id])
  expect(await ids('?order=ASC')).toEqual(entries.map(({ id }) => id))
})

test('ten requests at once create one entry', async () => {
  customer = await newCustomer(service)
  const made = await Promise.all(
    Array.from({ length: 10 }, () =>
      put({ crypto_network: 'SOLANA', address: '11111111111111111111111111111112' }),
    ),
  )
  expect(new Set(made.map(({ id }) => id)).size).toBe(1)
  expect(await listed()).toHaveLength(1)
})

test('an orchestration and a rule pay to an entry by its id, and show that id', async () => {
  customer = await newCustomer(service)
  await fund(customer, '100')
  const { id } = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
  const order = {
    ref_id: 'by id',
    source_asset: 'USD',
    destination_asset: 'USDP',
    source_amount: '10',
    source: { profile: { profile_id: customer.profile_id } },
    destination: { crypto: { address_id: id, address: ADDRESS.toLowerCase() } },
  }
  const paid = await customer.call<{ destination: object; destination_transfer: { transfer_id: string } }>(
    'POST',
    ORCHESTRATIONS,
    order,
  )
  const shown = { crypto: { address_id: id, address: ADDRESS, network: 'ETHEREUM' } }
  expect(paid).toMatchObject({ status: 200, body: { destination: shown } })
  const { transfer_id } = paid.body.destination_transfer
  const { body: transfer } = await customer.call('GET', `/v2/transfer/transfers/${transfer_id}`)
  expect(transfer).toMatchObject({ destination_address: ADDRESS, crypto_network: 'ETHEREUM' })

  const rule = await customer.call('POST', '/v2/orchestration/rules', {
    ref_id: 'by id',
    profile_id: customer.profile_id,
    source_asset: 'USD',
    destination_asset: 'USDP',
    source: { fiat: {} },
    destination: { crypto: { address_id: id } },
  })
  expect(rule).toMatchObject({ status: 200, body: { rule: { destination: shown } } })
})

test("a rule cannot pay to an entry with the customer's own deposit address", async () => {
  customer = await newCustomer(service)
  const asked = { profile_id: customer.profile_id, crypto_network: 'ETHEREUM' }
  const { body: own } = await customer.call<{ address: string }>(
    'POST',
    '/v2/transfer/deposit-addresses',
    asked,
  )
  const { id } = await put({ crypto_network: 'ETHEREUM', address: own.address })
  const rule = await customer.call('POST', '/v2/orchestration/rules', {
    ref_id: 'to itself',
    profile_id: customer.profile_id,
    source_asset: 'USDP',
    destination_asset: 'USDG',
    source: { crypto: { network: 'ETHEREUM' } },
    destination: { crypto: { address_id: id } },
  })
  expect(rule).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining('deposit address') as unknown },
  })
})
