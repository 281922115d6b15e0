/*
 * A disabled client or customer moves no money after one second, in every process, whatever tokens it holds.
 * A process that cannot read the disabled clients refuses withdrawals.
 */
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import {
  ROW_MACS,
  caller,
  credit,
  fetchToken,
  newCustomer,
  TEST_ORIGIN,
  withdrawalOf,
  ownTestService,
} from '../../../test/support.ts'
import { openDatabase, transaction, type Database } from '../../db/database.ts'
import { freeze, unfreeze } from '../../money/records/freezes.ts'
import { createApiClient, disableApiClient, enableApiClient } from './api-clients.ts'
import { setParts } from '../../db/parts.ts'
import type { Caller } from '../../http/operation.ts'
import { ClientStanding, STALE_MS_MAX } from './client-standing.ts'
import { atEnd } from '../../../test/at-end.ts'

const service = await ownTestService()

/** The service has one second to apply the change; a busy machine needs a few more. */
const SOON = { timeout: 5_000, interval: 50 }

test('only the tokens of a disabled client are refused, and they are accepted again when the client is enabled', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100000')
  const other = await createApiClient(service.db, ROW_MACS, customer.customer_id, [
    'transfer:write_crypto_withdrawal',
  ])
  const byOther = caller(service.app, await fetchToken(service.app, other))
  const withdraw = async (call = customer.call) =>
    (await call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer))).status
  expect(await withdraw()).toBe(200)

  await disableApiClient(service.db, customer.client_id, TEST_ORIGIN)
  await expect.poll(() => withdraw(), SOON).toBe(401)
  const { body, headers } = await customer.call('GET', '/v2/profiles')
  expect(body.detail).toBe('the API client of the access token is disabled')
  expect(headers['www-authenticate']).toContain('error="invalid_token"')
  expect(await withdraw(byOther)).toBe(200)
  await expect(fetchToken(service.app, customer)).rejects.toThrow('invalid_client')

  await transaction(service.db, (tx) => enableApiClient(tx, ROW_MACS, customer.client_id, TEST_ORIGIN))
  await expect.poll(() => withdraw(), SOON).toBe(200)
})

test('a movement that waits while its client is disabled is refused, and delays no other', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100000')
  const { body: to } = await customer.call('POST', '/v2/profiles', { nickname: 'to' })
  const { body: account } = await customer.call('POST', '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { institution_details: { name: 'Acme' } },
    fiat_network_instructions: { wire: { account_number: '1' } },
  })
  const { profile_id } = customer
  const requests = [
    ['/v2/transfer/crypto-withdrawals', withdrawalOf(customer)],
    [
      '/v2/transfer/fiat-withdrawals',
      { profile_id, asset: 'USD', amount: '10', fiat_account_id: account.id },
    ],
    [
      '/v2/transfer/internal',
      { from_profile_id: profile_id, to_profile_id: to.id, asset: 'USD', amount: '10' },
    ],
    [
      '/v2/orchestration/orchestrations',
      {
        ...{ ref_id: 'o', source_asset: 'USD', destination_asset: 'USDG', source_amount: '10' },
        ...{ source: { profile: { profile_id } }, destination: { profile: { profile_id: to.id } } },
      },
    ],
  ] as const
  const other = await createApiClient(service.db, ROW_MACS, customer.customer_id, [
    'transfer:write_crypto_withdrawal',
  ])
  const byOther = caller(service.app, await fetchToken(service.app, other))
  // All movements wait for the locked balance.
  const [waiting, others] = await transaction(service.owner, async (tx) => {
    await tx.query('select 1 from balances where customer_id = $1 and profile_id = $2 for update', [
      customer.customer_id,
      profile_id,
    ])
    const all = requests.map(([url, body]) => customer.call('POST', url, body))
    const others = byOther('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer))
    await disableApiClient(service.db, customer.client_id, TEST_ORIGIN)
    await expect.poll(async () => (await customer.call('GET', '/v2/profiles')).status, SOON).toBe(401)
    return [all, [others]]
  })
  for (const answer of await Promise.all(waiting))
    expect(answer).toMatchObject({
      status: 401,
      body: { detail: 'the API client of the access token is disabled' },
    })
  expect((await others[0]!).status).toBe(200)
  const { rows } = await service.db.query(
    'select type, amount from transfers where customer_id = $1 and direction = $2',
    [customer.customer_id, 'DEBIT'],
  )
  expect(rows).toEqual([{ type: 'CRYPTO_WITHDRAWAL', amount: '10' }])
})

test("a disabled customer's tokens are refused, and its clients get no new tokens", async () => {
  const customer = await newCustomer(service)
  const target = { kind: 'CUSTOMER', customer_id: customer.customer_id } as const
  const read = async () => (await customer.call('GET', '/v2/profiles')).body.detail
  await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'a leak')
  expect(await read()).toBeUndefined()
  await freeze(service.db, TEST_ORIGIN, target, 'DISABLED', 'gone')
  await expect.poll(read, SOON).toBe('the customer of the access token is disabled')
  await expect(fetchToken(service.app, customer)).rejects.toThrow('invalid_client')
  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target, 'DISABLED')
  await expect.poll(read, SOON).toBeUndefined()
  await fetchToken(service.app, customer)
})

