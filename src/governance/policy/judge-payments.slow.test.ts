/*
 * Invariants of policies:
 * 1. the first rule that decides wins, and a payment that none decides is made;
 * 2. no period of a window holds more than its limit, whatever the requests, their number and their order;
 * 3. a refused payment leaves no record, moves no money and counts in no window;
 * 4. what is not certain never helps the caller: prices, identities, the maker of an orchestration, the policy itself;
 * 5. deposits are credited under every policy.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { CLUSTER } from '../../../test/cluster.ts'
import { setPolicy } from '../../../test/policies.ts'
import {
  approve,
  credit,
  everyTable,
  fund,
  MASTER_KEYS,
  movedBy,
  newCustomer,
  setPrice,
  TEST_ORIGIN,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
  callerWith,
} from '../../../test/support.ts'
import type { Database } from '../../db/database.ts'
import { runOrchestrations } from '../../resources/orchestrations/run-orchestrations.ts'
import { type NewPolicyDocument } from './policy-document.ts'
import { Policies } from './policy.ts'
import { deleteEndedWindows } from './policy-windows.ts'
import { checkWithdrawal, movementOf } from '../../resources/transfers/create-crypto-withdrawal.ts'
import { verify } from '../../money/verify/verify.ts'
import { Ledger } from '../../money/movements/queue.ts'
import { governBy } from './judge-payments.ts'
import { refusedWith } from '../../../test/matchers.ts'

const service = await ownTestService()
afterAll(async () => expect((await verify(service.db)).disagreements).toEqual([]))

type Rules = NewPolicyDocument['rules']
const POLICY_REFUSED = { status: 403, body: { type: expect.stringMatching(/policy-refused$/) as string } }

/** A customer with money and these rules. */
async function governed(...rules: Rules): Promise<TestCustomer> {
  const customer = await newCustomer(service)
  await fund(customer, '100000')
  await setPolicy(service.db, customer.customer_id, { rules })
  return customer
}

/** Submits a withdrawal to this ledger, without a request. */
const pay = (ledger: Ledger, { customer_id, profile_id }: TestCustomer, changes = {}) => {
  const context = { networks: service.networks, settings: service.settings }
  const terms = checkWithdrawal(withdrawalOf({ profile_id }, changes) as never, context)
  const movement = movementOf(customer_id, terms, {
    networks: service.networks,
    prices: new Map(),
    origin: TEST_ORIGIN,
    requireCaller: () => undefined,
  })
  return ledger.submit(customer_id, movement)
}

const withdraw = (by: TestCustomer, changes: Record<string, unknown> = {}) =>
  by.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(by, changes))

/** Makes payments of these amounts in USDP one after the other. Returns which were made. */
async function made(by: TestCustomer, amounts: string[], changes: Record<string, unknown> = {}) {
  const answers: boolean[] = []
  for (const total of amounts) {
    const { status, body } = await withdraw(by, { amount: undefined, total, ...changes })
    if (status !== 200) expect({ status, body }).toMatchObject(POLICY_REFUSED)
    answers.push(status === 200)
  }
  return answers
}

const blockedBy = (rule_id: string) => ({
  status: 403,
  body: {
    detail: expect.stringContaining(`rule ${rule_id} of the policy`) as string,
    meta: { rule_id, policy_version: 1 },
  },
})

const newProfile = async ({ call }: TestCustomer, nickname: string) =>
  (await call<{ id: string }>('POST', '/v2/profiles', { nickname })).body.id

