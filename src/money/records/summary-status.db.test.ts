/** Each change of a summary_status to APPROVED, DENIED or DISABLED is one event, of identities and of their accounts. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { setAccountDisabled } from '../../resources/accounts/set-account-disabled.ts'
import { setIdentityStatus } from '../../resources/identities/set-identity-status.ts'
import { newCustomer, TEST_ORIGIN, sharedTestService } from '../../../test/support.ts'
import { SEED } from '../../../test/seed.ts'
import { readEvents } from './event.ts'

const service = await sharedTestService()
const customer = await newCustomer(service)

const IDENTITIES = '/v2/identity/identities'
const ACCOUNTS = '/v2/identity/accounts'
const MEMBERS = '/v2/identity/institution-members'
const ADA = { person_details: { first_name: 'Ada', last_name: 'Example' } }

let made = 0
const created = async (url: string, body: object) => {
  const answer = await customer.call<{ id: string }>('POST', url, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.id
}
const newIdentity = (details: object = ADA) =>
  created(IDENTITIES, { ref_id: `identity-${made++}`, ...details })
const newAccount = (identity_id: string) => created(ACCOUNTS, { account: { identity_id } })

async function put(url: string, body: object): Promise<void> {
  const answer = await customer.call('PUT', url, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
}
const setStatus = (id: string, body: object) => put(`${IDENTITIES}/${id}/sandbox-status`, body)
const setUserDisabled = (id: string, set_user_disabled: boolean) =>
  put(ACCOUNTS, { account: { id }, set_user_disabled })

/** Returns the changes that the events of a record tell, in order: `PENDING > APPROVED`. */
async function changesOf(objectId: string): Promise<string[]> {
  const { rows } = await service.db.query<{ id: string }>(
    'select id from events where customer_id = $1 and object_id = $2 and object is not null order by id',
    [customer.customer_id, objectId],
  )
  const events = await readEvents(
    service.db,
    customer.customer_id,
    rows.map(({ id }) => id),
  )
  return events.map(({ event, object_id, is_test }) => {
    expect([object_id, is_test]).toEqual([objectId, false])
    const object = event.object as Record<string, string>
    const record = event.type.split('.')[0]!
    expect(Object.keys(object)).toEqual(['id', `${record}_id`, 'old_summary_status', 'new_summary_status'])
    expect(object).toMatchObject({ id: event.id, [`${record}_id`]: objectId })
    expect(event.type).toBe(`${record}.${object.new_summary_status!.toLowerCase()}`)
    return `${object.old_summary_status} > ${object.new_summary_status}`
  })
}

describe('a change of an identity', () => {
  test('is one event of the identity and one of each account that follows it', async () => {
    const identity = await newIdentity()
    const [account, disabled] = [await newAccount(identity), await newAccount(identity)]
    await setUserDisabled(disabled, true)
    expect([await changesOf(identity), await changesOf(account)]).toEqual([[], []])

    await setStatus(identity, { status: 'APPROVED' })
    await setStatus(identity, { status: 'APPROVED' })
    await setStatus(identity, { user_disabled: true })
    await setStatus(identity, { admin_disabled: true, status: 'DENIED' })
    await setStatus(identity, { user_disabled: false, admin_disabled: false })
    const changes = ['PENDING > APPROVED', 'APPROVED > DISABLED', 'DISABLED > DENIED']
    expect(await changesOf(identity)).toEqual(changes)
    expect(await changesOf(account)).toEqual(changes)
    expect(await changesOf(disabled)).toEqual(['PENDING > DISABLED'])
  })

  test('to PENDING is no event, and the next approval is one', async () => {
    const identity = await newIdentity({ institution_details: { name: 'Example Ltd' } })
    const member = await newIdentity()
    await setStatus(identity, { sanctions_verification_status: 'APPROVED' })
    await put(`${IDENTITIES}/${identity}`, { institution_details: { name: 'Other Ltd' } })
    await setStatus(identity, { status: 'APPROVED' })
    const members = [{ identity_id: member, roles: ['BENEFICIAL_OWNER'] }]
    await created(MEMBERS, { institution_id: identity, members })
    await setStatus(identity, { status: 'APPROVED' })
    await put(`${IDENTITIES}/${identity}`, { set_user_disabled: true })
    expect(await changesOf(identity)).toEqual([
      'PENDING > APPROVED',
      'PENDING > APPROVED',
      'PENDING > APPROVED',
      'APPROVED > DISABLED',
    ])
  })

  test('by an operator is an event, too', async () => {
    const identity = await newIdentity()
    const account = await newAccount(identity)
    await setIdentityStatus(service.db, identity, { status: 'APPROVED' }, TEST_ORIGIN)
    await setIdentityStatus(service.db, identity, { admin_disabled: true }, TEST_ORIGIN)
    await setIdentityStatus(service.db, identity, { admin_disabled: true }, TEST_ORIGIN)
    await expect(
      setIdentityStatus(
        service.db,
        identity,
        { status: 'DENIED', seen: '2020-01-01T00:00:00Z' },
        TEST_ORIGIN,
      ),
    ).rejects.toThrow('look at it again')
    const changes = ['PENDING > APPROVED', 'APPROVED > DISABLED']
    expect(await changesOf(identity)).toEqual(changes)
    expect(await changesOf(account)).toEqual(changes)
  })
})

describe('a change of an account', () => {
  test('is one event, unless its identity disables it already', async () => {
    const identity = await newIdentity()
    await setStatus(identity, { status: 'APPROVED' })
    const account = await newAccount(identity)
    await setUserDisabled(account, true)
    await setAccountDisabled(service.db, account, { admin_disabled: true }, TEST_ORIGIN)
    await setUserDisabled(account, false)
    await setStatus(identity, { admin_disabled: true })
    await setAccountDisabled(service.db, account, { admin_disabled: false }, TEST_ORIGIN)
    await put(ACCOUNTS, { account: { id: account, description: 'Savings' } })
    expect(await changesOf(account)).toEqual(['PENDING > APPROVED', 'APPROVED > DISABLED'])
  })
})

test('events of concurrent changes tell an unbroken history', async () => {
  const identity = await newIdentity()
  const account = await newAccount(identity)
  const change = fc.oneof(
    fc.constantFrom('APPROVED', 'PENDING', 'DENIED').map((status) => () => setStatus(identity, { status })),
    fc.boolean().map((disabled) => () => setStatus(identity, { user_disabled: disabled })),
    fc.boolean().map((disabled) => () => setUserDisabled(account, disabled)),
    fc
      .boolean()
      .map(
        (admin_disabled) => () => setAccountDisabled(service.db, account, { admin_disabled }, TEST_ORIGIN),
      ),
  )
  const changes = fc.sample(change, { numRuns: 120, seed: SEED })
  const worker = async (): Promise<void> => {
    for (let next = changes.pop(); next !== undefined; next = changes.pop()) await next()
  }
  await Promise.all(Array.from({ length: 6 }, worker))
  for (const url of [`${IDENTITIES}/${identity}`, `${ACCOUNTS}/${account}`]) {
    const { body } = await customer.call<{ id: string; summary_status: string }>('GET', url)
    let status = 'PENDING'
    for (const [before, after] of (await changesOf(body.id)).map((told) => told.split(' > '))) {
      // Becoming PENDING is no event.
      expect([status, 'PENDING'], `seed ${SEED}`).toContain(before)
      expect(after).not.toBe(before)
      status = after!
    }
    expect([status, 'PENDING'], `seed ${SEED}`).toContain(body.summary_status)
  }
})
