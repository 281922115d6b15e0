/*
 * Invariants of the commands for identities, in live mode, where only these commands change the status:
 * 1. each command sets the status that it names, and nothing else;
 * 2. the API answers this status, and it decides whether the identity may withdraw;
 * 3. a repeated command changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { everyTable, newCustomer, outputOf, ownTestService } from '../../test/support.ts'
import { Holders } from '../money/records/holders.ts'

const service = await ownTestService({ BURSAR_MODE: 'live' })
const customer = await newCustomer(service)

/** Runs a command. Returns its JSON output. */
const bursar = async <T>(...args: string[]): Promise<T> =>
  JSON.parse(
    await outputOf(['identity', ...args, '--json'], { DATABASE_URL: service.url, BURSAR_MODE: 'live' }),
  ) as T

async function newIdentity(of = customer): Promise<string> {
  const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
  const made = await of.call('POST', '/v2/identity/identities', { ref_id: randomUUID(), person_details })
  expect(made.body).toMatchObject({ status: 'PENDING' })
  return String(made.body.id)
}

async function mayWithdraw(identity_id: string): Promise<boolean> {
  const { customer_id, profile_id } = customer
  const holder = { profile_id, identity_id }
  const holders = await Holders.read(service.db, customer_id, { profileIds: [profile_id], holders: [holder] })
  try {
    holders.requireMayWithdraw(holder)
    return true
  } catch {
    return false
  }
}

test('each command sets its status, which decides whether the identity may withdraw', async () => {
  const id = await newIdentity()
  expect(await mayWithdraw(id)).toBe(false)
  for (const [command, state, may] of [
    ['approve', { status: 'APPROVED', summary_status: 'APPROVED' }, true],
    ['disable', { status: 'APPROVED', admin_disabled: true, summary_status: 'DISABLED' }, false],
    ['enable', { status: 'APPROVED', admin_disabled: false, summary_status: 'APPROVED' }, true],
    ['deny', { status: 'DENIED', summary_status: 'DENIED' }, false],
    ['approve', { status: 'APPROVED', summary_status: 'APPROVED' }, true],
    ['reopen', { status: 'PENDING', summary_status: 'PENDING' }, false],
  ] as const) {
    expect(await bursar(command, id)).toMatchObject({ identity_id: id, user_disabled: false, ...state })
    expect((await customer.call('GET', `/v2/identity/identities/${id}`)).body).toMatchObject(state)
    expect(await mayWithdraw(id), command).toBe(may)
    const before = await everyTable(service.db)
    expect(await bursar(command, id.toUpperCase())).toMatchObject(state)
    expect(await everyTable(service.db)).toEqual(before)
  }
})

test('the list has the identities of all customers, of one customer or of one status', async () => {
  const other = await newCustomer(service)
  const [mine, theirs] = [await newIdentity(), await newIdentity(other)]
  await bursar('approve', theirs)
  const listed = async (...args: string[]) =>
    (await bursar<{ identities: { id: string }[] }>('list', ...args)).identities.map(({ id }) => id)
  expect(await listed()).toEqual(expect.arrayContaining([mine, theirs]))
  expect(await listed('--customer', other.customer_id)).toEqual([theirs])
  expect(await listed('--status', 'APPROVED')).toEqual([theirs])
  expect(await listed('--after', mine)).toEqual([theirs])
  expect(await listed('--status', 'DISABLED')).toEqual([])
})

test.each([
  ['an unknown identity', ['approve', randomUUID()], /^there is no identity /],
  ['no id', ['approve', 'ada'], /must be a UUID/],
  ['an unknown customer', ['list', '--customer', randomUUID()], /^there is no customer /],
  ['an unknown status', ['list', '--status', 'FROZEN'], /FROZEN/],
])('%s is refused, and nothing changes', async (_, args, message) => {
  const before = await everyTable(service.db)
  await expect(bursar(...args)).rejects.toThrow(message)
  expect(await everyTable(service.db)).toEqual(before)
})

test('approve --seen refuses an identity whose details changed since', async () => {
  const id = await newIdentity()
  const path = `/v2/identity/identities/${id}`
  const seen = async () => String((await customer.call('GET', path)).body.updated_at)
  const looked = await seen()
  const other = { person_details: { first_name: 'Mallory' } }
  expect((await customer.call('PUT', path, other)).status).toBe(200)
  const before = await everyTable(service.db)
  await expect(bursar('approve', id, '--seen', looked)).rejects.toThrow(
    `identity ${id} was updated at ${await seen()}, after ${looked}: look at it again`,
  )
  await expect(bursar('approve', id, '--seen', 'today')).rejects.toThrow('must be an RFC 3339 date-time.')
  expect(await everyTable(service.db)).toEqual(before)
  const again = await seen()
  expect(await bursar('approve', id, '--seen', again)).toMatchObject({ status: 'APPROVED' })
  expect(await bursar('approve', id, '--seen', again), 'a repeat').toMatchObject({ status: 'APPROVED' })
})
