/*
 * Invariants: an update by the client lifts only the client's own flag. A request adds all of its members, or none. A
 * refused request changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  approve,
  everyTable,
  fund,
  newCustomer,
  TEST_ORIGIN,
  type TestCustomer,
  withdrawalOf,
  sharedTestService,
  newIdentity,
} from '../../../test/support.ts'
import type { Account } from '../../money/records/account.ts'
import { setAccountDisabled } from './set-account-disabled.ts'
import { refusedWith } from '../../../test/matchers.ts'

const ACCOUNTS = '/v2/identity/accounts'
const MEMBERS = '/v2/identity/account-members'

const service = await sharedTestService()
const customer = await newCustomer(service)
await fund(customer, '1000')
/** Ids of identities of the customer; all are approved. */
const ids = await Promise.all(Array.from({ length: 4 }, () => identityOf(customer)))

async function identityOf(by: TestCustomer): Promise<string> {
  const id = await newIdentity(by)
  await approve(by, id)
  return id
}

async function made(changes: object = {}): Promise<Account> {
  const account = { identity_id: ids[0], ref_id: randomUUID(), ...changes }
  const { body, status } = await customer.call<Account>('POST', ACCOUNTS, { account })
  expect(status).toBe(200)
  return body
}
const read = async (id: string) => (await customer.call<Account>('GET', `${ACCOUNTS}/${id}`)).body
const update = (body: object) => customer.call<Account>('PUT', ACCOUNTS, body)

async function updated(body: object): Promise<Account> {
  const answer = await update(body)
  expect(answer).toMatchObject({ status: 200 })
  expect(await read(answer.body.id)).toEqual(answer.body)
  return answer.body
}

describe('Update Account', () => {
  test('changes the given fields and keeps the rest', async () => {
    const before = await made({ description: 'Savings', metadata: { a: 'b' } })
    const { id, ref_id } = before
    const described = await updated({ account: { id: id.toUpperCase(), ref_id, description: 'Joint' } })
    expect(described).toEqual({ ...before, description: 'Joint', updated_at: described.updated_at })
    expect(described.updated_at > before.updated_at).toBe(true)
    const noted = await updated({ account: { id, metadata: { c: 'd' } } })
    expect(noted).toEqual({ ...described, metadata: { c: 'd' }, updated_at: noted.updated_at })
    expect(await updated({ account: { id, description: 'Joint', metadata: { c: 'd' } } })).toEqual(noted)
  })

  test("lifts the client's own flag, not the administrator's", async () => {
    const { id: account_id } = await made()
    const withdraw = () =>
      customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer, { account_id }))
    expect((await withdraw()).status).toBe(200)
    const account = { id: account_id }
    expect(await updated({ account, set_user_disabled: true })).toMatchObject({ summary_status: 'DISABLED' })
    expect((await withdraw()).status).toBe(403)
    await setAccountDisabled(service.db, account_id, { admin_disabled: true }, TEST_ORIGIN)
    expect(await updated({ account, set_user_disabled: false })).toMatchObject({
      user_disabled: false,
      admin_disabled: true,
      summary_status: 'DISABLED',
    })
    expect((await withdraw()).status).toBe(403)
    await setAccountDisabled(service.db, account_id, { admin_disabled: false }, TEST_ORIGIN)
    expect((await withdraw()).status).toBe(200)
  })

  test('takes the whole record back, as clients have read it', async () => {
    const { id } = await made()
    const { body: read } = await customer.call<Account>('GET', `${ACCOUNTS}/${id}`)
    expect(await updated({ account: { ...read, description: 'Sent back' } })).toMatchObject({
      id,
      description: 'Sent back',
    })
  })

  test.each<[string, number, string, (id: string) => object]>([
    [
      "the administrator's flag",
      400,
      'account.admin_disabled cannot be changed',
      (id) => ({ account: { id, description: 'x', admin_disabled: true } }),
    ],
    [
      'another identity',
      400,
      'account.identity_id cannot be changed',
      (id) => ({ account: { id, description: 'x', identity_id: ids[1] } }),
    ],
  ])('is refused, and nothing changes: %s', async (_, status, detail, body) => {
    const { id } = await made()
    const before = await everyTable(service.db)
    expect(await update(body(id))).toMatchObject(refusedWith(status, detail))
    expect(await everyTable(service.db)).toEqual(before)
  })
})

