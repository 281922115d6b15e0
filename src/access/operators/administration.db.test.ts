/* Who may change operators over the API: the ADMINs of their customer, nobody of another one, and nobody itself. */
import { expect, test } from 'vitest'
import { ROW_MACS, newCustomer, ownTestService } from '../../../test/support.ts'
import { signIn as signInAs } from '../../../test/operators.ts'
import { setPolicy } from '../../../test/policies.ts'
import type { Role } from '../../contract/roles.ts'
import { createOperator, type Operator } from './operators.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)

const newOperator = (name: string, role: Role, customerId?: string): Promise<Operator> =>
  createOperator(service.db, ROW_MACS, { name, role, customerId })

const signIn = (operator: Operator, customerId = customer.customer_id) =>
  signInAs(service, operator, customerId)

interface Shown {
  id: string
  name: string
  role: Role
  status: string
}
const listed = async (call: Awaited<ReturnType<typeof signIn>>) =>
  (await call<{ items: Shown[] }>('GET', '/v2/operators')).body.items

test('an ADMIN changes a role and ends the access, which the audit log tells', async () => {
  const ada = await newOperator('Ada', 'ADMIN', customer.customer_id)
  const bob = await newOperator('Bob', 'OPERATOR', customer.customer_id)
  const [byAda, byBob] = [await signIn(ada), await signIn(bob)]
  expect(await listed(byBob)).toEqual(await listed(byAda))
  expect(await listed(byAda)).toContainEqual(
    expect.objectContaining({ id: bob.id, name: 'Bob', role: 'OPERATOR', status: 'ACTIVE' }),
  )
  const path = `/v2/operators/${bob.id}`
  const promoted = await byAda<{ operator: Shown }>('PUT', path, { role: 'APPROVER' })
  expect(promoted).toMatchObject({ status: 200, body: { operator: { role: 'APPROVER', status: 'ACTIVE' } } })
  const disabled = await byAda('PUT', path, { status: 'DISABLED' })
  expect(disabled).toMatchObject({ status: 200, body: { operator: { status: 'DISABLED' } } })
  await expect.poll(async () => (await byBob('GET', '/v2/operators')).status, { timeout: 5_000 }).toBe(401)
  // A repeat changes nothing, and is not recorded.
  expect((await byAda('PUT', path, { status: 'DISABLED', role: 'APPROVER' })).body).toEqual(disabled.body)
  expect(await byAda('PUT', path, { status: 'ACTIVE' })).toMatchObject({
    body: { operator: { status: 'ACTIVE' } },
  })
  const log = await customer.call<{ items: { action: string; actor: object; changes?: object }[] }>(
    'GET',
    `/v2/audit-log?subject_ids=${bob.id}&order=ASC`,
  )
  const byItself = log.body.items.filter(({ action }) => action !== 'operator.sign_in')
  expect(byItself.map(({ action }) => action)).toEqual([
    'operator.set_role',
    'operator.disable',
    'operator.enable',
  ])
  for (const { actor } of byItself) expect(actor).toEqual({ type: 'OPERATOR', id: ada.id, name: ada.name })
  expect(byItself[0]!.changes).toEqual({
    before: { role: 'OPERATOR' },
    after: { role: 'APPROVER', generation: 1 },
  })
})

test('who is no ADMIN, an API client, and an ADMIN of another customer change nobody', async () => {
  const target = await newOperator('Target', 'VIEWER', customer.customer_id)
  const path = `/v2/operators/${target.id}`
  for (const role of ['VIEWER', 'OPERATOR', 'APPROVER'] as const) {
    const call = await signIn(await newOperator(role, role, customer.customer_id))
    expect((await call('PUT', path, { role: 'ADMIN' })).status, role).toBe(403)
  }
  expect((await customer.call('GET', '/v2/operators')).status).toBe(403)
  expect((await customer.call('PUT', path, { role: 'ADMIN' })).status).toBe(403)
  const foreign = await signIn(await newOperator('Eve', 'ADMIN', other.customer_id))
  expect((await foreign('PUT', path, { role: 'ADMIN' })).status).toBe(404)
  expect((await listed(foreign)).map(({ name }) => name)).toEqual(['Eve'])
  const left = (await listed(await signIn(await newOperator('Ann', 'ADMIN', customer.customer_id)))).find(
    ({ id }) => id === target.id,
  )
  expect(left).toMatchObject({ role: 'VIEWER', status: 'ACTIVE' })
})

test('nobody changes itself or an operator of the platform; the platform changes those of the customer', async () => {
  const ada = await newOperator('Ada', 'ADMIN', customer.customer_id)
  const platform = await newOperator('Root', 'ADMIN')
  const byAda = await signIn(ada)
  expect((await byAda('PUT', `/v2/operators/${ada.id}`, { status: 'DISABLED' })).status).toBe(403)
  expect((await byAda('PUT', `/v2/operators/${platform.id}`, { role: 'VIEWER' })).status).toBe(404)
  // In a sandbox everybody is of the deployment.
  expect((await listed(byAda)).find(({ id }) => id === platform.id)).not.toHaveProperty('customer_id')
  const byPlatform = await signIn(platform)
  expect((await byPlatform('PUT', `/v2/operators/${ada.id}`, { role: 'VIEWER' })).status).toBe(200)
  expect(
    (await (await signIn(platform, other.customer_id))('PUT', `/v2/operators/${ada.id}`, {})).status,
  ).toBe(400)
  const elsewhere = await signIn(platform, other.customer_id)
  expect((await elsewhere('PUT', `/v2/operators/${ada.id}`, { role: 'ADMIN' })).status).toBe(404)
})

test('more rights wait for approvers where the policy says so, and disabling does not', async () => {
  const ada = await newOperator('Ada', 'ADMIN', other.customer_id)
  const bob = await newOperator('Bob', 'VIEWER', other.customer_id)
  await setPolicy(service.db, other.customer_id, {
    rules: [],
    changes: { subjects: ['OPERATORS'], approvals: 1 },
  })
  const byAda = await signIn(ada)
  const path = `/v2/operators/${bob.id}`
  const asked = await byAda<{ type: string; meta: { approval_id: string } }>('PUT', path, { role: 'ADMIN' })
  expect(asked.status).toBe(403)
  expect(asked.body.type).toMatch(/approval-required$/)
  expect(asked.body.meta.approval_id).toBeDefined()
  expect((await byAda('PUT', path, { status: 'DISABLED' })).status).toBe(200)
  expect((await byAda('PUT', path, { status: 'ACTIVE' })).status).toBe(403)
  expect((await listed(byAda)).find(({ id }) => id === bob.id)).toMatchObject({
    role: 'VIEWER',
    status: 'DISABLED',
  })
})

test.each([
  ['an unknown role', { role: 'ROOT' }, 'role'],
  ['an unknown status', { status: 'GONE' }, 'status'],
  ['an unknown member', { name: 'Ada' }, 'name'],
])('%s is a clear problem', async (_, body, named) => {
  const ada = await signIn(await newOperator('Ada', 'ADMIN', customer.customer_id))
  const answer = await ada<{ detail: string }>('PUT', `/v2/operators/${customer.customer_id}`, body)
  expect(answer.status).toBe(400)
  expect(answer.body.detail).toContain(named)
})
