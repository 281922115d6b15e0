/* Invariants: a change of members never gives an institution more rights. A request adds all of its members, or none. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { everyTable, newCustomer, type TestCustomer, sharedTestService } from '../../../test/support.ts'
import { STATUSES } from '../../money/records/holders.ts'
import type { Identity } from '../../money/records/identity.ts'

const IDENTITIES = '/v2/identity/identities'
const MEMBERS = '/v2/identity/institution-members'

const service = await sharedTestService()
const customer = await newCustomer(service)

async function made(by: TestCustomer, details: object): Promise<Identity> {
  const { body, status } = await by.call<Identity>('POST', IDENTITIES, { ref_id: randomUUID(), ...details })
  expect(status).toBe(200)
  return body
}
const personOf = (by: TestCustomer) =>
  made(by, { person_details: { first_name: 'Ada', last_name: 'Lovelace' } })
const institution = (institution_members: object[] = []) =>
  made(customer, { institution_details: { name: 'Acme' }, institution_members })
const add = (institution_id: string, ...members: object[]) =>
  customer.call<{ members: { id: string }[]; detail: string }>('POST', MEMBERS, { institution_id, members })
const remove = (id: string) => customer.call<{ detail: string }>('DELETE', `${MEMBERS}/${id}`)
const read = async (id: string) =>
  (await customer.call<Identity>('GET', `${IDENTITIES}/${id}?include_institution_members=true`)).body
/** Ids of persons of the customer. */
const ids = await Promise.all(Array.from({ length: 4 }, async () => (await personOf(customer)).id))
const memberOf = (identity_id: string | undefined) => ({ identity_id, roles: ['BENEFICIAL_OWNER'] })

describe('Remove Institution Member', () => {
  test('many concurrent removals of one member all succeed and remove it once', async () => {
    const { institution_members } = await institution([memberOf(ids[0])])
    const { id } = institution_members![0]!
    const answers = await Promise.all(Array.from({ length: 6 }, () => remove(id)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    const { rows } = await service.db.query('select removed_at from institution_members where id = $1', [id])
    expect(rows).toEqual([{ removed_at: expect.any(String) as string }])
  })
})

describe('Add Institution Members', () => {
  test('members are added and removed', async () => {
    const { id, institution_members, updated_at } = await institution([memberOf(ids[0])])
    const members = [
      { ...memberOf(ids[1]), ownership: '25', position: 'Director', name: 'Ada' },
      { ...memberOf(ids[2]), roles: ['GRANTOR', 'TRUSTEE'] },
    ]
    const added = await add(id, ...members)
    expect(added).toMatchObject({ status: 200, body: { institution_id: id, members } })
    const all = [...institution_members!, ...added.body.members]
    const grown = await read(id)
    expect(grown).toMatchObject({ institution_members: all, status: 'PENDING' })
    expect(grown.updated_at > updated_at).toBe(true)

    expect(await remove(all[1]!.id.toUpperCase())).toMatchObject({ status: 200, body: {} })
    const shrunk = await read(id)
    expect(shrunk.institution_members).toEqual([all[0], all[2]])
    expect(shrunk.updated_at > grown.updated_at).toBe(true)
    const before = await everyTable(service.db)
    expect(await remove(all[1]!.id)).toMatchObject({ status: 200, body: {} })
    expect(await everyTable(service.db)).toEqual(before)
    expect((await add(id, memberOf(ids[1]))).status).toBe(200)
  })

  test.each(STATUSES)(
    'a change of members ends the approval of an institution, and keeps other statuses: %s',
    async (status) => {
      const { id, institution_members } = await institution([memberOf(ids[0])])
      const set = () => customer.call('PUT', `${IDENTITIES}/${id}/sandbox-status`, { status })
      const expected = status === 'APPROVED' ? 'PENDING' : status
      await set()
      await add(id, memberOf(ids[1]))
      expect(await read(id)).toMatchObject({ status: expected })
      await set()
      await remove(institution_members![0]!.id)
      expect(await read(id)).toMatchObject({ status: expected })
    },
  )

  test('one of many concurrent requests for one member is accepted, and the others answer that member', async () => {
    const { id } = await institution()
    const answers = await Promise.all(Array.from({ length: 6 }, () => add(id, memberOf(ids[0]))))
    const accepted = answers.filter(({ status }) => status === 200)
    expect(accepted).toHaveLength(1)
    const existing = accepted[0]!.body.members[0]
    for (const answer of answers.filter((one) => one !== accepted[0]))
      expect(answer).toMatchObject({ status: 409, body: { meta: { existing } } })
  })

  test('members are limited to 100', async () => {
    const many = await Promise.all(Array.from({ length: 99 }, async () => (await personOf(customer)).id))
    const { id } = await institution(many.map(memberOf))
    const before = await everyTable(service.db)
    expect(await add(id, memberOf(ids[0]), memberOf(ids[1]))).toMatchObject({
      status: 400,
      body: { detail: 'members: there may be 100 in all, and 99 are there' },
    })
    expect(await everyTable(service.db)).toEqual(before)
    expect((await add(id, memberOf(ids[0]))).status).toBe(200)
  })
})
