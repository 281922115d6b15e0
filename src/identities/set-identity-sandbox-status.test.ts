import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  atEnd,
  everyTable,
  newCustomer,
  startTestService,
  type TestCustomer,
  type TestService,
} from '../../test/support.ts'
import { STATUSES } from '../records/holders.ts'
import type { Identity } from './identity.ts'

const IDENTITIES = '/v2/identity/identities'

let service: TestService
let customer: TestCustomer
beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
})
afterAll(() => service.close())

const statusOf = (id: string) => `${IDENTITIES}/${id}/sandbox-status`

async function newIdentity(): Promise<Identity> {
  const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
  const { body } = await customer.call<Identity>('POST', IDENTITIES, { ref_id: randomUUID(), person_details })
  return body
}

/** Sets the fields, and checks that the answer equals a later read. */
async function set(id: string, body: object): Promise<Identity> {
  const answer = await customer.call<Identity>('PUT', statusOf(id), body)
  expect(answer.status).toBe(200)
  expect((await customer.call('GET', `${IDENTITIES}/${id}`)).body).toEqual(answer.body)
  return answer.body
}

test('any status may follow any', async () => {
  const { id } = await newIdentity()
  for (const from of STATUSES) {
    for (const to of STATUSES) {
      expect(await set(id, { status: from })).toMatchObject({ status: from, summary_status: from })
      expect(await set(id, { status: to })).toMatchObject({ status: to, summary_status: to })
    }
  }
})

test('a flag disables, whatever the status; what is not given stays', async () => {
  const { id } = await newIdentity()
  for (const status of STATUSES) {
    await set(id, { status })
    for (const user_disabled of [false, true]) {
      await set(id, { user_disabled })
      for (const admin_disabled of [false, true]) {
        const summary_status = user_disabled || admin_disabled ? 'DISABLED' : status
        expect(await set(id, { admin_disabled })).toMatchObject({
          status,
          user_disabled,
          admin_disabled,
          summary_status,
        })
      }
    }
    const all = { status, user_disabled: false, admin_disabled: false }
    expect(await set(id, all)).toMatchObject({ ...all, summary_status: status })
  }
})

test('nothing else changes but updated_at', async () => {
  const before = await newIdentity()
  const after = await set(before.id, { status: 'DENIED' })
  expect(after).toEqual({
    ...before,
    status: 'DENIED',
    summary_status: 'DENIED',
    updated_at: expect.any(String) as string,
  })
  expect(after.updated_at > before.updated_at).toBe(true)
})

test.each<[string, number, string | undefined, object, string[]]>([
  ['nothing to set', 400, undefined, {}, ['status', 'user_disabled', 'admin_disabled', 'required']],
  ['an unknown status', 400, undefined, { status: 'FROZEN' }, ['status must be one of PENDING, ERROR']],
  ['a flag that is text', 400, undefined, { user_disabled: 'true' }, ['user_disabled must be a boolean']],
  ['a flag that is null', 400, undefined, { admin_disabled: null }, ['admin_disabled must be a boolean']],
  ['an unknown field', 400, undefined, { summary_status: 'DENIED' }, ['summary_status is not a known field']],
  ['nobody', 404, randomUUID(), { status: 'DENIED' }, ['identity', 'not found']],
  ['what is no id', 400, 'ada', { status: 'DENIED' }, ['id must be a UUID']],
])('refused: %s', async (_, status, id, body, words) => {
  const identity = await newIdentity()
  const before = await everyTable(service.db)
  const answer = await customer.call<{ detail: string }>('PUT', statusOf(id ?? identity.id), body)
  expect(answer.status).toBe(status)
  for (const word of words) expect(answer.body.detail).toContain(word)
  expect(await everyTable(service.db)).toEqual(before)
})

test("refused: another customer's identity", async () => {
  const { id } = await newIdentity()
  const other = await newCustomer(service)
  const before = await everyTable(service.db)
  expect((await other.call('PUT', statusOf(id), { status: 'APPROVED' })).status).toBe(404)
  expect(await everyTable(service.db)).toEqual(before)
})

test('in live mode there is no such operation', async () => {
  const live = await startTestService({ BURSAR_MODE: 'live' })
  atEnd(() => live.close())
  const { call } = await newCustomer(live)
  const path = statusOf(randomUUID())
  expect(await call('PUT', path, { status: 'APPROVED' })).toMatchObject({
    status: 404,
    body: { detail: `PUT ${path} not found` },
  })
})
