/*
 * A record ends (or begins to be of no use) while something begins to use it. Whoever checks the record holds a lock on it, or on
 * what the other side reads, so that one of the two comes first, and the other one sees it: never both as if alone.
 *
 * Each pair is tried in both orders, with a pause between: all changes of a customer end with its audit log, whose head the test
 * holds. So the first party has checked, written and kept its locks, and is not committed, when the second one begins.
 *
 * Not here are pairs in which the use is checked again before money leaves (check-before-signing.db.test.ts: freezes, identity,
 * account; approved-payments.db.test.ts: approvers), and fee quotes, which are locked for one use.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { verify } from '../src/money/verify/verify.ts'
import { queryNodes } from './cluster.ts'
import {
  credit,
  DESTINATION,
  fund,
  newCustomer,
  type Answer,
  type TestCustomer,
  ownTestService,
} from './support.ts'

const service = await ownTestService()
afterAll(async () => expect((await verify(service.db, { macs: service.macs })).disagreements).toEqual([]))

type Body = Record<string, unknown> & { id: string }
interface World {
  customer: TestCustomer
  /** The customer whose audit log both parties write. */
  of: TestCustomer
  /** The record that ends. */
  ending: Body
  made: (url: string, body: object) => Promise<Body>
}
type Act = (world: World) => Promise<Answer>
interface Pair {
  /** Makes the record that ends. */
  prepare: (world: Omit<World, 'ending'>) => Promise<Body>
  use: Act
  end: Act
  /** What the end answers behind the use: 400 names the use; 200 lets it go on. */
  endBehind: 200 | 400
  /** What the use answers behind the end; `isUnused` where it succeeds and leaves the record alone. */
  useBehind: number
  isUnused?: (world: World) => Promise<boolean>
}

const post =
  (url: string, bodyOf: (world: World) => object): Act =>
  (world) =>
    world.customer.call('POST', url, bodyOf(world))
const ref = () => randomUUID()

/** A profile that never held anything. */
const usedProfile: Pair['prepare'] = async ({ of }) =>
  (await of.call<Body>('POST', '/v2/profiles', { nickname: ref() })).body
const deactivate: Act = ({ of, ending: { id } }) => of.call('PUT', `/v2/profiles/${id}/deactivate`)
const ofProfile = (use: Act): Pair => ({
  prepare: usedProfile,
  use,
  end: deactivate,
  endBehind: 400,
  useBehind: 403,
})
const transfer = (to: string, from: string, asset = 'USD') => ({
  ...{ ref_id: ref(), asset, amount: '5', from_profile_id: from, to_profile_id: to },
})

const bankAccount: Pair['prepare'] = ({ made }) =>
  made('/v2/transfer/fiat-accounts', {
    fiat_account_owner: { person_details: { first_name: 'Ada', last_name: 'Example' } },
    fiat_network_instructions: { wire: { account_number: '1' } },
  })
const ofBankAccount = (use: Act, endBehind: 200 | 400): Pair => ({
  prepare: bankAccount,
  use,
  end: ({ customer, ending: { id } }) => customer.call('DELETE', `/v2/transfer/fiat-accounts/${id}`),
  endBehind,
  useBehind: 404,
})
const order = ({ customer }: World, destination: object, assets = ['USD', 'USDP']) => ({
  ...{ ref_id: ref(), source_asset: assets[0], destination_asset: assets[1], source_amount: '5' },
  ...{ source: { profile: { profile_id: customer.profile_id } }, destination },
})

