import { describe, expect, test } from 'vitest'
import { addTestApprover } from '../../../test/approvers.ts'
import { newOperatorCaller, signIn } from '../../../test/operators.ts'
import {
  everyTable,
  fund,
  newCustomer,
  ROW_MACS,
  sharedTestService,
  TEST_ORIGIN,
  withdrawalOf,
} from '../../../test/support.ts'
import { createOperator } from '../../access/operators/operators.ts'
import { transaction } from '../../db/database.ts'
import { newPrivateKey, publicPartOf } from '../../governance/approvals/approval-statement.ts'
import { addApprover } from '../../governance/approvals/approver.ts'
import { refusedWith } from '../../../test/matchers.ts'

const service = await sharedTestService()
const other = await newCustomer(service)

describe('List Approvers', () => {
  test('every operator sees who approves for its customer and with which passkey, which no API client does', async () => {
    const { customer_id, call } = await newCustomer(service)
    const vera = await createOperator(service.db, ROW_MACS, {
      name: 'Vera',
      role: 'VIEWER',
      customerId: customer_id,
    })
    const byVera = await signIn(service, vera)
    const list = async (by: typeof byVera) =>
      (await by<{ items: object[] }>('GET', '/v2/operators/approvers')).body
    expect(await list(byVera)).toEqual({ items: [] })
    const file = await addTestApprover(service.owner, customer_id, { name: 'Ada' })
    const credential = { credential_id: 'AQIDBA', rp_id: 'bursar.example.com' }
    const approver = { name: 'Vera', role: 'ADMIN', operator_id: vera.id }
    const passkey = await transaction(service.owner, (tx) =>
      addApprover(
        tx,
        customer_id,
        { ...approver, key: { ...publicPartOf(newPrivateKey()), ...credential } },
        TEST_ORIGIN,
      ),
    )
    expect(await list(byVera)).toEqual({
      items: [
        { id: file.id, name: 'Ada', role: 'APPROVER', status: 'ACTIVE' },
        { id: passkey.id, ...approver, status: 'ACTIVE', ...credential },
      ],
    })
    expect(await list(await newOperatorCaller(service, 'ADMIN', { customerId: other.customer_id }))).toEqual({
      items: [],
    })
    expect((await call('GET', '/v2/operators/approvers')).status).toBe(403)
  })
})

describe('Try Policy', () => {
  test('a policy is tried on the payments that were made, in their order, and nothing changes', async () => {
    const by = await newCustomer(service)
    await fund(by, '1000')
    const to_profile_id = (await by.call('POST', '/v2/profiles', { nickname: 'Other' })).body.id
    const pay = async (total: string) => {
      const body = withdrawalOf(by, { amount: undefined, total })
      return (await by.call('POST', '/v2/transfer/crypto-withdrawals', body)).body.id
    }
    const ids = [await pay('20'), await pay('30'), await pay('20')]
    const inside = { from_profile_id: by.profile_id, to_profile_id, asset: 'USD', amount: '5' }
    const internal = await by.call('POST', '/v2/transfer/internal', inside)
    const trial = {
      rules: [
        {
          id: 'day',
          match: { transfer_types: ['CRYPTO_WITHDRAWAL'] },
          limit: { amount: '45', asset: 'USD', period_seconds: 86_400 },
          action: 'BLOCK',
        },
        { id: 'own', match: { client_ids: [by.client_id] }, action: 'APPROVE', approvals: 2 },
        { id: 'never', action: 'BLOCK' },
      ],
    }
    const byOda = await newOperatorCaller(service, 'OPERATOR', { customerId: by.customer_id })
    const before = await everyTable(service.db)
    const path = '/v2/operators/policy-trials'
    const tried = await byOda('POST', path, trial)
    expect(tried).toMatchObject({
      status: 200,
      body: {
        from: expect.stringMatching(/^20.*Z$/) as string,
        judged: 4,
        has_more: false,
        // The second of the three does not fit into the day, so it does not count there either.
        outcomes: [
          {
            ...{ rule_id: 'day', outcome: 'BLOCKED', count: 1, notional_value: '30' },
            ...{ totals: [{ asset: 'USDP', total: '30' }], transfer_ids: [ids[1]] },
          },
          {
            ...{ rule_id: 'own', outcome: 'APPROVAL', count: 2, notional_value: '40' },
            ...{ totals: [{ asset: 'USDP', total: '40' }], transfer_ids: [ids[2], ids[0]] },
          },
          {
            // What moves at once cannot wait for approvers.
            ...{ rule_id: 'own', outcome: 'BLOCKED', count: 1, notional_value: '5' },
            ...{ totals: [{ asset: 'USD', total: '5' }], transfer_ids: [internal.body.id] },
          },
        ],
      },
    })
    const toOther = { rules: [{ id: 'to', match: { destination: [to_profile_id] }, action: 'BLOCK' }] }
    const { body } = await byOda<{ outcomes: object[] }>('POST', path, toOther)
    expect(body.outcomes).toMatchObject([
      { rule_id: 'to', outcome: 'BLOCKED', count: 1 },
      { outcome: 'ALLOWED', count: 3 },
    ])
    expect(await everyTable(service.db)).toEqual(before)
    // One at a time for each customer: two of one are one too many, and one of another is none.
    const others = await newOperatorCaller(service, 'OPERATOR', { customerId: other.customer_id })
    const atOnce = await Promise.all([
      byOda('POST', path, trial),
      byOda('POST', path, trial),
      others('POST', path, trial),
    ])
    expect(atOnce.map(({ status }) => status)).toEqual([200, 429, 200])
    const foreign = await newOperatorCaller(service, 'ADMIN', { customerId: other.customer_id })
    expect((await foreign('POST', path, trial)).body).toMatchObject({ judged: 0, outcomes: [] })
    expect((await by.call('POST', path, trial)).status).toBe(403)
    const wrong = await byOda<{ detail: string }>('POST', path, { rules: [{ action: 'APPROVE' }] })
    expect(wrong).toMatchObject(refusedWith(400, 'rules.0.approvals'))
  })

  test('a process tries one at a time', async () => {
    const call = await newOperatorCaller(service, 'OPERATOR', { customerId: other.customer_id })
    const all = await Promise.all(
      Array.from({ length: 8 }, () => call('POST', '/v2/operators/policy-trials', { rules: [] })),
    )
    const statuses = all.map(({ status }) => status)
    expect(statuses).toContain(200)
    expect(statuses).toContain(429)
  })
})
