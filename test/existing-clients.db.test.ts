/*
 * What programs send that were written for platforms with the same contract: names of scopes, filters and members that mean nothing
 * more here are taken.
 */
import { expect, test } from 'vitest'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { SCOPES_WITHOUT_OPERATIONS, type ClientScope } from '../src/contract/scopes.ts'
import { scopesOfRole } from '../src/contract/roles.ts'
import type { Orchestration } from '../src/money/records/orchestration.ts'
import type { OrchestrationRule } from '../src/money/records/orchestration-rule.ts'
import { DESTINATION, fund, newCustomer, ROW_MACS, sharedTestService } from './support.ts'
import { refusedWith } from './matchers.ts'

const service = await sharedTestService()
const customer = await newCustomer(service)

interface Items {
  items: { id: string }[]
}
const idsAt = async (path: string): Promise<string[]> => {
  const { status, body } = await customer.call<Items>('GET', path)
  expect(status, path).toBe(200)
  return body.items.map(({ id }) => id)
}

async function inAddressBook(entry: object): Promise<{ id: string }> {
  const { body } = await customer.call<{ address: { id: string } }>(
    'PUT',
    '/v2/transfer/crypto-destination-address',
    entry,
  )
  return body.address
}

test('a token may have scopes that open nothing; no operator has them', async () => {
  const scopes = ['funding:read_profile', ...SCOPES_WITHOUT_OPERATIONS] as const
  const ask = async (given: readonly ClientScope[], scope: string) => {
    const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, [...given])
    const answer = await service.app.inject({
      method: 'POST',
      url: '/oauth2/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ grant_type: 'client_credentials', ...client, scope }).toString(),
    })
    return answer.json<{ scope?: string; error?: string }>()
  }
  expect(await ask(scopes, scopes.join(' '))).toMatchObject({ scope: scopes.join(' ') })
  // A client that was not given them gets its token all the same, and is told what it got.
  const given = ['funding:read_profile', 'exchange:read_order'] as const
  expect(await ask(given, scopes.join(' '))).toMatchObject({ scope: given.join(' ') })
  expect(await ask(['funding:read_profile'], 'tax:read_tax_lot')).toMatchObject({ error: 'invalid_scope' })
  expect(await ask(given, 'exchange:read_order funding:write_profile')).toMatchObject({
    error: 'invalid_scope',
  })
  for (const scope of SCOPES_WITHOUT_OPERATIONS) expect(scopesOfRole('ADMIN', 'sandbox')).not.toContain(scope)
})

test('filters: unknown types of events, states of rules, ids of credentials, names of the address book', async () => {
  const put = await inAddressBook({
    crypto_network: 'ETHEREUM',
    address: DESTINATION,
    nickname: 'Cold, one',
    bookmarked_status: true,
  })
  const addresses = '/v2/transfer/crypto-destination-addresses'
  expect(await idsAt(`${addresses}?nicknames=${encodeURIComponent('Cold, one')}`)).toEqual([put.id])
  expect(await idsAt(`${addresses}?nicknames=Cold`)).toEqual([])
  expect(await idsAt(`${addresses}?bookmarked_status=true`)).toEqual([put.id])
  expect(await idsAt(`${addresses}?bookmarked_status=false`)).toEqual([])
  expect(await idsAt('/v2/events?type=quote.completed')).toEqual([])
  expect(await idsAt('/v2/events?type=crypto_destination_address.approved')).toHaveLength(1)
  const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, ['funding:read_profile'])
  for (const name of ['ids', 'client_ids'])
    expect(await idsAt(`/v2/api-creds/credentials?${name}=${client.client_id}`)).toEqual([client.client_id])
  for (const status of ['PENDING', 'REJECTED'])
    expect(await idsAt(`/v2/orchestration/rules?status=${status}`)).toEqual([])
})

test('one record: a deactivated profile, and events of tests or not', async () => {
  const { body: other } = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Other' })
  const read = async (query: string) =>
    (await customer.call('GET', `/v2/profiles/${other.id}${query}`)).status
  expect(await read('?include_deactivated=false')).toBe(200)
  await customer.call('PUT', `/v2/profiles/${other.id}/deactivate`)
  expect([
    await read(''),
    await read('?include_deactivated=true'),
    await read('?include_deactivated=false'),
  ]).toEqual([200, 200, 404])
  const [event] = await idsAt('/v2/events?limit=1')
  const at = async (query: string) => (await customer.call('GET', `/v2/events/${event}${query}`)).status
  expect([await at(''), await at('?is_test=false'), await at('?is_test=true')]).toEqual([200, 200, 404])
})

