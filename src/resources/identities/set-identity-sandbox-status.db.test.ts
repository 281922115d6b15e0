import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { everyTable, newCustomer, sharedTestService } from '../../../test/support.ts'
import { STATUSES } from '../../money/records/holders.ts'
import type { Identity } from '../../money/records/identity.ts'
import { refusedWith } from '../../../test/matchers.ts'

const IDENTITIES = '/v2/identity/identities'

const service = await sharedTestService()
const customer = await newCustomer(service)

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

describe('Set Identity Sandbox Status', () => {
  test('every status may follow every other status', async () => {
    const { id } = await newIdentity()
    for (const from of STATUSES) {
      for (const to of STATUSES) {
        expect(await set(id, { status: from })).toMatchObject({ status: from, summary_status: from })
        expect(await set(id, { status: to })).toMatchObject({ status: to, summary_status: to })
      }
    }
  })

  test('a flag disables, whatever the status; fields that are not given stay', async () => {
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

  test('a new status changes no other field except updated_at', async () => {
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

  describe('the results of checks', () => {
    const CHECKS = [
      'id_verification_status',
      'sanctions_verification_status',
      'document_verification_status',
      'additional_screening_status',
    ]
    const all = (status: string) => Object.fromEntries(CHECKS.map((check) => [check, status]))
    const institution = async () => {
      const body = { ref_id: randomUUID(), institution_details: { name: 'Acme' } }
      return (await customer.call<Identity>('POST', IDENTITIES, body)).body
    }
    const read = async (id: string) => (await customer.call<Identity>('GET', `${IDENTITIES}/${id}`)).body

    /** Sets results, and returns the status that follows. The answer is an empty object. */
    async function after(id: string, ...bodies: object[]): Promise<string> {
      for (const body of bodies) {
        const answer = await customer.call('PUT', statusOf(id), body)
        expect(answer).toMatchObject({ status: 200 })
        expect(answer.body).toEqual({})
      }
      const { status, summary_status } = await read(id)
      expect(summary_status).toBe(status)
      return status
    }

    test('decide the status when all results are the same', async () => {
      const { id } = await newIdentity()
      for (const status of [...STATUSES, ...STATUSES]) expect(await after(id, all(status))).toBe(status)
    })

    const BAD = ['DENIED', 'ERROR', 'DISABLED', 'PENDING']
    test.each(CHECKS)('include one that is not APPROVED: %s decides the status', async (check) => {
      const { id } = await newIdentity()
      for (const status of BAD) expect(await after(id, { ...all('APPROVED'), [check]: status })).toBe(status)
    })

    test('include several that are not APPROVED: the worst result decides the status', async () => {
      const { id } = await newIdentity()
      for (const [n, worst] of BAD.entries())
        for (const other of BAD.slice(n))
          expect(
            await after(id, { [CHECKS[2]!]: worst, [CHECKS[0]!]: other, [CHECKS[1]!]: 'APPROVED' }),
          ).toBe(worst)
    })

    test('approve a person with its identity and sanctions, an institution with sanctions', async () => {
      const [id, sanctions, documents] = CHECKS.map((check) => ({ [check]: 'APPROVED' }))
      const person = await newIdentity()
      expect(await after(person.id, id!)).toBe('PENDING')
      expect(await after(person.id, documents!)).toBe('PENDING')
      expect(await after(person.id, sanctions!)).toBe('APPROVED')
      expect(await after((await institution()).id, sanctions!)).toBe('APPROVED')
      expect(await after((await institution()).id, id!, documents!)).toBe('PENDING')
    })

    test('are kept: the approval of other checks does not undo a denial', async () => {
      const { id } = await newIdentity()
      const { sanctions_verification_status: _, ...others } = all('APPROVED')
      expect(await after(id, { sanctions_verification_status: 'DENIED' }, others)).toBe('DENIED')
      expect(await after(id, { sanctions_verification_status: 'APPROVED' })).toBe('APPROVED')
    })

    test('are discarded by an explicit status, and by changed details', async () => {
      const { id } = await newIdentity()
      await after(id, all('APPROVED'))
      await set(id, { status: 'DENIED' })
      expect(await after(id, { document_verification_status: 'APPROVED' })).toBe('PENDING')
      await after(id, all('APPROVED'))
      await customer.call('PUT', `${IDENTITIES}/${id}`, { person_details: { first_name: 'Eve' } })
      expect((await read(id)).status).toBe('PENDING')
      expect(await after(id, { id_verification_status: 'APPROVED' })).toBe('PENDING')
    })

    test('may be sent with flags as objects, and such flags may be sent alone', async () => {
      const { id } = await newIdentity()
      const put = (body: object) => customer.call('PUT', statusOf(id), body)
      const flags = { user_disabled: { disabled: true }, admin_disabled: { disabled: true } }
      expect((await put({ ...all('APPROVED'), ...flags })).body).toEqual({})
      expect(await read(id)).toMatchObject({
        status: 'APPROVED',
        user_disabled: true,
        admin_disabled: true,
        summary_status: 'DISABLED',
      })
      expect((await put({ user_disabled: { disabled: false } })).body).toEqual({})
      expect(await read(id)).toMatchObject({ user_disabled: false, admin_disabled: true })
      expect((await put({ admin_disabled: { disabled: false } })).body).toEqual({})
      expect(await read(id)).toMatchObject({ status: 'APPROVED', summary_status: 'APPROVED' })
    })

    test.each<[string, object, string]>([
      ['with a status', { status: 'APPROVED', id_verification_status: 'APPROVED' }, 'cannot be combined'],
      [
        'with a plain flag',
        { id_verification_status: 'APPROVED', user_disabled: false },
        'cannot be combined',
      ],
      [
        'with both kinds of flags',
        { user_disabled: { disabled: false }, admin_disabled: false },
        'cannot be comb',
      ],
    ])('are refused %s', async (_, body, rule) => {
      const { id } = await newIdentity()
      const before = await everyTable(service.db)
      expect(await customer.call('PUT', statusOf(id), body)).toMatchObject(refusedWith(400, rule))
      expect(await everyTable(service.db)).toEqual(before)
    })
  })
})
