/*
 * Withdrawals from a frozen customer or profile are refused in the ledger's transaction: 403 `disabled`, and nothing
 * changes. Deposits are still credited. A freeze of a network or of the whole platform refuses nothing: withdrawals wait.
 */
import { expect, test } from 'vitest'
import {
  credit,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  type TestCustomer,
  withdrawalOf,
  ownTestService,
} from '../../../test/support.ts'
import { freeze, selectFreezes, unfreeze, type FreezeTarget } from './freezes.ts'

const service = await ownTestService()

/** Tries each way to withdraw from the default profile, and returns the answers. */
async function takeOut(customer: TestCustomer, other: string) {
  const { profile_id } = customer
  const bank = await customer.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { institution_details: { name: 'Acme' } },
    fiat_network_instructions: { wire: { account_number: '000987654321' } },
  })
  const answers = [
    await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer)),
    await customer.call('POST', '/v2/transfer/fiat-withdrawals', {
      profile_id,
      fiat_account_id: bank.body.id,
      asset: 'USD',
      amount: '1',
    }),
    await customer.call('POST', '/v2/transfer/internal', {
      from_profile_id: profile_id,
      to_profile_id: other,
      asset: 'USD',
      amount: '1',
    }),
    await customer.call('POST', '/v2/orchestration/orchestrations', {
      ref_id: crypto.randomUUID(),
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '1',
      source: { profile: { profile_id } },
    }),
  ]
  return answers.map(({ status, body }) => ({ status, detail: body.detail, meta: body.meta }))
}

test.each<[string, (customer: TestCustomer) => FreezeTarget]>([
  ['profile', ({ customer_id, profile_id }) => ({ kind: 'PROFILE', customer_id, profile_id })],
  ['customer', ({ customer_id }) => ({ kind: 'CUSTOMER', customer_id })],
])('nothing can be withdrawn from a frozen %s, and deposits are credited', async (what, targetOf) => {
  const [customer, stranger] = [await newCustomer(service), await newCustomer(service)]
  const { body } = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Other' })
  const other = body.id
  await credit(service.ledger, customer, 'USD', '100')
  await credit(service.ledger, { ...customer, profile_id: other }, 'USD', '100')
  await credit(service.ledger, stranger, 'USD', '100')

  await freeze(service.db, TEST_ORIGIN, targetOf(customer), 'OPERATOR', 'a leak')
  const id = what === 'profile' ? customer.profile_id : customer.customer_id
  const refused = {
    status: 403,
    detail: `${what} ${id} is FROZEN: nothing can be withdrawn for it`,
    meta: expect.objectContaining({ id, status: 'FROZEN' }) as object,
  }
  expect(await takeOut(customer, other)).toEqual([refused, refused, refused, refused])
  await credit(service.ledger, customer, 'USD', '1')
  const moved = await customer.call('POST', '/v2/transfer/internal', {
    from_profile_id: other,
    to_profile_id: customer.profile_id,
    asset: 'USD',
    amount: '1',
  })
  expect(moved.status).toBe(what === 'profile' ? 200 : 403)
  const balance = await customer.call('GET', `/v2/profiles/${customer.profile_id}/balances/USD`)
  expect(balance.body.available).toBe(what === 'profile' ? '102' : '101')
  const theirs = await stranger.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(stranger))
  expect(theirs.status).toBe(200)

  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, targetOf(customer))
  for (const { status } of await takeOut(customer, other)) expect(status).toBe(200)
})

test('withdrawals are accepted and wait while their network or the whole platform is frozen', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100')
  for (const target of [{ kind: 'ALL' }, { kind: 'NETWORK', network: 'ETHEREUM' }] as const) {
    await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'a leak')
    const { status } = await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer))
    expect(status).toBe(200)
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)
  }
})

test('a target stays frozen until its last reason is lifted, and keeps the first detail of each', async () => {
  const customer = await newCustomer(service)
  const target = { kind: 'CUSTOMER', customer_id: customer.customer_id } as const
  await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'first')
  await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'second')
  await freeze(service.db, TEST_ORIGIN, target, 'REORGANISATION', 'a block is gone')
  expect(await selectFreezes(service.db)).toMatchObject([
    { kind: 'CUSTOMER', subject: customer.customer_id, reason: 'OPERATOR', detail: 'first' },
    { kind: 'CUSTOMER', subject: customer.customer_id, reason: 'REORGANISATION', detail: 'a block is gone' },
  ])
  expect(await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target, 'OPERATOR')).toBe(1)
  const { status } = await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer))
  expect(status).toBe(403)
  expect(await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)).toBe(1)
  expect(await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)).toBe(0)
})
