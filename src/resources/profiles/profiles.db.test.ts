import { describe, expect, test } from 'vitest'
import { credit, everyTable, newCustomer, sharedTestService } from '../../../test/support.ts'
import type { Profile } from '../../money/records/profile.ts'

const PROFILES = '/v2/profiles'

const service = await sharedTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)

async function newProfile(changes: object = {}): Promise<Profile> {
  const body = { nickname: crypto.randomUUID(), ...changes }
  const answer = await customer.call<Profile>('POST', PROFILES, body)
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}
const isNotFound = (id: string) => ({ status: 404, body: { detail: `profile ${id} not found` } })

describe('Create Profile', () => {
  test('answers a NORMAL profile, and a nickname that is taken with its profile', async () => {
    const asked = { nickname: 'Operations', description: 'Payouts' }
    const made = await newProfile(asked)
    expect(made).toEqual({ id: made.id, type: 'NORMAL', ...asked })
    const before = await everyTable(service.db)
    expect(await customer.call('POST', PROFILES, { nickname: 'Operations' })).toMatchObject({
      status: 409,
      body: { meta: { existing: made } },
    })
    expect(await everyTable(service.db)).toEqual(before)
    // Another customer may use the same nickname.
    expect(await other.call('POST', PROFILES, asked)).toMatchObject({ status: 200 })
  })
})

describe('Get Profile', () => {
  test("answers the profile; another customer's is a 404", async () => {
    const made = await newProfile()
    const path = `${PROFILES}/${made.id}`
    expect((await customer.call('GET', path)).body).toEqual(made)
    expect(await other.call('GET', path)).toMatchObject(isNotFound(made.id))
  })

  test('include_deactivated=false hides one that is deactivated', async () => {
    const { id } = await newProfile()
    const path = `${PROFILES}/${id}`
    expect((await customer.call('GET', `${path}?include_deactivated=false`)).status).toBe(200)
    await customer.call('PUT', `${path}/deactivate`)
    expect((await customer.call('GET', path)).status).toBe(200)
    expect(await customer.call('GET', `${path}?include_deactivated=false`)).toMatchObject(isNotFound(id))
  })
})

describe('List Profiles', () => {
  test("newest first, by id and nickname, without another customer's", async () => {
    const [first, second] = [await newProfile(), await newProfile()]
    const listed = async (query: string, by = customer) =>
      (await by.call<{ items: Profile[] }>('GET', `${PROFILES}?${query}`)).body.items
    expect((await listed('')).slice(0, 2)).toEqual([second, first])
    expect(await listed(`ids=${first.id},${second.id}&order=ASC`)).toEqual([first, second])
    expect(await listed(`nickname=${first.nickname}`)).toEqual([first])
    expect(await listed(`ids=${first.id}`, other)).toEqual([])
  })
})

describe('Update Profile', () => {
  test('replaces the given fields, also of the default profile', async () => {
    const { id } = await newProfile()
    const nickname = crypto.randomUUID()
    const named = await customer.call('PUT', `/v2/profiles/${id}`, { nickname })
    expect(named).toMatchObject({ status: 200, body: { id, nickname, type: 'NORMAL' } })
    const described = await customer.call('PUT', `/v2/profiles/${id}`, { nickname, description: 'New' })
    expect(described.body).toEqual({ id, nickname, type: 'NORMAL', description: 'New' })
    expect((await customer.call('GET', `/v2/profiles/${id}`)).body).toEqual(described.body)
    expect(
      await customer.call('PUT', `/v2/profiles/${customer.profile_id}`, { description: 'Main' }),
    ).toMatchObject({ status: 200, body: { type: 'DEFAULT', description: 'Main' } })
  })

  test('to the nickname of another profile is a 409 with that profile', async () => {
    const [existing, second] = [await newProfile(), await newProfile()]
    const before = await everyTable(service.db)
    const answer = await customer.call('PUT', `/v2/profiles/${second.id}`, {
      nickname: existing.nickname,
      description: 'lost',
    })
    expect(answer).toMatchObject({ status: 409, body: { meta: { existing } } })
    expect(await everyTable(service.db)).toEqual(before)
  })
})

describe('Get Profile Balance', () => {
  test('answers 0 for an asset that the profile never held; an unknown asset is a 404', async () => {
    const { id: profile_id } = await newProfile()
    await credit(service.ledger, { ...customer, profile_id }, 'USD', '10')
    const path = `${PROFILES}/${profile_id}/balances`
    expect((await customer.call('GET', `${path}/USD`)).body).toEqual({
      asset: 'USD',
      available: '10',
      trading: '0',
    })
    expect((await customer.call('GET', `${path}/BTC`)).body).toEqual({
      asset: 'BTC',
      available: '0',
      trading: '0',
    })
    expect((await customer.call('GET', `${path}/NONE`)).status).toBe(404)
    expect(await other.call('GET', `${path}/USD`)).toMatchObject(isNotFound(profile_id))
  })
})