describe('rules', () => {
  test('the first that fits decides, and without one everything is allowed', async () => {
    const by = await governed(
      { id: 'first', match: { assets: ['USDP'], networks: ['SOLANA'] }, action: 'ALLOW' },
      { id: 'second', match: { assets: ['USDP'] }, action: 'BLOCK' },
    )
    expect(await withdraw(by)).toMatchObject(blockedBy('second'))
    const other = { asset: 'USDG', crypto_network: 'ETHEREUM' }
    expect(await withdraw(by, other)).toMatchObject({ status: 200 })
    const free = await governed()
    expect(await withdraw(free)).toMatchObject({ status: 200 })
  })

  test('match profiles, transfer types, networks and clients', async () => {
    const by = await newCustomer(service)
    await fund(by, '1000')
    const profile = await newProfile(by, 'other')
    await fund(by, '1000', profile)
    await setPolicy(service.db, by.customer_id, {
      rules: [
        { id: 'profile', match: { profile_ids: [profile] }, action: 'BLOCK' },
        { id: 'internal', match: { transfer_types: ['INTERNAL_TRANSFER_DEBIT'] }, action: 'BLOCK' },
        { id: 'wires', match: { networks: ['WIRE'] }, action: 'BLOCK' },
        { id: 'client', match: { client_ids: ['another', by.client_id] }, action: 'BLOCK' },
      ],
    })
    const fiat = await by.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
      fiat_account_owner: { institution_details: { name: 'A' } },
      fiat_network_instructions: { wire: { account_number: '1' } },
    })
    const wire = { profile_id: by.profile_id, asset: 'USD', amount: '1', fiat_account_id: fiat.body.id }
    const move = { asset: 'USD', amount: '1', from_profile_id: by.profile_id, to_profile_id: profile }
    expect(await withdraw(by, { profile_id: profile })).toMatchObject(blockedBy('profile'))
    expect(await by.call('POST', '/v2/transfer/internal', move)).toMatchObject(blockedBy('internal'))
    expect(await by.call('POST', '/v2/transfer/fiat-withdrawals', wire)).toMatchObject(blockedBy('wires'))
    expect(await withdraw(by)).toMatchObject(blockedBy('client'))
    expect(await withdraw({ ...by, call: await callerWith(service, by) })).toMatchObject({ status: 200 })
  })

  test('an identity cannot be left out, nor another one be named instead', async () => {
    const by = await newCustomer(service)
    const identity = async (ref_id: string) => {
      const person_details = { first_name: 'A', last_name: 'B', date_of_birth: '1980-01-01' }
      const { body } = await by.call<{ id: string }>('POST', '/v2/identity/identities', {
        ref_id,
        person_details,
      })
      await approve(by, body.id)
      return body.id
    }
    const [owner, other] = [await identity('owner'), await identity('other')]
    const { body: account } = await by.call<{ profile_id: string }>('POST', '/v2/identity/accounts', {
      account: { identity_id: owner },
      create_profile: true,
    })
    const of = { ...by, profile_id: account.profile_id }
    await fund(by, '1000', account.profile_id)
    await fund(by, '1000')
    const blocks = (id: string) =>
      setPolicy(service.db, by.customer_id, {
        rules: [{ id: 'b', match: { identity_ids: [id] }, action: 'BLOCK' }],
      })
    const allows = (id: string) =>
      setPolicy(service.db, by.customer_id, {
        rules: [
          { match: { identity_ids: [id] }, action: 'ALLOW' },
          { id: 'b', action: 'BLOCK' },
        ],
      })
    await blocks(owner)
    // The profile's account belongs to it.
    expect(await withdraw(of)).toMatchObject(POLICY_REFUSED)
    expect(await withdraw(of, { identity_id: other })).toMatchObject(POLICY_REFUSED)
    expect(await withdraw(by)).toMatchObject({ status: 200 })
    expect(await withdraw(by, { identity_id: owner })).toMatchObject(POLICY_REFUSED)
    await allows(other)
    expect(await withdraw(of, { identity_id: other })).toMatchObject(POLICY_REFUSED)
    expect(await withdraw(by)).toMatchObject(POLICY_REFUSED)
    expect(await withdraw(by, { identity_id: other })).toMatchObject({ status: 200 })
  })

  test('destinations: the address book, ids of its entries, of fiat accounts and of profiles, in any spelling', async () => {
    const by = await newCustomer(service)
    await fund(by, '1000')
    const address = '0x8617E340B3D01FA5F11F306F4090FD50E238070D'
    const entry = await by.call<{ address: { id: string } }>(
      'PUT',
      '/v2/transfer/crypto-destination-address',
      {
        crypto_network: 'ETHEREUM',
        address: address.toLowerCase(),
      },
    )
    const known = { destination_address: `0x${address.slice(2).toLowerCase()}` }
    const set = (rules: Rules) => setPolicy(service.db, by.customer_id, { rules })
    await set([{ match: { destination: 'ADDRESS_BOOK' }, action: 'ALLOW' }, { action: 'BLOCK' }])
    expect(await withdraw(by, known)).toMatchObject({ status: 200 })
    expect(
      await withdraw(by, {
        ...known,
        crypto_network: 'SOLANA',
        destination_address: '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA',
      }),
    ).toMatchObject(POLICY_REFUSED)
    expect(await withdraw(by)).toMatchObject(POLICY_REFUSED)
    await service.owner.query("update crypto_destination_addresses set status = 'PENDING' where id = $1", [
      entry.body.address.id,
    ])
    expect(await withdraw(by, known)).toMatchObject(POLICY_REFUSED)
    await set([{ match: { destination: [entry.body.address.id] }, action: 'ALLOW' }, { action: 'BLOCK' }])
    expect(await withdraw(by, known)).toMatchObject(POLICY_REFUSED)
    // An entry that is not approved still blocks its address.
    await set([{ match: { destination: [entry.body.address.id] }, action: 'BLOCK' }])
    expect(await withdraw(by, known)).toMatchObject(POLICY_REFUSED)
    expect(await withdraw(by)).toMatchObject({ status: 200 })
    await service.owner.query("update crypto_destination_addresses set status = 'APPROVED' where id = $1", [
      entry.body.address.id,
    ])
    const profile = await newProfile(by, 'to')
    await set([{ match: { destination: [profile] }, action: 'BLOCK' }])
    const move = { asset: 'USD', amount: '1', from_profile_id: by.profile_id }
    expect(await by.call('POST', '/v2/transfer/internal', { ...move, to_profile_id: profile })).toMatchObject(
      POLICY_REFUSED,
    )
    expect(
      await by.call('POST', '/v2/transfer/internal', { ...move, to_profile_id: await newProfile(by, 'x') }),
    ).toMatchObject({ status: 200 })
  })

  test('an internal transfer cannot wait for approval, and is refused', async () => {
    const by = await governed({ id: 'two', action: 'APPROVE', approvals: 2 })
    const move = {
      asset: 'USD',
      amount: '1',
      from_profile_id: by.profile_id,
      to_profile_id: await newProfile(by, 'to'),
    }
    expect(await by.call('POST', '/v2/transfer/internal', move)).toMatchObject(blockedBy('two'))
  })
})

