/*
 * Whoever has only the service's database role pays nothing from a balance that no Bursar wrote, and stops no balance but that one.
 */
import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import {
  fund,
  MASTER_KEY,
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { masterKeysOf } from '../../keys/master-keys.ts'
import { verify } from '../verify/verify.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { sealRowsWith } from '../../audit/sealed-rows.ts'
import { sealBalances } from './sealed-balances.ts'

const NEWER = randomBytes(32).toString('hex')

const RULE = 'every balance is as Bursar wrote it'

let thief: TestCustomer
const service = await ownTestService()
beforeEach(async () => {
  thief = await newCustomer(service)
  await fund(thief, '100')
})

const withdraw = (changes: object = {}) =>
  thief.call<{ id: string; detail: string }>(
    'POST',
    '/v2/transfer/crypto-withdrawals',
    withdrawalOf(thief, { amount: '50', ...changes }),
  )

/** Runs SQL as the service's role, with the thief's customer and profile. */
const steal = (text: string) =>
  service.db.query(
    text.replaceAll('$customer', `'${thief.customer_id}'`).replaceAll('$profile', `'${thief.profile_id}'`),
  )

const rulesBroken = async () =>
  (await verify(service.db, { rowMacs: ROW_MACS })).disagreements
    .filter(({ customer_id }) => customer_id === thief.customer_id)
    .map(({ rule }) => rule)

const OF_THIEF = `customer_id = $customer and profile_id = $profile and asset = 'USD'`

test.each([
  ['raised', `update balances set available = 1000000 where ${OF_THIEF}`],
  ['raised, without its MAC', `update balances set available = 1000000, mac = null where ${OF_THIEF}`],
  ['of another version', `update balances set version = version + 1 where ${OF_THIEF}`],
  ['of another time', `update balances set updated_at = '2020-01-01T00:00:00Z' where ${OF_THIEF}`],
  [
    'raised with entries that say so',
    `with posted as (
       insert into entries
         (customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version, created_at)
       select customer_id, gen_random_uuid(), 'CREATED', 1, 'profile', profile_id, asset, 1000000, available + 1000000,
              version + 1, clock_timestamp()
       from balances where ${OF_THIEF}
       returning version, balance_after, created_at)
     update balances b set available = balance_after, version = p.version, updated_at = p.created_at from posted p where ${OF_THIEF.replaceAll('and ', 'and b.').replace('customer_id', 'b.customer_id')}`,
  ],
])('a balance that was %s pays nothing', async (_, text) => {
  await steal(text)
  const refused = await withdraw()
  expect(refused).toMatchObject({
    status: 503,
    body: {
      detail: expect.stringMatching(/^the USD balance of profile .* was changed in the database/) as string,
    },
  })
  const other = await thief.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Other' })
  const internal = {
    asset: 'USD',
    amount: '1',
    from_profile_id: thief.profile_id,
    to_profile_id: other.body.id,
  }
  expect((await thief.call('POST', '/v2/transfer/internal', internal)).status).toBe(503)
  expect(await rulesBroken()).toContain(RULE)
  // Its neighbours in the same batch are paid.
  await fund(thief, '100', other.body.id)
  const [own, both] = await Promise.all([withdraw(), withdraw({ profile_id: other.body.id })])
  expect([own.status, both.status]).toEqual([503, 200])
})

test('an older balance that was put back, and the balance of another, pay nothing', async () => {
  const before = await service.db.query<Record<string, string>>(
    'select available, version, updated_at, mac from balances where customer_id = $1',
    [thief.customer_id],
  )
  const { available, version, updated_at, mac } = before.rows[0]!
  expect((await withdraw({ amount: '90' })).status).toBe(200)
  const putBack = (changes: Record<string, string> = {}) =>
    service.db.query(
      'update balances set available = $2, version = $3, updated_at = $4, mac = $5 where customer_id = $1',
      [thief.customer_id, ...Object.values({ available, version, updated_at, mac, ...changes })],
    )
  const after = await service.db.query<Record<string, string>>(
    'select available, version, updated_at, mac from balances where customer_id = $1',
    [thief.customer_id],
  )
  await putBack()
  expect((await withdraw()).status).toBe(503)
  expect(await rulesBroken()).toContain(RULE)
  const rich = await newCustomer(service)
  await fund(rich, '1000000')
  const { rows } = await service.db.query<Record<string, string>>(
    'select available, version, updated_at, mac from balances where customer_id = $1',
    [rich.customer_id],
  )
  await putBack(rows[0])
  expect((await withdraw()).status).toBe(503)
  // Another asset has no balance yet: a row that is invented is no balance either.
  await steal(
    `insert into balances select customer_id, profile_id, 'USDP', 1000000, version, updated_at, mac from balances where ${OF_THIEF}`,
  )
  expect((await withdraw({ balance_asset: 'USDP' })).status).toBe(503)
  // As it was, it pays again.
  await putBack(after.rows[0])
  expect((await withdraw({ amount: '8' })).status).toBe(200)
})

test('a refund waits while the balance that it credits was changed', async () => {
  const { body } = await withdraw()
  await steal(`update balances set available = 1000000 where ${OF_THIEF}`)
  const cancel = () => thief.call('POST', `/v2/transfer/transfers/${body.id}/cancel`)
  expect((await cancel()).status).toBe(503)
  await steal(`update balances set available = 49 where ${OF_THIEF}`)
  expect((await cancel()).status).toBe(200)
})

test('balances without a MAC get one, and those of an older master key a new one', async () => {
  await service.owner.query('update balances set mac = null')
  expect((await withdraw()).status).toBe(503)
  expect(await sealBalances(service.db, 'WITHOUT', ROW_MACS)).toBeGreaterThan(0)
  expect(await sealBalances(service.db, 'WITHOUT', ROW_MACS)).toBe(0)
  expect(await sealBalances(service.db, 'OF_OLDER_KEYS', ROW_MACS)).toBe(0)
  expect((await withdraw({ amount: '10' })).status).toBe(200)
  const newer = masterKeysOf([NEWER, MASTER_KEY], 'BURSAR_MASTER_KEY')
  await steal(`update balances set available = available + 1 where ${OF_THIEF}`)
  const renewed = await sealBalances(service.db, 'OF_OLDER_KEYS', new RowMacs(newer))
  const { rows } = await service.db.query<{ customer_id: string }>(
    'select customer_id from balances where mac not like $1',
    [`${newer.current.id}.%`],
  )
  expect(rows).toEqual([{ customer_id: thief.customer_id }])
  expect(renewed).toBeGreaterThan(0)
  await service.owner.query('delete from balances where customer_id = $1', [thief.customer_id])
  sealRowsWith(() => Promise.resolve(masterKeysOf([NEWER], 'BURSAR_MASTER_KEY')))
  const other = await newCustomer(service)
  await fund(other, '10')
  const asked = withdrawalOf(other, { amount: '1' })
  expect((await other.call('POST', '/v2/transfer/crypto-withdrawals', asked)).status).toBe(200)
  sealRowsWith(() => Promise.resolve(MASTER_KEYS))
  expect((await other.call('POST', '/v2/transfer/crypto-withdrawals', asked)).status).toBe(503)
})
