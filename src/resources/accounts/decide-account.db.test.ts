import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { newOperatorCaller } from '../../../test/operators.ts'
import { newCustomer, sharedTestService, type TestCustomer } from '../../../test/support.ts'

const service = await sharedTestService()
let customer: TestCustomer
let call: TestCustomer['call']
let forOther: TestCustomer['call']
beforeAll(async () => {
  customer = await newCustomer(service)
  call = await newOperatorCaller(service, 'OPERATOR', { actFor: customer.customer_id })
  const { customer_id } = await newCustomer(service)
  forOther = await newOperatorCaller(service, 'OPERATOR', { actFor: customer_id })
})

const newIdentity = async () =>
  (
    await customer.call<{ id: string; updated_at: string }>('POST', '/v2/identity/identities', {
      ref_id: randomUUID(),
      person_details: { first_name: 'Ada', last_name: 'Example' },
    })
  ).body

describe('Decide About Account', () => {
  test("stops its withdrawals and lets them go on; another customer's is not found", async () => {
    const { id: identity_id } = await newIdentity()
    const { body: account } = await customer.call('POST', '/v2/identity/accounts', {
      account: { identity_id, type: 'BROKERAGE' },
    })
    const path = `/v2/operators/accounts/${String(account.id)}/decisions`
    for (const [decision, admin_disabled] of [
      ['DISABLE', true],
      ['ENABLE', false],
    ] as const)
      expect(await call('POST', path, { decision })).toMatchObject({ status: 200, body: { admin_disabled } })
    expect((await forOther('POST', path, { decision: 'DISABLE' })).status).toBe(404)
  })
})