const PAIRS: Record<string, Pair> = {
  'an internal transfer in a new asset, and Deactivate Profile': ofProfile(
    post('/v2/transfer/internal', ({ customer, ending }) => transfer(ending.id, customer.profile_id)),
  ),
  'a batch that moves an empty balance and makes a new one, and Deactivate Profile': {
    ...ofProfile(async ({ customer, ending }) => {
      const move = (asset: string) =>
        customer.call('POST', '/v2/transfer/internal', transfer(ending.id, customer.profile_id, asset))
      const [first, second] = await Promise.all([move('USDP'), move('USD')])
      expect(first.status).toBe(second.status)
      return second
    }),
    async prepare(world) {
      const profile = await usedProfile(world)
      const { customer, made } = world
      await made('/v2/transfer/internal', transfer(profile.id, customer.profile_id, 'USDP'))
      await made('/v2/transfer/internal', transfer(customer.profile_id, profile.id, 'USDP'))
      return profile
    },
  },
  'a transfer from another customer, and Deactivate Profile': {
    ...ofProfile(
      post('/v2/transfer/paxos', ({ customer, ending }) => transfer(ending.id, customer.profile_id)),
    ),
    // Another customer's profile is not told apart from none.
    useBehind: 404,
  },
  'an orchestration to a profile, and Deactivate Profile': ofProfile(
    post('/v2/orchestration/orchestrations', (world) =>
      order(world, { profile: { profile_id: world.ending.id } }),
    ),
  ),
  'a rule, and Deactivate Profile': ofProfile(
    post('/v2/orchestration/rules', ({ ending: { id } }) => ({
      ...{ ref_id: ref(), profile_id: id, source_asset: 'USD', destination_asset: 'USDP' },
      source: { profile: { profile_id: id } },
    })),
  ),
  'a deposit address, and Deactivate Profile': {
    ...ofProfile(
      post('/v2/transfer/deposit-addresses', ({ ending }) => ({
        ...{ profile_id: ending.id, crypto_network: 'ETHEREUM' },
      })),
    ),
    endBehind: 200,
  },
  'deposit instructions, and Deactivate Profile': {
    ...ofProfile(
      post('/v2/transfer/fiat-deposit-instructions', ({ ending }) => ({
        ...{ profile_id: ending.id, fiat_network: 'WIRE' },
      })),
    ),
    endBehind: 200,
  },
  'a wire, and Delete Fiat Account': ofBankAccount(
    post('/v2/transfer/fiat-withdrawals', ({ customer: { profile_id }, ending }) => ({
      ...{ profile_id, asset: 'USD', amount: '5', fiat_account_id: ending.id },
    })),
    200,
  ),
  'an orchestration to a bank account, and Delete Fiat Account': ofBankAccount(
    post('/v2/orchestration/orchestrations', (world) =>
      order(world, { fiat: { fiat_account_id: world.ending.id } }, ['USDP', 'USD']),
    ),
    200,
  ),
  'a rule that pays to a bank account, and Delete Fiat Account': ofBankAccount(
    post('/v2/orchestration/rules', ({ customer: { profile_id }, ending: { id } }) => ({
      ...{ ref_id: ref(), profile_id, source_asset: 'USDP', destination_asset: 'USD' },
      ...{ source: { profile: { profile_id } }, destination: { fiat: { fiat_account_id: id } } },
    })),
    400,
  ),
  'a deposit that starts an orchestration, and Delete Orchestration Rule': {
    async prepare({ customer, made }) {
      const { rule } = (await made('/v2/orchestration/rules', {
        ...{ ref_id: ref(), profile_id: customer.profile_id, source_asset: 'USD', destination_asset: 'USDP' },
        source: { fiat: { network: 'WIRE' } },
        destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
      })) as unknown as { rule: Body }
      return rule
    },
    use: post('/v2/sandbox/fiat-deposits', ({ ending }) => ({
      ...{ amount: '5', asset: 'USD', fiat_network_instructions: { wire: {} } },
      memo_id: (ending.source as { fiat: { memo_id: string } }).fiat.memo_id,
    })),
    end: ({ customer, ending: { id } }) => customer.call('DELETE', `/v2/orchestration/rules/${id}`),
    endBehind: 200,
    useBehind: 200,
    isUnused: async ({ customer }) => {
      const { body } = await customer.call<{ items: [] }>('GET', '/v2/orchestration/orchestrations')
      return body.items.length === 0
    },
  },
}

/** A customer with money, and another one whose profile ends where the pair crosses customers. */
async function newWorld(name: string, { prepare }: Pair): Promise<World> {
  const customer = await newCustomer(service)
  const of = name.startsWith('a transfer from another customer') ? await newCustomer(service) : customer
  await fund(customer, '100')
  await credit(service.ledger, customer, 'USDP', '100')
  const made = async (url: string, body: object) => {
    const answer = await customer.call<Body>('POST', url, body)
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return answer.body
  }
  const world = { customer, of, made }
  return { ...world, ending: await prepare(world) }
}

/** Starts both parties, the second one when the first is about to commit and waits. Returns their answers. */
async function inTurn(
  { of }: World,
  first: () => Promise<Answer>,
  second: () => Promise<Answer>,
): Promise<[Answer, Answer]> {
  const holder = await service.owner.connect()
  const waiting = async (count: number) => {
    const sessions = await queryNodes(
      service.url,
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    expect(sessions).toHaveLength(count)
  }
  try {
    await holder.query('begin')
    await holder.query('select 1 from audit_heads where customer_id = $1 for update', [of.customer_id])
    const one = first()
    await expect.poll(() => waiting(1).then(() => true), { timeout: 20_000 }).toBe(true)
    const other = second()
    await expect.poll(() => waiting(2).then(() => true), { timeout: 20_000 }).toBe(true)
    await holder.query('commit')
    return await Promise.all([one, other])
  } finally {
    await holder.query('rollback')
    holder.release()
  }
}

test.each(Object.entries(PAIRS))('%s: the use comes first', async (name, pair) => {
  const world = await newWorld(name, pair)
  const [used, ended] = await inTurn(
    world,
    () => pair.use(world),
    () => pair.end(world),
  )
  expect([used.status, ended.status], JSON.stringify([used.body, ended.body])).toEqual([200, pair.endBehind])
  if (ended.status !== 200) return
  const { deleted_at, deactivated_at, rule } = ended.body as Record<string, string>
  const at = deleted_at ?? deactivated_at ?? (rule as unknown as { updated_at: string }).updated_at
  if (pair.isUnused !== undefined) {
    expect(await pair.isUnused(world)).toBe(false)
    return
  }
  expect(at > (used.body.created_at as string), `${at} is after ${String(used.body.created_at)}`).toBe(true)
})

test.each(Object.entries(PAIRS))('%s: the end comes first', async (name, pair) => {
  const world = await newWorld(name, pair)
  const [ended, used] = await inTurn(
    world,
    () => pair.end(world),
    () => pair.use(world),
  )
  expect([ended.status, used.status], JSON.stringify([ended.body, used.body])).toEqual([200, pair.useBehind])
  expect(await (pair.isUnused?.(world) ?? true)).toBe(true)
})
