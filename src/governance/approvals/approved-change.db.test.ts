/*
 * Where the policy says so, a change of configuration is made after its approval only: once, by the actor who asked for it,
 * and exactly as it was approved. A refusal changes nothing but the approval.
 */
import { afterAll, expect, test } from 'vitest'
import { addTestApprover, decideAs } from '../../../test/approvers.ts'
import { setPolicy } from '../../../test/policies.ts'
import { newCustomer, refusing, ownTestService } from '../../../test/support.ts'
import { readApproval } from '../../rails/payouts/decide-approval.ts'
import { verify } from '../../money/verify/verify.ts'
import { expireApprovals } from './approved-change.ts'
import { CHANGE_SUBJECTS } from '../policy/policy-document.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
const ada = await addTestApprover(service.owner, customer.customer_id)
afterAll(async () => expect((await verify(service.db)).disagreements).toEqual([]))

const URL_ = 'https://hooks.example.com/'
const hook = (changes: object = {}) => ({
  name: crypto.randomUUID(),
  url: URL_,
  event_types: ['*'],
  auth: { type: 'API_KEY', header: 'x-key', key: 'the-marker-of-a-secret' },
  ...changes,
})

interface Refused {
  type: string
  meta: { approval_id: string; required: number }
}

async function refused(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object): Promise<string> {
  const answer = await customer.call<Refused>(method, path, body)
  expect(answer).toMatchObject({ status: 403, body: { meta: { status: 'PENDING', required: 1 } } })
  expect(answer.body.type).toMatch(/approval-required$/)
  return answer.body.meta.approval_id
}

const approve = (id: string) => decideAs(service.db, customer.customer_id, id, ada)

test('changes are made once, after their approval, and as they were approved', async () => {
  const { body: before } = await customer.call<{ webhook: { id: string } }>('POST', '/v2/webhooks', hook())
  await setPolicy(service.db, customer.customer_id, {
    rules: [],
    changes: { subjects: [...CHANGE_SUBJECTS], approvals: 1 },
  })
  const client = (await customer.call<{ items: { client_id: string }[] }>('GET', '/v2/api-creds/credentials'))
    .body.items[0]!.client_id
  const changes: ['POST' | 'PUT' | 'DELETE', string, object?][] = [
    ['POST', '/v2/webhooks', hook()],
    ['PUT', `/v2/webhooks/${before.webhook.id}`, { url: 'https://other.example.com/' }],
    ['POST', `/v2/webhooks/${before.webhook.id}/rotate-secret`, { grace_seconds: 60 }],
    [
      'PUT',
      '/v2/transfer/crypto-destination-address',
      { crypto_network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' },
    ],
    ['POST', `/v2/api-creds/credentials/${client}/rotate`, {}],
    ['DELETE', `/v2/api-creds/credentials/${client}`],
  ]
  for (const [method, path, body] of changes) {
    const id = await refused(method, path, body)
    // A repeat shares the approval.
    expect(await refused(method, path, body)).toBe(id)
    const named = `${path}?approval_id=${id}`
    expect((await customer.call(method, named, body)).status, path).toBe(403)
    await approve(id)
    if (body !== undefined && method === 'POST' && 'name' in body) {
      const other = await customer.call(method, named, { ...body, url: 'https://evil.example.com/' })
      expect(other).toMatchObject({
        status: 403,
        body: { detail: expect.stringMatching(/another change/) as string },
      })
      const stolen = await customer.call(method, named, hook({ name: body.name, auth: { type: 'NONE' } }))
      expect(stolen.status).toBe(403)
    }
    expect((await customer.call(method, named, body)).status, path).toBe(200)
    if (method !== 'DELETE') expect(await customer.call(method, named, body)).toMatchObject({ status: 409 })
  }
})

test('no secret is in an approval', async () => {
  const { rows } = await service.db.query<{ text: string }>('select a::text as text from approvals a')
  expect(rows.length).toBeGreaterThan(0)
  for (const { text } of rows) expect(text).not.toContain('the-marker-of-a-secret')
})

test('an approval that nobody decides expires', async () => {
  const other = await newCustomer(service)
  await setPolicy(service.db, other.customer_id, {
    rules: [],
    changes: { subjects: ['WEBHOOKS'], approvals: 1 },
  })
  const { body } = await other.call<Refused>('POST', '/v2/webhooks', hook())
  const { approval_id } = body.meta
  await service.owner.query('update approvals set deadline = created_at where id = $1', [approval_id])
  expect(await expireApprovals(service.db)).toBe(1)
  expect((await readApproval(service.db, other.customer_id, approval_id)).approval.status).toBe('EXPIRED')
  const late = await other.call('POST', `/v2/webhooks?approval_id=${approval_id}`, hook())
  expect(late).toMatchObject({ status: 409, body: { meta: { id: approval_id, status: 'EXPIRED' } } })
})

test('an approval that cannot expire keeps those of other customers from nothing', async () => {
  const ids: string[] = []
  for (let count = 1; count <= 3; count++) {
    const other = await newCustomer(service)
    await setPolicy(service.db, other.customer_id, {
      rules: [],
      changes: { subjects: ['WEBHOOKS'], approvals: 1 },
    })
    const { body } = await other.call<Refused>('POST', '/v2/webhooks', hook())
    ids.push(body.meta.approval_id)
  }
  await service.owner.query('update approvals set deadline = created_at where id = any ($1)', [ids])
  await refusing(service, 'approvals', `id <> '${ids[1]}' or status = 'PENDING'`, async () => {
    await expect(expireApprovals(service.db)).rejects.toMatchObject({
      errors: [{ message: expect.stringContaining('odd_record') as string }],
    })
  })
  const { rows } = await service.db.query<{ id: string }>(
    `select id from approvals where id = any ($1) and status = 'EXPIRED' order by id`,
    [ids],
  )
  expect(rows.map(({ id }) => id)).toEqual([ids[0], ids[2]].sort())
  expect(await expireApprovals(service.db)).toBe(1)
})
