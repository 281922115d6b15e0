import { describe, expect, test } from 'vitest'
import { newOperatorCaller } from '../../../test/operators.ts'
import { newCustomer, sharedTestService, newIdentity } from '../../../test/support.ts'

const service = await sharedTestService()
const customer = await newCustomer(service)
const call = await newOperatorCaller(service, 'OPERATOR', { actFor: customer.customer_id })
const { customer_id } = await newCustomer(service)
const forOther = await newOperatorCaller(service, 'OPERATOR', { actFor: customer_id })

describe('Decide About Account', () => {
  test("stops its withdrawals and lets them go on; another customer's is not found", async () => {
    const identity_id = await newIdentity(customer)
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