test('crypto_address_id names an address of the address book, and is in the record', async () => {
  await fund(customer, '100')
  const entry = await inAddressBook({
    crypto_network: 'ETHEREUM',
    address: DESTINATION,
  })
  const { profile_id } = customer
  const both = {
    address_id: entry.id,
    crypto_address_id: entry.id,
    address: DESTINATION,
    network: 'ETHEREUM',
  }
  const terms = { source_asset: 'USD', destination_asset: 'USDG' }
  const order = (crypto: object) =>
    customer.call<Orchestration>('POST', '/v2/orchestration/orchestrations', {
      ...terms,
      ref_id: 'one',
      source_amount: '10',
      source: { profile: { profile_id } },
      destination: { crypto },
    })
  const { body: started } = await order({ crypto_address_id: entry.id })
  expect(started.destination?.crypto).toEqual(both)
  // A repeat under the other name is the same one.
  expect((await order({ address_id: entry.id })).body).toMatchObject({
    detail: 'a record with this ref_id exists; meta.existing holds it',
  })
  const { body: made } = await customer.call<{ rule: OrchestrationRule }>('POST', '/v2/orchestration/rules', {
    ...terms,
    ref_id: 'rule',
    profile_id,
    source: { fiat: {} },
    destination: { crypto: { crypto_address_id: entry.id } },
  })
  expect(made.rule.destination.crypto).toEqual(both)
  const contradiction = { address_id: entry.id, crypto_address_id: profile_id }
  expect(await order(contradiction)).toMatchObject(refusedWith(400, 'crypto_address_id must equal'))
})

test('a rule takes the kind of routing number as the type of its account, and answers with it', async () => {
  const { profile_id } = customer
  for (const account_type of ['ABA', 'SWIFT', 'CHECKING']) {
    const { status, body } = await customer.call<{ rule: OrchestrationRule }>(
      'POST',
      '/v2/orchestration/rules',
      {
        ...{ ref_id: `by ${account_type}`, profile_id, source_asset: 'USD', destination_asset: 'USDG' },
        source: { fiat: { account_type } },
      },
    )
    expect(status).toBe(200)
    expect(body.rule.source.fiat).toMatchObject({ account_type })
  }
})

test('a memo of 500 characters goes with a wire', async () => {
  await fund(customer, '100')
  const { body: account } = await customer.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { person_details: { first_name: 'Ada', last_name: 'Lovelace' } },
    fiat_network_instructions: {
      wire: {
        account_number: '000987654321',
        routing_details: {
          routing_number_type: 'ABA',
          routing_number: '021000021',
          bank_name: 'First Example Bank',
        },
      },
    },
  })
  const wire = (memo: string) =>
    customer.call('POST', '/v2/transfer/fiat-withdrawals', {
      ...{ profile_id: customer.profile_id, asset: 'USD', fiat_account_id: account.id, amount: '1', memo },
    })
  expect((await wire('m'.repeat(500))).status).not.toBe(400)
  expect(await wire('m'.repeat(501))).toMatchObject({
    status: 400,
    body: { detail: 'memo must have at most 500 characters' },
  })
})

test('a Go client joins paths with two slashes', async () => {
  expect((await customer.call('GET', '/v2//profiles?limit=1')).status).toBe(200)
})

test('a body that is not JSON is told why and where; methods of other protocols are told what there is', async () => {
  const send = async (payload: string) =>
    (
      await service.app.inject({
        ...{ method: 'POST', url: '/v2/profiles', payload },
        headers: { authorization: `Bearer ${customer.token}`, 'content-type': 'application/json' },
      })
    ).json<{ detail: string }>().detail
  expect(await send('{"nickname":"a",}')).toMatch(/^the body is not valid JSON: .*position 16/)
  expect(await send('{"__proto__":{}}')).toBe('the body has a key __proto__ or constructor.prototype')
  expect(await send('')).toMatch(/^the body is empty/)
  for (const method of ['PROPFIND', 'SEARCH', 'TRACE', 'HEAD']) {
    const { statusCode, headers } = await service.app.inject({
      method: method as 'GET',
      url: '/oauth2/token',
    })
    expect([statusCode, headers.allow]).toEqual([405, 'POST'])
  }
  const { headers } = await service.app.inject({ method: 'PROPFIND' as 'GET', url: '/v2/profiles' })
  expect(headers.allow).toBe('POST, GET, HEAD')
})

test('List Statements says which id it needs', async () => {
  expect((await customer.call<{ detail: string }>('GET', '/v2/statements')).body.detail).toBe(
    'customer_id is required: Your own customer id, which each of your transfers and identities names.',
  )
})
