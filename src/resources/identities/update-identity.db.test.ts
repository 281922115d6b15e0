/*
 * Invariants: a request of the client never gives an identity more rights, except by lifting the client's own flag.
 * A refused request changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  everyTable,
  fund,
  newCustomer,
  TEST_ORIGIN,
  withdrawalOf,
  sharedTestService,
} from '../../../test/support.ts'
import { STATUSES } from '../../money/records/holders.ts'
import type { Identity } from '../../money/records/identity.ts'
import { setIdentityStatus } from './set-identity-status.ts'
import { refusedWith } from '../../../test/matchers.ts'

const IDENTITIES = '/v2/identity/identities'
const A_TIME = expect.any(String) as string
const PERSON = { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }

const service = await sharedTestService()
const customer = await newCustomer(service)
await fund(customer, '1000')

async function made(changes: object = { person_details: PERSON }): Promise<Identity> {
  const { body, status } = await customer.call<Identity>('POST', IDENTITIES, {
    ref_id: randomUUID(),
    ...changes,
  })
  expect(status).toBe(200)
  return body
}

const update = (id: string, body: object) => customer.call<Identity>('PUT', `${IDENTITIES}/${id}`, body)
const read = async (id: string) =>
  (await customer.call<Identity>('GET', `${IDENTITIES}/${id}?include_details=true`)).body

/** Updates, checks that the answer equals a later read, and returns it. */
async function updated(id: string, body: object): Promise<Identity> {
  const answer = await update(id, body)
  expect(answer).toMatchObject({ status: 200 })
  expect(await read(id)).toEqual(answer.body)
  return answer.body
}