describe('limits', () => {
  const limited = (limit: NonNullable<Rules[number]['limit']>, action: 'BLOCK' | 'ALLOW' = 'BLOCK'): Rules =>
    action === 'BLOCK'
      ? [{ id: 'l', limit, action }]
      : [
          { id: 'l', limit, action },
          { id: 'rest', action: 'BLOCK' },
        ]

  test.each(['BLOCK', 'ALLOW'] as const)(
    'of each payment (%s): the total counts, fee included',
    async (action) => {
      const by = await governed(...limited({ amount: '50', asset: 'USD', period_seconds: 0 }, action))
      expect(await made(by, ['50', '50.01', '50'])).toEqual([true, false, true])
      expect(await withdraw(by, { amount: '50' })).toMatchObject(POLICY_REFUSED)
    },
  )

  test('of a period, for all payments of the customer; a refused one does not count', async () => {
    const by = await governed(...limited({ amount: '50', asset: 'USD', period_seconds: 3600 }))
    expect(await made(by, ['30', '20.01', '15', '5', '2'])).toEqual([true, false, true, true, false])
    // Nor one without the funds.
    const poor = { ...by, profile_id: await newProfile(by, 'poor') }
    const [unfunded] = [await governed(...limited({ amount: '50', asset: 'USD', period_seconds: 3600 }))]
    expect(await withdraw({ ...unfunded, profile_id: await newProfile(unfunded, 'p') })).toMatchObject({
      status: 403,
      body: { title: 'Insufficient Funds' },
    })
    expect(await made(unfunded, ['50'])).toEqual([true])
    expect(await withdraw(poor)).toMatchObject(POLICY_REFUSED)
  })

  test('a payment that failed or was cancelled still counts', async () => {
    const by = await governed(...limited({ amount: '50', asset: 'USD', period_seconds: 3600 }))
    const { body } = await withdraw(by, { amount: undefined, total: '50' })
    await by.call('POST', `/v2/transfer/transfers/${body.id as string}/cancel`)
    expect(await made(by, ['5'])).toEqual([false])
  })

  test('the period ends', async () => {
    const by = await governed(...limited({ amount: '10', asset: 'USD', period_seconds: 2 }))
    expect(await made(by, ['10', '10'])).toEqual([true, false])
    await pause(2_200)
    expect(await made(by, ['10', '10'])).toEqual([true, false])
  })

  test('of a profile, of a destination in any spelling and on any EVM network, and of a bank account', async () => {
    const by = await newCustomer(service)
    await fund(by, '1000')
    const other = await newProfile(by, 'other')
    await fund(by, '1000', other)
    const set = (per: 'PROFILE' | 'DESTINATION') =>
      setPolicy(service.db, by.customer_id, {
        rules: limited({ amount: '10', asset: 'USD', period_seconds: 3600, ...{ per } }),
      })
    await set('PROFILE')
    expect(await made(by, ['10', '5'])).toEqual([true, false])
    expect(await made(by, ['10', '5'], { profile_id: other })).toEqual([true, false])
    await set('DESTINATION')
    const address = '0xde709f2102306220921060314715629080e2fb77'
    expect(await made(by, ['10'], { destination_address: address })).toEqual([true])
    const upper = `0x${address.slice(2).toUpperCase()}`
    expect(await made(by, ['5'], { destination_address: upper })).toEqual([false])
    const polygon = {
      asset: 'USDC',
      balance_asset: undefined,
      crypto_network: 'BASE',
      destination_address: address,
    }
    await credit(service.ledger, by, 'USDC', '100')
    expect(await made(by, ['5'], polygon)).toEqual([false])
    expect(await made(by, ['5'])).toEqual([true])
    const wire = async (account_number: string) => {
      const { body } = await by.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
        fiat_account_owner: { institution_details: { name: 'A' } },
        fiat_network_instructions: { wire: { account_number } },
      })
      const sent = { profile_id: by.profile_id, asset: 'USD', amount: '6', fiat_account_id: body.id }
      return (await by.call('POST', '/v2/transfer/fiat-withdrawals', sent)).status
    }
    expect([await wire('000123456'), await wire('00123-456'), await wire('000123457')]).toEqual([
      200, 403, 200,
    ])
  })

  test('of an identity; payments without one share a window', async () => {
    const by = await governed(
      ...limited({ amount: '10', asset: 'USD', period_seconds: 3600, per: 'IDENTITY' }),
    )
    const { body } = await by.call<{ id: string }>('POST', '/v2/identity/identities', {
      ref_id: 'i',
      person_details: { first_name: 'A', last_name: 'B', date_of_birth: '1980-01-01' },
    })
    await approve(by, body.id)
    const other = await newProfile(by, 'other')
    await fund(by, '100', other)
    expect(await made(by, ['10'], { profile_id: other })).toEqual([true])
    expect(await made(by, ['5'])).toEqual([false])
    expect(await made(by, ['10', '5'], { identity_id: body.id })).toEqual([true, false])
  })

  test('in an asset, for payments of that asset only', async () => {
    const by = await governed(...limited({ amount: '10', asset: 'USDP', period_seconds: 3600 }))
    expect(await made(by, ['10', '5'])).toEqual([true, false])
    expect(await made(by, ['50'], { asset: 'USDG' })).toEqual([true])
  })

  test('bulk requests and orchestrations count in the same window', async () => {
    const by = await governed(...limited({ amount: '50', asset: 'USD', period_seconds: 3600 }))
    const withdrawals = Array.from({ length: 30 }, (_, index) => ({
      ...withdrawalOf(by, { amount: undefined, total: '5' }),
      ref_id: `bulk-${index}`,
    }))
    const { body } = await by.call<{ items: { transfer?: object }[] }>(
      'POST',
      '/v2/transfer/crypto-withdrawals/bulk',
      { withdrawals },
    )
    expect(body.items.filter(({ transfer }) => transfer !== undefined)).toHaveLength(10)
    const orchestration = await by.call('POST', '/v2/orchestration/orchestrations', {
      ref_id: 'o',
      source_asset: 'USD',
      destination_asset: 'USDG',
      source_amount: '20',
      source: { profile: { profile_id: by.profile_id } },
      destination: { crypto: { network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' } },
    })
    expect(orchestration).toMatchObject(POLICY_REFUSED)
  })

  test('a payment without a price of the last hour is beyond every limit, and fills it', async () => {
    const limit = { amount: '1000000', asset: 'USD', period_seconds: 3600 }
    const by = await governed(...limited(limit))
    await credit(service.ledger, by, 'LTC', '100')
    // As in live mode: only real prices count.
    const price = (minutesAgo: number) => setPrice(service.db, 'LTCUSD', '100', { minutesAgo })
    const litecoin = {
      asset: 'LTC',
      balance_asset: undefined,
      crypto_network: 'LITECOIN',
      amount: undefined,
      total: '1',
      destination_address: 'LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1',
    }
    const sendLitecoin = () =>
      pay(new Ledger(service.db, { govern: governBy(new Policies(MASTER_KEYS)) }), by, litecoin)
    const refused = { slug: 'policy-refused' }
    const made = { transfer: { status: 'PENDING' } }
    await expect(sendLitecoin()).rejects.toMatchObject(refused)
    await price(70)
    await expect(sendLitecoin()).rejects.toMatchObject(refused)
    await price(3)
    expect(await sendLitecoin()).toMatchObject(made)
    await setPolicy(service.db, by.customer_id, {
      rules: [{ id: 'l', limit: { ...limit, amount: '199' }, action: 'BLOCK' }],
    })
    await expect(sendLitecoin()).rejects.toMatchObject(refused)
    await setPolicy(service.db, by.customer_id, {
      rules: [{ id: 'l', limit: { ...limit, amount: '200' }, action: 'BLOCK' }],
    })
    expect(await sendLitecoin()).toMatchObject(made)
    await expect(sendLitecoin()).rejects.toMatchObject(refused)
    // An ALLOW rule that could not value a payment has counted it as its whole limit.
    await setPolicy(service.db, by.customer_id, {
      rules: [
        { id: 'small', limit, action: 'ALLOW' },
        { id: 'coins', match: { assets: ['LTC'] }, action: 'ALLOW' },
        { id: 'rest', action: 'BLOCK' },
      ],
    })
    expect(await withdraw(by)).toMatchObject({ status: 200 })
    await price(70)
    expect(await sendLitecoin()).toMatchObject(made)
    expect(await withdraw(by)).toMatchObject(POLICY_REFUSED)
  })
})

