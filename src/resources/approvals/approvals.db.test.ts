/* The operations; src/rails/payouts/decide-approval.slow.test.ts tests who can approve, and what the signer accepts. */
import { describe, expect, test, vi } from 'vitest'
import { addTestApprover, withdrawWithApproval, type Waiting } from '../../../test/approvers.ts'
import { newCustomer, ROW_MACS, sharedTestService, TEST_ORIGIN } from '../../../test/support.ts'
import { registerApiClient, rotateSecret } from '../../access/tokens/api-clients.ts'
import type { Actor, ActorType, Origin } from '../../contract/actor.ts'
import type { Approval, ApprovalDecision } from '../../contract/approval.ts'
import { transaction } from '../../db/database.ts'
import { newId, PLATFORM_ID, readClock } from '../../db/ids.ts'
import { actorsBehind } from '../../governance/approvals/approver.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { signStatement } from '../../governance/approvals/approval-statement.ts'

const APPROVALS = '/v2/approvals'

const service = await sharedTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)
const ada = await addTestApprover(service.owner, customer.customer_id)

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

describe('who is behind an order', () => {
  const by = (type: ActorType, id: string): Origin => ({ actor: { type, id } })
  const eve = crypto.randomUUID()
  const bob = crypto.randomUUID()
  const register = (origin: Origin) =>
    transaction(service.db, (tx) =>
      registerApiClient(tx, ROW_MACS, customer.customer_id, { scopes: ['audit:read_audit_log'] }, origin),
    )

  test('does not approve it: who made the credential, or that of whoever made it', async () => {
    const { id, jwk } = await addTestApprover(service.owner, customer.customer_id, { operator_id: eve })
    const { client_id: first } = await register(by('OPERATOR', eve))
    const { client_id: second } = await register(by('API_CLIENT', first))
    for (const [client, status] of [
      [first, 403],
      [second, 403],
      [(await register(by('OPERATOR', bob))).client_id, 200],
    ] as const) {
      const { approval_id } = await withdrawWithApproval(service, customer, by('API_CLIENT', client), {
        approvals: 1,
      })
      const { to_sign } = (await read(approval_id)).body
      const given = { approver_id: id, ...signStatement(to_sign.APPROVE, jwk) }
      const path = `${APPROVALS}/${approval_id}/approve`
      expect(await customer.call('POST', path, given)).toMatchObject({ status })
    }
  })

  test('is whoever made a secret that was in force a day before, and who has made or linked an operator', async () => {
    const { client_id } = await register(by('OPERATOR', eve))
    const now = await transaction(service.db, readClock)
    const behind = async (type: ActorType, id: string, days: number) => {
      const orderId = newId({ ...now, micros: now.micros + days * 86_400_000_000 })
      const order = { id: orderId, initiator: { type, id } }
      // An older order in the same batch changes nothing.
      const older = { ...order, id: newId({ ...now, micros: now.micros - 86_400_000_000 }) }
      // Nothing else in this process asks through the owner's pool.
      const statements = vi.spyOn(service.owner, 'query')
      const [actors] = await actorsBehind(service.owner, customer.customer_id, [order, older])
      expect(statements.mock.calls.length).toBeLessThanOrEqual(4)
      statements.mockRestore()
      return actors!.slice(1).map((actor) => actor.id)
    }
    expect(await behind('API_CLIENT', client_id, 9)).toEqual([eve])
    await transaction(service.db, (tx) => rotateSecret(tx, ROW_MACS, client_id, 3_600, by('OPERATOR', bob)))
    expect((await behind('API_CLIENT', client_id, 1)).toSorted()).toEqual([eve, bob].toSorted())
    expect(await behind('API_CLIENT', client_id, 2)).toEqual([bob])
    for (const owner of [PLATFORM_ID, customer.customer_id])
      await transaction(service.db, (tx) =>
        recordNow(tx, owner, audited(by('OPERATOR', eve), 'operator.link', `${bob}-${owner}`)),
      )
    for (const owner of [PLATFORM_ID, customer.customer_id])
      expect(await behind('OPERATOR', `${bob}-${owner}`, 9)).toEqual([eve])
  })

  test('is counted for each order, and once for each actor', async () => {
    const initiators = Array.from({ length: 700 }, (): Actor => ({
      type: 'API_CLIENT',
      id: crypto.randomUUID(),
    }))
    const rotations = Array.from({ length: 3 }, () =>
      audited(by('OPERATOR', bob), 'api_client.rotate', initiators[0]!.id, {
        after: { previous_secret_expires_at: new Date(Date.now() + 60_000).toISOString() },
      }),
    )
    const made = initiators.map(({ id }) => audited(by('OPERATOR', eve), 'api_client.create', id))
    const now = await transaction(service.db, async (tx) => {
      await recordNow(tx, customer.customer_id, ...made, ...rotations)
      return readClock(tx)
    })
    const orders = initiators.map((initiator) => ({ id: newId(now), initiator }))
    const [first, ...others] = await actorsBehind(service.db, customer.customer_id, orders)
    expect(
      first!
        .slice(1)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual([eve, bob].toSorted())
    for (const behind of others) expect(behind.slice(1)).toEqual([{ type: 'OPERATOR', id: eve }])
    const crowd = Array.from({ length: 1_000 }, () =>
      audited(by('OPERATOR', crypto.randomUUID()), 'api_client.rotate', initiators[0]!.id),
    )
    await transaction(service.db, (tx) => recordNow(tx, customer.customer_id, ...crowd))
    await expect(actorsBehind(service.db, customer.customer_id, orders)).rejects.toThrow('more than 1000')
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