test('a token of an unknown client is refused', async () => {
  const customer = await newCustomer(service)
  await service.owner.query('delete from api_clients where id = $1', [customer.client_id])
  const { status, body } = await customer.call('GET', '/v2/profiles')
  expect([status, body.detail]).toEqual([401, 'the access token names an API client that does not exist'])
})

test('a process that cannot read the disabled clients uses its last list for a while, then refuses withdrawals', async () => {
  const pool = openDatabase(service.url, { max: 1, onError: () => undefined })
  atEnd(() => pool.end())
  let answers = true
  const database = {
    query: (text: string) => (answers ? pool.query(text) : Promise.reject(new Error('it is away'))),
  } as unknown as Database
  const clock = vi.spyOn(performance, 'now')
  atEnd(async () => clock.mockRestore())
  const before = performance.now()
  const standing = await ClientStanding.start(database, ROW_MACS, pino({ level: 'silent' }))
  atEnd(() => standing.stop())
  expect(standing.requireKnown(bySomebody)).toBeUndefined()
  answers = false
  const now = performance.now()
  clock.mockReturnValue(before + STALE_MS_MAX - 100)
  expect(standing.requireKnown(bySomebody)).toBeUndefined()
  clock.mockReturnValue(now + STALE_MS_MAX + 100)
  const refused = 'could not be read for 5 seconds; nothing was moved'
  await expect(standing.requireKnown(bySomebody)).rejects.toThrow(refused)
  await expect(standing.requireKnown(bySomebody)).rejects.toThrow(refused)
  answers = true
  await expect.poll(() => standing.requireKnown(bySomebody), SOON).toBeUndefined()
})

test('a process that stood still reads the disabled clients before it goes on', async () => {
  const standing = await ClientStanding.start(service.db, ROW_MACS, pino({ level: 'silent' }))
  atEnd(() => standing.stop())
  const customer = await newCustomer(service)
  await setDisabledAt(customer.client_id)
  const clock = vi.spyOn(performance, 'now')
  atEnd(async () => clock.mockRestore())
  clock.mockReturnValue(performance.now() + STALE_MS_MAX + 100)
  const many = Array.from({ length: 100 }, () => standing.requireKnown(bySomebody))
  const disabled = callerOf(customer.client_id, customer.customer_id)
  await expect(standing.requireKnown(disabled)).rejects.toThrow('is disabled')
  for (const one of many) expect(await one).toBeUndefined()
  expect(standing.requireKnown(bySomebody)).toBeUndefined()
})

test('a part of the database that cannot be read stops the withdrawals of its own customers only', async () => {
  const pool = openDatabase(service.url, { max: 2, onError: () => undefined })
  atEnd(() => pool.end())
  let answers = true
  const gone = {
    query: (text: string) => (answers ? pool.query(text) : new Promise(() => undefined)),
  } as unknown as Database
  const parts = [
    { name: 'a', db: pool },
    { name: 'b', db: gone },
  ] as const
  setParts(pool, {
    of: (customerId) => parts[customerId === SOMEBODY ? 0 : 1],
    refresh: async () => undefined,
    list: () => parts,
  })
  const standing = await ClientStanding.start(pool, ROW_MACS, pino({ level: 'silent' }))
  expect(standing.requireKnown(bySomebody)).toBeUndefined()
  expect(standing.requireKnown(byOther)).toBeUndefined()
  answers = false
  // The hanging look at the one node delays no look at the other.
  const isRefused = () =>
    Promise.resolve(standing.requireKnown(byOther)).then(
      () => false,
      () => true,
    )
  await expect.poll(isRefused, { timeout: 15_000 }).toBe(true)
  const start = performance.now()
  await expect(standing.requireKnown(byOther)).rejects.toThrow('could not be read for 5 seconds')
  expect(performance.now() - start).toBeLessThan(STALE_MS_MAX)
  expect(standing.requireKnown(bySomebody)).toBeUndefined()
  const customer = await newCustomer(service)
  await setDisabledAt(customer.client_id)
  await expect
    .poll(() => attempt(() => standing.requireEnabled(callerOf(customer.client_id))), SOON)
    .toBe(false)
})

const SOMEBODY = '11111111-1111-4111-8111-111111111111'
const OTHER = '22222222-2222-4222-8222-222222222222'

const setDisabledAt = (id: string) =>
  service.db.query('update api_clients set disabled_at = (select clock_timestamp()) where id = $1', [id])

const callerOf = (clientId: string, customerId = SOMEBODY): Caller => ({
  clientId,
  customerId,
  scopes: [],
  actor: { type: 'API_CLIENT', id: clientId },
})
const bySomebody = callerOf(SOMEBODY)
const byOther = callerOf(OTHER, OTHER)

function attempt(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
