import { describe, expect, test } from 'vitest'
import { NIL_UUID } from '../../contract/fields.ts'
import type { FiatDepositInstructions } from '../../money/records/fiat-deposit-instructions.ts'
import { newCustomer, startTestService, sharedTestService, newHolder } from '../../../test/support.ts'

const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'

const service = await sharedTestService()
const customer = await newCustomer(service)

const create = async (changes: object = {}): Promise<FiatDepositInstructions> => {
  const body = { profile_id: customer.profile_id, fiat_network: 'WIRE', ...changes }
  const answer = await customer.call<FiatDepositInstructions>('POST', INSTRUCTIONS, body)
  expect(answer.status).toBe(200)
  return answer.body
}
const listed = async (query: string) => {
  const { body } = await customer.call<{ items: { id: string }[] }>('GET', `${INSTRUCTIONS}?${query}`)
  return body.items.map(({ id }) => id)
}

describe('Create Fiat Deposit Instructions', () => {
  test('instructions that name no identity answer the nil UUID, which no filter matches', async () => {
    const created = await create()
    expect(created).toMatchObject({ identity_id: NIL_UUID })
    expect(created).not.toHaveProperty('account_id')
    const { rows } = await service.db.query(
      'select identity_id from fiat_deposit_instructions where id = $1',
      [created.id],
    )
    expect(rows).toEqual([{ identity_id: null }])
    expect(await listed(`identity_ids=${NIL_UUID}`)).toEqual([])
  })
})

describe('List Fiat Deposit Instructions', () => {
  test('the list is filtered by identities, accounts and networks', async () => {
    const holder = await newHolder(customer)
    const { identity_id, account_id } = holder
    const ofIdentity = await create({ identity_id })
    const ofBoth = await create(holder)
    expect(ofBoth).toMatchObject(holder)
    expect(await listed(`identity_ids=${identity_id}`)).toEqual([ofBoth.id, ofIdentity.id])
    expect(await listed(`account_ids=${account_id}&networks=WIRE`)).toEqual([ofBoth.id])
    expect(await listed(`account_ids=${identity_id}`)).toEqual([])
    expect(await listed('order_by=CREATED_AT&order=ASC&limit=1000')).toEqual(
      (await listed('limit=1000')).reverse(),
    )
  })
})

describe('Get Fiat Deposit Instructions', () => {
  test('instructions are read by id as they were created', async () => {
    const created = await create({ ref_id: 'read', metadata: { order: '1' }, routing_number_type: 'SWIFT' })
    expect(await customer.call('GET', `${INSTRUCTIONS}/${created.id}`)).toMatchObject({
      status: 200,
      body: created,
    })
  })

  test('without a bank it is a 503: the account that wires go to is unknown', async () => {
    const live = await startTestService({ BURSAR_MODE: 'live' })
    try {
      const { call } = await newCustomer(live)
      expect(await call('GET', `${INSTRUCTIONS}/${crypto.randomUUID()}`)).toMatchObject({ status: 503 })
    } finally {
      await live.close()
    }
  })
})
