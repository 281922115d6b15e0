/*
 * Events and records agree, one to one, after any history: the events of each record are its statuses in order, and
 * `verify` is clean. The test observes each status through the API between two commands.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { transaction } from '../src/db/database.ts'
import { firstIdAt, momentAt } from '../src/db/ids.ts'
import { deposit } from '../src/money/movements/deposit.ts'
import { post as postNow } from '../src/money/movements/post.ts'
import { setAccountDisabled } from '../src/resources/accounts/set-account-disabled.ts'
import { setIdentityStatus } from '../src/resources/identities/set-identity-status.ts'
import { runOrchestrations } from '../src/resources/orchestrations/run-orchestrations.ts'
import type { Event } from '../src/money/records/event.ts'
import { verify } from '../src/money/verify/verify.ts'
import { runs, SEED } from './seed.ts'
import {
  DESTINATION,
  fund,
  newCustomer,
  TEST_ORIGIN,
  type TestCustomer,
  withdrawalOf,
  ownTestService,
} from './support.ts'
import { settle } from './work-off.ts'

const service = await ownTestService()

const REFUSED_ADDRESS = '0x6275727361722073616E64626F78203031000000'
const PERSON = { first_name: 'Ada', last_name: 'Example' }

interface Listed {
  id: string
  type?: string
  status?: string
  summary_status?: string
}

/** A customer with the records that the commands change. */
async function newWorld() {
  const customer = await newCustomer(service)
  const { call, profile_id } = customer
  const made = async <T>(url: string, body: object) => (await call<T>('POST', url, body)).body
  await fund(customer, '100')
  const second = await made<{ id: string }>('/v2/profiles', { nickname: 'Second' })
  const bank = await made<{ id: string }>('/v2/transfer/fiat-accounts', {
    fiat_account_owner: { person_details: PERSON },
    fiat_network_instructions: { wire: { account_number: '1' } },
  })
  const { rule } = await made<{ rule: { source: { fiat: { memo_id: string } } } }>(
    '/v2/orchestration/rules',
    {
      ref_id: 'rule',
      profile_id,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { fiat: { network: 'WIRE' } },
      destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
    },
  )
  const identity = await made<{ id: string }>('/v2/identity/identities', {
    ref_id: 'ada',
    person_details: PERSON,
  })
  const account = await made<{ id: string }>('/v2/identity/accounts', {
    account: { identity_id: identity.id },
  })
  return {
    ...customer,
    customer,
    second,
    bank,
    memo_id: rule.source.fiat.memo_id,
    identity,
    account,
    orders: 0,
  }
}
type World = Awaited<ReturnType<typeof newWorld>>

const post =
  (url: string, bodyOf: (world: World, n: number) => object) =>
  async (world: World, n: number): Promise<void> => {
    // Refusals, such as of too little money, are a part of the history.
    await world.call('POST', url, bodyOf(world, n))
  }
const orchestrationTo = (destinationOf: (world: World) => object) =>
  post('/v2/orchestration/orchestrations', (world, n) => ({
    ref_id: `order ${world.orders++}`,
    source_asset: 'USD',
    destination_asset: 'USDP',
    source_amount: String(n),
    source: { profile: { profile_id: world.profile_id } },
    destination: destinationOf(world),
  }))

const COMMANDS: Record<string, (world: World, n: number) => Promise<void>> = {
  wire: ({ customer }, n) => fund(customer, String(n)),
  'wire for the rule': post('/v2/sandbox/fiat-deposits', ({ memo_id }, n) => ({
    amount: String(n),
    asset: 'USD',
    memo_id,
    fiat_network_instructions: { wire: {} },
  })),
  'crypto deposit': async (world, n) =>
    post(`/v2/sandbox/profiles/${world.profile_id}/deposit`, () => ({ asset: 'USDP', amount: String(n) }))(
      world,
      n,
    ),
  withdrawal: post('/v2/transfer/crypto-withdrawals', ({ customer }, n) =>
    withdrawalOf(customer, { amount: String(n) }),
  ),
  'refused withdrawal': post('/v2/transfer/crypto-withdrawals', ({ customer }) =>
    withdrawalOf(customer, { destination_address: REFUSED_ADDRESS }),
  ),
  'wire withdrawal': post('/v2/transfer/fiat-withdrawals', ({ profile_id, bank }, n) => ({
    profile_id,
    asset: 'USD',
    amount: String(n),
    fiat_account_id: bank.id,
  })),
  'internal transfer': post('/v2/transfer/internal', ({ profile_id, second }, n) => ({
    asset: 'USD',
    amount: String(n),
    from_profile_id: profile_id,
    to_profile_id: second.id,
  })),
  'orchestration to an address': orchestrationTo(() => ({
    crypto: { network: 'ETHEREUM', address: DESTINATION },
  })),
  'refused orchestration': orchestrationTo(() => ({
    crypto: { network: 'ETHEREUM', address: REFUSED_ADDRESS },
  })),
  'orchestration to a profile': orchestrationTo(({ second }) => ({ profile: { profile_id: second.id } })),
  cancel: async ({ call }, n) => {
    const { body } = await call<{ items: Listed[] }>('GET', '/v2/transfer/transfers?statuses=PENDING')
    const one = body.items[n % Math.max(1, body.items.length)]
    if (one !== undefined) await call('POST', `/v2/transfer/transfers/${one.id}/cancel`)
  },
  'status of the identity': async ({ call, identity }, n) => {
    const status = (['APPROVED', 'DENIED', 'PENDING', 'APPROVED'] as const)[n % 4]
    await call('PUT', `/v2/identity/identities/${identity.id}/sandbox-status`, { status })
  },
  'flag of the identity': async ({ identity }, n) => {
    await setIdentityStatus(service.db, identity.id, { admin_disabled: n % 2 === 0 }, TEST_ORIGIN)
  },
  'flag of the account': async ({ account }, n) => {
    await setAccountDisabled(service.db, account.id, { user_disabled: n % 2 === 0 }, TEST_ORIGIN)
  },
  'pay orchestrations': async () => void (await runOrchestrations(service.db, service)),
  settle: () => settle(service, 1),
}