describe('nobody can hide behind an orchestration', () => {
  test('a client that is blocked cannot let a rule pay for it, and the money stays on the profile', async () => {
    const by = await newCustomer(service)
    const rule = {
      ref_id: 'r',
      profile_id: by.profile_id,
      source_asset: 'USD',
      destination_asset: 'USDG',
      source: { profile: { profile_id: by.profile_id } },
      destination: { crypto: { network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' } },
    }
    expect(await by.call('POST', '/v2/orchestration/rules', rule)).toMatchObject({ status: 200 })
    await setPolicy(service.db, by.customer_id, {
      rules: [{ id: 'c', match: { client_ids: [by.client_id] }, action: 'BLOCK' }],
    })
    await fund(by, '100')
    await runOrchestrations(service.db, { ...service, govern: service.ledger.govern })
    const { body } = await by.call<{ items: object[] }>('GET', '/v2/orchestration/orchestrations')
    expect(body.items).toMatchObject([
      { status: 'FAILED', fail_reason: { detail: expect.stringContaining('rule c') as string } },
    ])
    const balance = await by.call('GET', `/v2/profiles/${by.profile_id}/balances/USD`)
    expect(balance.body).toMatchObject({ available: '100' })
    // Nobody knows who made a rule of before: it fits rules that block, and none that allows.
    await service.owner.query('update orchestration_rules set created_by = null where customer_id = $1', [
      by.customer_id,
    ])
    await setPolicy(service.db, by.customer_id, {
      rules: [
        { match: { client_ids: [by.client_id] }, action: 'ALLOW' },
        { id: 'c', match: { client_ids: ['another'] }, action: 'BLOCK' },
      ],
    })
    await fund(by, '1')
    await runOrchestrations(service.db, { ...service, govern: service.ledger.govern })
    const again = await by.call<{ items: object[] }>('GET', '/v2/orchestration/orchestrations')
    expect(again.body.items).toMatchObject([{ status: 'FAILED' }, { status: 'FAILED' }])
  })
})

describe('a policy that cannot be trusted', () => {
  test('pays nothing, and deposits are credited', async () => {
    const by = await governed({ id: 'b', match: { assets: ['BTC'] }, action: 'BLOCK' })
    await service.db.query(
      `insert into policies (customer_id, version, document, mac, created_at)
       select customer_id, 2, '{"rules": []}', mac, created_at from policies where customer_id = $1`,
      [by.customer_id],
    )
    const before = await everyTable(service.db)
    expect(await withdraw(by)).toMatchObject(refusedWith(503, 'cannot be trusted'))
    expect(await everyTable(service.db)).toEqual(before)
    await fund(by, '5')
    const keyless = new Ledger(service.db)
    await credit(keyless, by, 'USDG', '5')
    const repaired = await setPolicy(service.db, by.customer_id, { rules: [] })
    expect(repaired.version).toBe(3)
    expect(await withdraw(by)).toMatchObject({ status: 200 })
  })
})

test('a repeated ref_id is answered with its transfer, also when the policy would refuse it now', async () => {
  const by = await governed()
  const { body } = await withdraw(by, { ref_id: 'once' })
  await setPolicy(service.db, by.customer_id, { rules: [{ action: 'BLOCK' }] })
  expect(await withdraw(by, { ref_id: 'once' })).toMatchObject({
    status: 409,
    body: { meta: { existing: { id: body.id as string } } },
  })
})

test('a refused payment changes nothing', async () => {
  const by = await governed({ limit: { amount: '1', asset: 'USD', period_seconds: 60 }, action: 'BLOCK' })
  const before = await everyTable(service.db)
  expect(await withdraw(by)).toMatchObject(POLICY_REFUSED)
  expect(await everyTable(service.db)).toEqual(before)
})

describe('windows are locked with the balances, by the policy that is known', () => {
  /** The service's database, counting its round trips: statements that are sent while another is under way share one. */
  function counting() {
    const seen = { roundTrips: 0 }
    let underWay = 0
    const connect = async () => {
      const tx = await service.db.connect()
      return new Proxy(tx, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target)
          if (typeof value !== 'function') return value
          if (name !== 'query') return value.bind(target) as unknown
          return async (...values: unknown[]) => {
            if (underWay === 0) seen.roundTrips += 1
            underWay += 1
            return (value.apply(target, values) as Promise<unknown>).finally(() => (underWay -= 1))
          }
        },
      })
    }
    return { db: { connect } as unknown as Database, seen }
  }
  const RULES_OF_TWO: Rules = [
    { limit: { amount: '50', asset: 'USD', period_seconds: 3600, per: 'PROFILE' }, action: 'BLOCK' },
    { limit: { amount: '50', asset: 'USD', period_seconds: 3600, per: 'DESTINATION' }, action: 'BLOCK' },
    { match: { destination: 'ADDRESS_BOOK' }, action: 'APPROVE', approvals: 1 },
  ]

  // A cluster has statements of its own for a batch, which its sessions choose: the counting ones are of a plain database.
  test.skipIf(CLUSTER.length > 0)('so limits cost no round trip of their own', async () => {
    const { db, seen } = counting()
    const ledger = new Ledger(db, { govern: governBy(new Policies(MASTER_KEYS, { sandbox: true })) })
    const roundTripsOf = async (by: TestCustomer) => {
      seen.roundTrips = 0
      await pay(ledger, by)
      return seen.roundTrips
    }
    const free = await newCustomer(service)
    await fund(free, '1000')
    await roundTripsOf(free)
    const without = await roundTripsOf(free)
    const by = await governed(...RULES_OF_TWO)
    expect(await roundTripsOf(by)).toBeGreaterThan(without)
    expect(await roundTripsOf(by)).toBe(without)
  })

  test('and a policy that another process has replaced binds at once', async () => {
    const by = await governed(...RULES_OF_TWO)
    const ledgers = Array.from(
      { length: 2 },
      () => new Ledger(service.db, { govern: governBy(new Policies(MASTER_KEYS, { sandbox: true })) }),
    )
    for (const ledger of ledgers) await pay(ledger, by)
    await setPolicy(service.db, by.customer_id, {
      rules: [
        ...RULES_OF_TWO,
        { id: 'new', limit: { amount: '33', asset: 'USDP', period_seconds: 3600 }, action: 'BLOCK' },
      ],
    })
    // Each pays 11: the new window holds three of them, and the older windows two after the first two.
    const sent = ledgers.flatMap((ledger) => Array.from({ length: 5 }, () => pay(ledger, by)))
    const outcomes = await Promise.allSettled(sent)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
    await setPolicy(service.db, by.customer_id, {
      rules: [{ id: 'new', limit: { amount: '33', asset: 'USDP', period_seconds: 3600 }, action: 'BLOCK' }],
    })
    const later = await Promise.allSettled(ledgers.flatMap((ledger) => [pay(ledger, by), pay(ledger, by)]))
    expect(later.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })
})

