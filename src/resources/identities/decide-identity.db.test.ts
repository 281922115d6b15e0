import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newOperatorCaller } from '../../../test/operators.ts'
import { newCustomer, sharedTestService } from '../../../test/support.ts'

const service = await sharedTestService()
const customer = await newCustomer(service)
const call = await newOperatorCaller(service, 'OPERATOR', { actFor: customer.customer_id })
const { customer_id } = await newCustomer(service)
const forOther = await newOperatorCaller(service, 'OPERATOR', { actFor: customer_id })

const newIdentity = async () =>
  (
    await customer.call<{ id: string; updated_at: string }>('POST', '/v2/identity/identities', {
      ref_id: randomUUID(),
      person_details: { first_name: 'Ada', last_name: 'Example' },
    })
  ).body

describe('Decide About Identity', () => {
  test('approves it as it was looked at, denies, disables and reopens it', async () => {
    const { id, updated_at } = await newIdentity()
    const path = `/v2/operators/identities/${id}/decisions`
    const decide = (decision: string, more = {}) => call('POST', path, { decision, ...more })
    expect(await decide('APPROVE', { seen: '2020-01-01T00:00:00Z' })).toMatchObject({ status: 403 })
    for (const [decision, summary_status] of [
      ['APPROVE', 'APPROVED'],
      ['DISABLE', 'DISABLED'],
      ['ENABLE', 'APPROVED'],
      ['DENY', 'DENIED'],
      ['REOPEN', 'PENDING'],
    ] as const)
      expect(await decide(decision, decision === 'APPROVE' ? { seen: updated_at } : {})).toMatchObject({
        status: 200,
        body: { id, summary_status },
      })
    expect((await forOther('POST', path, { decision: 'APPROVE' })).status).toBe(404)
  })
})