const LISTS: [kind: string, url: string][] = [
  ['transfer', '/v2/transfer/transfers'],
  ['orchestration', '/v2/orchestration/orchestrations'],
  ['identity', '/v2/identity/identities'],
  ['account', '/v2/identity/accounts'],
]

/** Reads every status, and adds those that are new to the histories, as types of events. */
async function observe({ call }: World, histories: Map<string, string[]>, seen: Map<string, string>) {
  for (const [kind, url] of LISTS) {
    const { body } = await call<{ items: Listed[] }>('GET', `${url}?limit=1000`)
    for (const { id, type, status, summary_status } of body.items) {
      const now = (summary_status ?? status)!.toLowerCase()
      if (seen.get(id) === now) continue
      seen.set(id, now)
      // An identity and an account begin PENDING, and becoming it is no event.
      if (summary_status !== undefined && now === 'pending') continue
      const told = kind === 'transfer' ? `transfer.${type!.toLowerCase()}.${now}` : `${kind}.${now}`
      histories.set(id, [...(histories.get(id) ?? []), told])
    }
  }
}

async function toldHistories({ call }: TestCustomer): Promise<Map<string, string[]>> {
  const told = new Map<string, string[]>()
  let cursor = ''
  for (let page = 0; page < 100; page++) {
    const { body } = await call<{ items: Event[]; next_page_cursor?: string }>(
      'GET',
      `/v2/events?types=transfer.*&types=orchestration.*&types=identity.*&types=account.*&limit=20${cursor}`,
    )
    for (const { type, object } of body.items) {
      const { identity_id, account_id, id } = object as Record<string, string>
      const record = (identity_id ?? account_id ?? id)!
      told.set(record, [...(told.get(record) ?? []), type])
    }
    if (body.next_page_cursor === undefined) return told
    cursor = `&page_cursor=${body.next_page_cursor}`
  }
  throw new Error('the walk does not end')
}

test('the events of each record are its statuses in order, and verify is clean', async () => {
  const command = fc.tuple(fc.constantFrom(...Object.keys(COMMANDS)), fc.integer({ min: 1, max: 40 }))
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 30, maxLength: 60 }), async (commands) => {
      const world = await newWorld()
      const histories = new Map<string, string[]>()
      const seen = new Map<string, string>()
      await observe(world, histories, seen)
      for (const [name, n] of commands) {
        await COMMANDS[name]!(world, n)
        await observe(world, histories, seen)
      }
      expect(await toldHistories(world.customer), `seed ${SEED}`).toEqual(histories)
      expect((await verify(service.db)).disagreements, `seed ${SEED}`).toEqual([])
    }),
    runs(8),
  )
})

test('after the clock was set back, each change still has its event, and the last event of an identity is its last change', async () => {
  const world = await newWorld()
  const { profile_id, customer_id, call, second, identity } = world
  await call('POST', '/v2/orchestration/rules', {
    ref_id: 'to a profile',
    profile_id,
    source_asset: 'USDP',
    destination_asset: 'USD',
    source: { profile: { profile_id } },
    destination: { profile: { profile_id: second.id } },
  })
  const { rows } = await service.owner.query<{ ahead: string }>(
    "select clock_timestamp() + interval '1 hour' as ahead",
  )
  // What the ledger and an identity have while the clock is an hour ahead.
  const at = momentAt(rows[0]!.ahead)
  const { macs } = service.ledger
  for (const [asset, decimals] of [
    ['USD', 2n],
    ['USDP', 18n],
  ] as const) {
    const arrived = {
      profile_id,
      asset,
      minor: 100n * 10n ** decimals,
      arrivedAt: 'bank' as const,
      place: undefined,
      record: {},
    }
    const movement = deposit(customer_id, { ...arrived, type: 'WIRE_DEPOSIT' }, TEST_ORIGIN)
    await transaction(service.db, (tx) => postNow(tx, customer_id, [movement], { at, macs }))
  }
  await setIdentityStatus(service.db, identity.id, { status: 'APPROVED' }, TEST_ORIGIN)
  await service.owner.query(
    `update events set id = overlay(id::text placing left($2, 18) from 1)::uuid, created_at = $3
     where object_id in (select $1::uuid union select id from accounts where identity_id = $1) and not is_test`,
    [identity.id, firstIdAt(at.micros), at.text],
  )
  for (const [name, n] of [
    ['refused withdrawal', 10],
    ['orchestration to an address', 5],
    ['orchestration to a profile', 5],
    ['pay orchestrations', 1],
    ['settle', 1],
    ['settle', 1],
  ] as const)
    await COMMANDS[name]!(world, n)
  await setIdentityStatus(service.db, identity.id, { status: 'DENIED' }, TEST_ORIGIN)
  const { rows: ended } = await service.owner.query<{ type: string }>(
    `select type from transfers where customer_id = $1 and updated_at = created_at and status = 'FAILED'
     union all select 'ORCHESTRATION' from orchestrations
     where customer_id = $1 and updated_at = created_at and status <> 'PROCESSING' and orchestration_rule_id is not null`,
    [customer_id],
  )
  expect(ended.map(({ type }) => type)).toEqual(['CRYPTO_WITHDRAWAL', 'ORCHESTRATION'])
  expect((await verify(service.db)).disagreements).toEqual([])
})
