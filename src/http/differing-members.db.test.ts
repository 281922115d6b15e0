import { describe, expect, test } from 'vitest'
import {
  approve,
  DESTINATION,
  fund,
  newCustomer,
  withdrawalOf,
  sharedTestService,
} from '../../test/support.ts'
import { NOBODY } from '../../test/matchers.ts'

const service = await sharedTestService()
const customer = await newCustomer(service)
await fund(customer, '1000')
const profile = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Second' })
const second = profile.body.id
const identity = await customer.call<{ id: string }>('POST', '/v2/identity/identities', {
  ref_id: 'holder',
  person_details: { first_name: 'Ada', last_name: 'Lovelace' },
})
const identity_id = identity.body.id
await approve(customer, identity_id)

/** Sends a request and then a second request; returns the members that the second refusal names as differing. */
async function differs(url: string, first: object, again: object): Promise<unknown> {
  const made = await customer.call('POST', url, first)
  expect(made.status, JSON.stringify(made.body)).toBe(200)
  const { status, body } = await customer.call<{ meta: { differs: string[] } }>('POST', url, again)
  expect(status).toBe(409)
  return body.meta.differs
}

type Row = [what: string, url: string, first: () => object, changes: () => object, differing: string[]]
const ref_id = () => crypto.randomUUID()
const orchestration = (changes: object = {}) => ({
  source_asset: 'USD',
  destination_asset: 'USDP',
  source_amount: '5',
  source: { profile: { profile_id: customer.profile_id } },
  ...changes,
})
const fiatAccount = () => ({
  fiat_account_owner: { institution_details: { name: 'A' }, note: { b: 1, a: 2 } },
  fiat_network_instructions: { wire: { account_number: '1' } },
})

describe('the members that differ are named:', () => {
  test.each<Row>([
    ['none', '/v2/transfer/crypto-withdrawals', () => withdrawalOf(customer), () => ({}), []],
    [
      'an amount in another spelling does not differ',
      '/v2/transfer/crypto-withdrawals',
      () => withdrawalOf(customer),
      () => ({ amount: '0010.00' }),
      [],
    ],
    [
      'a total that equals amount and fee does not differ',
      '/v2/transfer/crypto-withdrawals',
      () => withdrawalOf(customer),
      () => ({ amount: undefined, total: '11' }),
      [],
    ],
    [
      'several changed members, and a memo that the first request did not have',
      '/v2/transfer/crypto-withdrawals',
      () => withdrawalOf(customer, { metadata: { a: '1' } }),
      () => ({ amount: '11', memo: 'm', metadata: { a: '1', b: '2' } }),
      ['metadata', 'amount', 'memo'],
    ],
    [
      'members that the record does not keep are not named',
      '/v2/transfer/crypto-withdrawals',
      () => withdrawalOf(customer),
      () => ({ beneficiary: { institution_details: { name: 'B' } }, fee_id: NOBODY }),
      [],
    ],
    [
      'the sending profile of an internal transfer',
      '/v2/transfer/internal',
      () => ({
        asset: 'USD',
        amount: '1',
        from_profile_id: customer.profile_id,
        to_profile_id: second,
      }),
      () => ({ from_profile_id: second, to_profile_id: customer.profile_id, from_identity_id: identity_id }),
      ['from_profile_id', 'from_identity_id'],
    ],
    [
      'the identity of a deposit address, where the first request named no identity',
      '/v2/transfer/deposit-addresses',
      () => ({ profile_id: customer.profile_id, crypto_network: 'ETHEREUM' }),
      () => ({ identity_id }),
      ['identity_id'],
    ],
    [
      'a free object, when any of its members differs',
      '/v2/transfer/fiat-accounts',
      fiatAccount,
      () => ({
        fiat_account_owner: { note: { a: 2, b: 1 }, institution_details: { name: 'A' } },
        fiat_network_instructions: { wire: {} },
      }),
      ['fiat_network_instructions'],
    ],
    [
      'the source of an orchestration under its other name does not differ',
      '/v2/orchestration/orchestrations',
      orchestration,
      () => ({ profile_id: customer.profile_id }),
      [],
    ],
    [
      'the destination of an orchestration',
      '/v2/orchestration/orchestrations',
      () =>
        orchestration({
          source_amount: '5',
          destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
        }),
      () => ({ destination: { profile: { profile_id: second } } }),
      ['destination'],
    ],
  ])('%s', async (_, url, firstOf, changes, differing) => {
    const first = { ref_id: ref_id(), ...firstOf() }
    expect(await differs(url, first, { ...first, ...changes() })).toEqual(differing)
  })

  test('the source of a rule does not differ by the memo that the service adds', async () => {
    const rule = {
      ref_id: ref_id(),
      profile_id: customer.profile_id,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { fiat: {} },
    }
    expect(await differs('/v2/orchestration/rules', rule, rule)).toEqual([])
    const other = { ...rule, nickname: 'n', source: { fiat: { account_type: 'SAVINGS' } } }
    const { body } = await customer.call('POST', '/v2/orchestration/rules', other)
    expect(body).toMatchObject({ meta: { differs: ['source', 'nickname'] } })
  })

  test('the URL of a webhook, whose name takes the place of a ref_id', async () => {
    const webhook = { name: ref_id(), url: 'https://hooks.example.com/a', event_types: ['*'] }
    expect(await differs('/v2/webhooks', webhook, webhook)).toEqual([])
    const other = { ...webhook, url: 'https://hooks.example.com/b' }
    const { status, body } = await customer.call('POST', '/v2/webhooks', other)
    expect({ status, body }).toMatchObject({
      status: 409,
      body: { meta: { existing: { url: webhook.url }, differs: ['url'] } },
    })
  })

  test('the members of an account, which are nested in the body', async () => {
    const account = { ref_id: ref_id(), identity_id, members: [{ identity_id, roles: ['AUTHORIZED_USER'] }] }
    const other = {
      ...account,
      description: 'Other',
      members: [{ identity_id, roles: ['BENEFICIAL_OWNER'] }],
    }
    const url = '/v2/identity/accounts'
    expect(await differs(url, { account }, { account, create_profile: true })).toEqual([])
    const { body } = await customer.call<{ meta: { differs: string[] } }>('POST', url, { account: other })
    expect(body.meta.differs.toSorted()).toEqual(['description', 'members'])
  })

  test('the refusal of an existing account member names no differing members', async () => {
    const account = { ref_id: ref_id(), identity_id }
    const { body } = await customer.call<{ id: string }>('POST', '/v2/identity/accounts', { account })
    const url = '/v2/identity/account-members'
    const add = (role: string) =>
      customer.call('POST', url, { account_id: body.id, members: [{ identity_id, roles: [role] }] })
    expect((await add('AUTHORIZED_USER')).status).toBe(200)
    const again = await add('BENEFICIAL_OWNER')
    expect(again).toMatchObject({ status: 409, body: { meta: { existing: { roles: ['AUTHORIZED_USER'] } } } })
    expect(again.body).not.toHaveProperty('meta.differs')
  })

  test('a profile with the same nickname', async () => {
    const body = { nickname: 'Named', description: 'a' }
    expect(await differs('/v2/profiles', body, { ...body, description: 'b' })).toEqual(['description'])
  })
})