describe('Update Identity', () => {
  describe('an update', () => {
    test('changes the given members of each object, and keeps the rest', async () => {
      const before = await made({
        person_details: { ...PERSON, address: { city: 'London', country: 'GB' }, x: 1 },
        customer_due_diligence: { source_of_wealth: 'INHERITANCE', y: [1] },
        tax_details: [{ tax_payer_id: '1' }, { tax_payer_id: '2' }],
        metadata: { a: 'b' },
      })
      const after = await updated(before.id, {
        id: before.id.toUpperCase(),
        ref_id: before.ref_id,
        person_details: { last_name: 'Byron', address: { city: 'Paris' }, z: null },
        customer_due_diligence: { employment_status: 'RETIRED' },
        tax_details: [{ tax_payer_id: '3' }],
        set_tax_details_not_required: true,
        is_merchant: true,
        last_kyc_refresh_date: '2026-01-31T10:30:00.1234567+01:00',
        metadata: { c: 'd' },
      })
      const details = { ...PERSON, last_name: 'Byron', address: { city: 'Paris' }, x: 1, z: null }
      expect(after).toEqual({
        ...before,
        details,
        person_details: details,
        customer_due_diligence: { source_of_wealth: 'INHERITANCE', y: [1], employment_status: 'RETIRED' },
        tax_details: [{ tax_payer_id: '3' }],
        tax_details_not_required: true,
        is_merchant: true,
        last_kyc_refresh_date: '2026-01-31T09:30:00.123456Z',
        metadata: { c: 'd' },
        updated_at: A_TIME,
      })
      expect(after.updated_at > before.updated_at).toBe(true)
    })

    test('that changes nothing leaves updated_at as it is', async () => {
      const before = await updated((await made()).id, {
        last_kyc_refresh_date: '2026-01-31T09:30:00Z',
        tax_details: [{ tax_payer_id: '1' }],
      })
      const same = {
        person_details: { last_name: 'Lovelace' },
        last_kyc_refresh_date: '2026-01-31T10:30:00+01:00',
        tax_details: [{ tax_payer_id: '1' }],
        set_user_disabled: false,
      }
      expect(await updated(before.id, same)).toEqual(before)
    })

    test('of an institution keeps its members', async () => {
      const { id: identity_id } = await made()
      const institution_members = [{ identity_id, roles: ['TRUSTEE'] }]
      const { id } = await made({ institution_details: { name: 'Acme' }, institution_members })
      const answer = await update(id, { institution_details: { institution_type: 'LLC' } })
      expect(answer.body).toMatchObject({
        details: { name: 'Acme', institution_type: 'LLC' },
        institution_members,
      })
    })

    test('loses no change of many concurrent updates', async () => {
      const { id } = await made()
      await Promise.all(
        Array.from({ length: 8 }, (_, n) => update(id, { person_details: { [`member_${n}`]: n } })),
      )
      const { details } = await read(id)
      expect(Object.keys(details!)).toHaveLength(Object.keys(PERSON).length + 8)
    })
  })

  describe('approval', () => {
    const other = { first_name: 'Mallory' }

    test.each(STATUSES)('ends when the details change, and other statuses stay: %s', async (status) => {
      const { id } = await made()
      await customer.call('PUT', `${IDENTITIES}/${id}/sandbox-status`, { status })
      const after = await updated(id, { person_details: other })
      expect(after.status).toBe(status === 'APPROVED' ? 'PENDING' : status)
    })

    test.each<[string, object]>([
      ['contact details', { person_details: { email: 'new@example.com', phone_number: '1' } }],
      ['details that equal the old ones', { person_details: { first_name: 'Ada' } }],
      [
        'metadata, merchant flag and tax details',
        { metadata: { a: 'b' }, is_merchant: true, tax_details: [] },
      ],
      ['due diligence', { customer_due_diligence: { source_of_wealth: 'INHERITANCE' } }],
    ])('is kept with changed %s', async (_, change) => {
      const { id } = await made()
      await customer.call('PUT', `${IDENTITIES}/${id}/sandbox-status`, { status: 'APPROVED' })
      expect(await updated(id, change)).toMatchObject({ status: 'APPROVED', summary_status: 'APPROVED' })
    })

    test('of the previous details permits no withdrawal', async () => {
      const { id: identity_id } = await made()
      await setIdentityStatus(service.db, identity_id, { status: 'APPROVED' }, TEST_ORIGIN)
      const withdraw = () =>
        customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer, { identity_id }))
      expect(await withdraw()).toMatchObject({ status: 200 })
      await updated(identity_id, { person_details: other })
      expect(await withdraw()).toMatchObject({
        status: 403,
        body: { meta: { ref_path: 'identity_id', identity_id, current_status: 'PENDING' } },
      })
    })
  })

  describe('flags', () => {
    test("the client sets and lifts its own flag; the administrator's flag stays", async () => {
      const { id } = await made()
      await setIdentityStatus(service.db, id, { status: 'DENIED', admin_disabled: true }, TEST_ORIGIN)
      for (const set_user_disabled of [true, false]) {
        expect(await updated(id, { set_user_disabled })).toMatchObject({
          status: 'DENIED',
          user_disabled: set_user_disabled,
          admin_disabled: true,
          summary_status: 'DISABLED',
        })
      }
      await setIdentityStatus(service.db, id, { admin_disabled: false }, TEST_ORIGIN)
      expect(await read(id)).toMatchObject({ status: 'DENIED', summary_status: 'DENIED' })
    })
  })

  describe('refused, and nothing changes:', () => {
    const future = new Date(Date.now() + 24 * 3600 * 1000).toISOString()
    test.each<[string, object, string]>([
      ['a body with only the id', { id: 'own' }, 'at least one of'],
      ['another type', { institution_details: { name: 'A' } }, 'institution_details must not be given'],
      ['a date in the future', { last_kyc_refresh_date: future }, 'last_kyc_refresh_date must be between'],
      ['an old date', { last_kyc_refresh_date: '1969-12-31T23:59:59Z' }, 'last_kyc_refresh_date must be'],
      [
        'the last possible moment',
        { last_kyc_refresh_date: '9999-12-31T23:59:59-01:00' },
        'last_kyc_refresh_date must',
      ],
    ])('%s', async (_, body, rule) => {
      const { id } = await made()
      const before = await everyTable(service.db)
      const named = 'id' in body && body.id === 'own' ? { id } : body
      const answer = await update(id, named)
      expect(answer).toMatchObject(refusedWith(400, rule))
      expect(await everyTable(service.db)).toEqual(before)
    })

    test.each(['person_details', 'customer_due_diligence'])('%s that grow beyond 8 KiB', async (field) => {
      const { id } = await made()
      const half = 'x'.repeat(5_000)
      await updated(id, { [field]: { a: half } })
      const before = await everyTable(service.db)
      expect(await update(id, { [field]: { b: half } })).toMatchObject({
        status: 400,
        body: { detail: `${field} must have at most 8192 bytes as JSON, changes included` },
      })
      expect(await everyTable(service.db)).toEqual(before)
    })
  })
})