test('verify finds a window that holds less than was paid', async () => {
  const limit = { amount: '1000', period_seconds: 3600 }
  const by = await governed(
    { id: 'usd', limit: { ...limit, asset: 'USD' }, action: 'BLOCK' },
    { id: 'own', limit: { ...limit, asset: 'USDP', per: 'PROFILE' }, action: 'BLOCK' },
    { id: 'btc', match: { assets: ['BTC'] }, limit: { ...limit, asset: 'USD' }, action: 'BLOCK' },
    {
      id: 'asked',
      limit: { amount: '25', asset: 'USD', period_seconds: 0 },
      action: 'APPROVE',
      approvals: 1,
    },
    { id: 'late', limit: { ...limit, asset: 'USDP' }, action: 'BLOCK' },
  )
  await made(by, ['11', '12.5', '30', '2000'])
  const own = async () => {
    // A payment that an older version has judged may be a minute younger than the newest: look as if later.
    const move = (minutes: number) =>
      service.owner.query(
        `update policies set created_at = ${movedBy('created_at', `${minutes} minutes`)} where customer_id = $1`,
        [by.customer_id],
      )
    await move(-2)
    const { disagreements } = await verify(service.db)
    await move(2)
    return disagreements.filter(({ customer_id }) => customer_id === by.customer_id)
  }
  expect(await own()).toEqual([])
  const { rows } = await service.db.query<{ rule_id: string; buckets: [number, string][] }>(
    'select rule_id, buckets from policy_windows where customer_id = $1 order by rule_id',
    [by.customer_id],
  )
  expect(rows.map(({ rule_id, buckets }) => [rule_id, buckets.at(-1)![1]])).toEqual([
    // The payment of 30 waits for an approver, and later rules were not asked.
    ['late', `235${'0'.repeat(17)}`],
    ['own', `535${'0'.repeat(17)}`],
    ['usd', '5350000000'],
  ])
  const rule = 'every window of a limit holds the payments of its period'
  // Verify expects at least the 23.5 that no approver was asked about.
  for (const { rule_id, buckets } of rows)
    for (const less of [[], buckets.map(([at, sum]) => [at, String((BigInt(sum) * 3n) / 10n)])]) {
      const set = (value: object) =>
        service.db.query('update policy_windows set buckets = $3 where customer_id = $1 and rule_id = $2', [
          by.customer_id,
          rule_id,
          JSON.stringify(value),
        ])
      await set(less)
      expect(await own()).toEqual([
        { customer_id: by.customer_id, rule, detail: expect.stringMatching(`^rule ${rule_id}, `) as string },
      ])
      await set(buckets)
    }
  // Nor is a window missed that was deleted.
  await service.owner.query('delete from policy_windows where customer_id = $1 and rule_id = $2', [
    by.customer_id,
    'usd',
  ])
  expect(await own()).toMatchObject([{ rule }])
  const usd = rows.find(({ rule_id }) => rule_id === 'usd')!
  await service.owner.query(
    `insert into policy_windows (customer_id, rule_id, asset, subject, buckets, ends_at)
     values ($1, 'usd', 'USD', 'CUSTOMER', $2, now() + interval '1 day')`,
    [by.customer_id, JSON.stringify(usd.buckets)],
  )
})

test('windows are deleted a day after nothing counts in them', async () => {
  const by = await governed({ limit: { amount: '50', asset: 'USD', period_seconds: 60 }, action: 'BLOCK' })
  await made(by, ['5'])
  const count = async () =>
    (await service.db.query('select from policy_windows where customer_id = $1', [by.customer_id])).rowCount
  await deleteEndedWindows(service.db, 100)
  expect(await count()).toBe(1)
  await service.owner.query(
    `update policy_windows set ends_at = ${movedBy('ends_at', '-2 days')} where customer_id = $1`,
    [by.customer_id],
  )
  expect(await deleteEndedWindows(service.db, 100)).toBe(1)
  expect(await count()).toBe(0)
})