const add = (account_id: string, ...members: object[]) =>
  customer.call<{ members: Account['members'] }>('POST', MEMBERS, { account_id, members })
const remove = (id: string) => customer.call('DELETE', `${MEMBERS}/${id}`)
const memberOf = (identity_id: string | undefined) => ({ identity_id, roles: [] as string[] })

describe('Add Account Members', () => {
  test('members are added and removed', async () => {
    const { id, members: first, updated_at } = await made({ members: [{ identity_id: ids[1] }] })
    const added = await add(id, { identity_id: ids[2], type: 'AUTHORIZED_USER' }, { identity_id: ids[0] })
    expect(added).toMatchObject({
      status: 200,
      body: {
        account_id: id,
        members: [
          { identity_id: ids[2], type: 'AUTHORIZED_USER', roles: ['AUTHORIZED_USER'] },
          { identity_id: ids[0], roles: [] },
        ],
      },
    })
    const all = [...first, ...added.body.members]
    const grown = await read(id)
    expect(grown.members).toEqual(all)
    expect(grown.updated_at > updated_at).toBe(true)
    expect(await remove(all[1]!.id.toUpperCase())).toMatchObject({ status: 200, body: {} })
    const shrunk = await read(id)
    expect(shrunk.members).toEqual([all[0], all[2]])
    expect(shrunk.updated_at > grown.updated_at).toBe(true)
    expect((await remove(all[1]!.id)).status).toBe(200)
    expect(await read(id)).toEqual(shrunk)
  })

  test('members withdraw for the account, and no longer once they are removed', async () => {
    const { id: account_id } = await made()
    const withdraw = () =>
      customer.call(
        'POST',
        '/v2/transfer/crypto-withdrawals',
        withdrawalOf(customer, { account_id, identity_id: ids[1] }),
      )
    expect((await withdraw()).status).toBe(400)
    const { body } = await add(account_id, { identity_id: ids[1], roles: ['AUTHORIZED_USER'] })
    expect((await withdraw()).status).toBe(200)
    await remove(body.members[0]!.id)
    expect((await withdraw()).status).toBe(400)
  })

  test('of many concurrent requests one is accepted, and the others answer the existing member', async () => {
    const { id } = await made()
    const answers = await Promise.all(Array.from({ length: 6 }, () => add(id, { identity_id: ids[1] })))
    const accepted = answers.filter(({ status }) => status === 200)
    expect(accepted).toHaveLength(1)
    const existing = accepted[0]!.body.members[0]
    for (const answer of answers.filter((one) => one !== accepted[0]))
      expect(answer).toMatchObject({ status: 409, body: { meta: { existing } } })
  })

  test('members are limited to 100', async () => {
    const many = await Promise.all(Array.from({ length: 99 }, () => identityOf(customer)))
    const { id } = await made({ members: many.map(memberOf) })
    expect(await add(id, memberOf(ids[1]), memberOf(ids[2]))).toMatchObject({
      status: 400,
      body: { detail: 'members: there may be 100 in all, and 99 are there' },
    })
    expect((await add(id, memberOf(ids[1]))).status).toBe(200)
  })
})

describe('Remove Account Member', () => {
  test('many concurrent requests remove a member once, and all succeed', async () => {
    const { id, members } = await made({ members: [{ identity_id: ids[1] }] })
    const answers = await Promise.all(Array.from({ length: 6 }, () => remove(members[0]!.id)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    expect((await read(id)).members).toEqual([])
  })
})
