/* The operations; src/rails/payouts/decide-approval.slow.test.ts tests who can approve, and what the signer accepts. */
import { beforeAll, describe, expect, test } from 'vitest'
import {
  addTestApprover,
  withdrawWithApproval,
  type TestApprover,
  type Waiting,
} from '../../../test/approvers.ts'
import { newCustomer, sharedTestService, TEST_ORIGIN, type TestCustomer } from '../../../test/support.ts'
import type { Approval, ApprovalDecision } from '../../contract/approval.ts'
import { signStatement } from '../../governance/approvals/approval-statement.ts'

const APPROVALS = '/v2/approvals'

const service = await sharedTestService()
let customer: TestCustomer
let other: TestCustomer
let ada: TestApprover
beforeAll(async () => {
  customer = await newCustomer(service)
  other = await newCustomer(service)
  ada = await addTestApprover(service.owner, customer.customer_id)
})

const withdraw = () => withdrawWithApproval(service, customer, TEST_ORIGIN, { approvals: 1 })
const read = (id: string, by = customer) =>
  by.call<{ approval: Approval; to_sign: Record<ApprovalDecision, string> }>('GET', `${APPROVALS}/${id}`)

/** Sends Ada's signature under one text with the decision of the path. */
async function decide({ approval_id }: Waiting, path: string, text: ApprovalDecision, by = customer) {
  const { to_sign } = (await read(approval_id)).body
  return by.call<Approval>('POST', `${APPROVALS}/${approval_id}/${path}`, {
    approver_id: ada.id,
    ...signStatement(to_sign[text], ada.jwk),
  })
}

describe('Get Approval', () => {
  test("answers the approval with the texts to sign; another customer's is a 404", async () => {
    const { id, approval_id } = await withdraw()
    const { status, body } = await read(approval_id)
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { approval: { id: approval_id, subject: { id }, status: 'PENDING', decisions: [] } },
    })
    for (const decision of ['APPROVE', 'REJECT'] as const) {
      expect(body.to_sign[decision]).toContain(`"decision":"${decision}"`)
      expect(body.to_sign[decision]).toContain(id)
    }
    expect((await read(approval_id, other)).status).toBe(404)
  })
})

describe('List Approvals', () => {
  test("filters by status and withdrawal, newest first, without another customer's", async () => {
    const [first, second] = [await withdraw(), await withdraw()]
    await decide(first, 'reject', 'REJECT')
    const listed = async (query: string, by = customer) =>
      (await by.call<{ items: Approval[] }>('GET', `${APPROVALS}?${query}`)).body.items.map(({ id }) => id)
    const both = `transfer_ids=${first.id},${second.id}`
    expect(await listed(both)).toEqual([second.approval_id, first.approval_id])
    expect(await listed(`${both}&statuses=REJECTED`)).toEqual([first.approval_id])
    expect(await listed(both, other)).toEqual([])
  })
})

describe('Approve Approval', () => {
  test('records the decision, once; a signed rejection does not count', async () => {
    const one = await withdraw()
    expect((await decide(one, 'approve', 'REJECT')).status).toBe(400)
    expect((await decide(one, 'approve', 'APPROVE', other)).status).toBe(404)
    expect(await decide(one, 'approve', 'APPROVE')).toMatchObject({
      status: 200,
      body: { status: 'APPROVED', decisions: [{ approver_id: ada.id, decision: 'APPROVE' }] },
    })
    expect((await decide(one, 'approve', 'APPROVE')).status).toBe(409)
  })
})

describe('Reject Approval', () => {
  test('fails the withdrawal; a signed approval does not count', async () => {
    const one = await withdraw()
    expect((await decide(one, 'reject', 'APPROVE')).status).toBe(400)
    expect((await decide(one, 'reject', 'REJECT', other)).status).toBe(404)
    expect(await decide(one, 'reject', 'REJECT')).toMatchObject({
      status: 200,
      body: { status: 'REJECTED' },
    })
    expect((await customer.call('GET', `/v2/transfer/transfers/${one.id}`)).body.status).toBe('FAILED')
  })
})
