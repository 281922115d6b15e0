/*
 * A PENDING withdrawal can be stopped until it is signed. The signing transaction reads freezes, and the standing of
 * its account and identity, again. A stopped withdrawal waits with the reason, moves no money, and goes on when it
 * may.
 */
import { afterEach, expect, test } from 'vitest'
import {
  credit,
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  type TestCustomer,
  withdraw as order,
  ownTestService,
} from '../../../test/support.ts'
import { standingOf } from '../../../test/payouts.ts'
import { settle as settleAll } from '../../../test/work-off.ts'
import { setAccountDisabled } from '../../resources/accounts/set-account-disabled.ts'
import { openDatabase, transaction } from '../../db/database.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import type { Networks } from '../../networks/network.ts'
import {
  freeze,
  freezesOfSigning,
  unfreeze,
  signingEnds,
  type FreezeTarget,
} from '../../money/records/freezes.ts'
import { verify } from '../../money/verify/verify.ts'
import { NodeRefusal } from '../../networks/node-failure.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'
import { signOnlyAccepted } from './sign-only-accepted.ts'

const SOLANA = '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA'

const service = await ownTestService()
const macs = new RowMacs(MASTER_KEYS)
const networks: Networks = new Map(
  [...service.networks].map(([network, adapter]) => [network, signOnlyAccepted(adapter, macs)] as const),
)
afterEach(() => service.owner.query('delete from freezes; delete from customer_freezes'))

/** Orders a withdrawal from a balance of its own. Returns its id. */
async function withdraw(
  customer: TestCustomer,
  changes: { profile_id?: string; [name: string]: unknown } = {},
) {
  await credit(
    service.ledger,
    { ...customer, profile_id: changes.profile_id ?? customer.profile_id },
    'USD',
    '20',
  )
  return (await order(customer, changes)).id
}
const settle = () => settleAll({ db: service.db, networks })

const read = async (id: string) => {
  const { waiting_code: _, ...standing } = await standingOf(service.db, id)
  return standing
}
const stopped = (reason: string) => ({ status: 'PENDING', waiting_detail: reason, on_chain: 0 })
const done = { status: 'COMPLETED', waiting_detail: null, on_chain: 1 }

const targets: [
  FreezeTarget['kind'],
  (customer: TestCustomer) => FreezeTarget,
  (customer: TestCustomer) => string,
][] = [
  ['ALL', () => ({ kind: 'ALL' }), () => 'everything is frozen (OPERATOR): a leak'],
  [
    'NETWORK',
    () => ({ kind: 'NETWORK', network: 'ETHEREUM' }),
    () => 'network ETHEREUM is frozen (OPERATOR): a leak',
  ],
  [
    'CUSTOMER',
    ({ customer_id }) => ({ kind: 'CUSTOMER', customer_id }),
    ({ customer_id }) => `customer ${customer_id} is frozen (OPERATOR): a leak`,
  ],
  [
    'PROFILE',
    ({ customer_id, profile_id }) => ({ kind: 'PROFILE', customer_id, profile_id }),
    ({ profile_id }) => `profile ${profile_id} is frozen (OPERATOR): a leak`,
  ],
]

test.each(targets)('a freeze of %s stops its unsigned withdrawals only', async (kind, targetOf, reasonOf) => {
  const [customer, other] = [await newCustomer(service), await newCustomer(service)]
  const profile = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Second' })
  const mine = await withdraw(customer)
  const others: Record<string, string> = {
    NETWORK: await withdraw(customer, {
      asset: 'USDG',
      crypto_network: 'SOLANA',
      destination_address: SOLANA,
    }),
    PROFILE: await withdraw(customer, { profile_id: profile.body.id }),
    CUSTOMER: await withdraw(other),
  }
  const goesOn: Record<typeof kind, string[]> = {
    ALL: [],
    NETWORK: ['NETWORK'],
    CUSTOMER: ['CUSTOMER'],
    PROFILE: ['PROFILE', 'CUSTOMER'],
  }
  await freeze(service.db, TEST_ORIGIN, targetOf(customer), 'OPERATOR', 'a leak')
  await settle()
  expect(await read(mine)).toEqual(stopped(reasonOf(customer)))
  for (const [name, id] of Object.entries(others))
    expect([name, (await read(id)).on_chain]).toEqual([name, goesOn[kind].includes(name) ? 1 : 0])

  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, targetOf(customer))
  await settle()
  for (const id of [mine, ...Object.values(others)]) expect(await read(id)).toEqual(done)
  expect((await verify(service.db)).disagreements).toEqual([])
})

/** As the service's database role: ends all freezes, with the MAC of an end that was genuine. */
async function endAsThief() {
  for (const table of ['freezes', 'customer_freezes']) {
    await expect(service.db.query(`delete from ${table}`)).rejects.toThrow(/permission denied/)
    await service.db.query(
      `update ${table} set lifted_at = e.lifted_at, sealed_at = e.sealed_at, mac = e.mac
       from (select lifted_at, sealed_at, mac from ${table} where mac is not null
             union all select now(), now(), 'x' limit 1) e
       where ${table}.mac is null`,
    )
  }
}

test.each(targets)(
  'a freeze of %s goes on that the database role has ended',
  async (_kind, targetOf, reasonOf) => {
    const customer = await newCustomer(service)
    const mine = await withdraw(customer)
    const target = targetOf(customer)
    await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'an older one')
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)
    await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'a leak')
    await endAsThief()
    await settle()
    const { waiting_detail, ...rest } = await read(mine)
    expect(rest).toEqual({ status: 'PENDING', on_chain: 0 })
    expect(waiting_detail).toContain(`${reasonOf(customer)}; it was ended at `)
    const broken = (await verify(service.db, { rowMacs: ROW_MACS })).disagreements
    expect(broken.map(({ rule }) => rule)).toEqual([
      expect.stringMatching(/^every row of (customer_)?freezes/),
    ])

    expect(await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)).toBe(1)
    await settle()
    expect(await read(mine)).toEqual(done)
    expect((await verify(service.db, { rowMacs: ROW_MACS })).disagreements).toEqual([])
  },
)

test('the standing of identity, account and profile is read again, and a stopped withdrawal goes on when it is restored', async () => {
  const customer = await newCustomer(service)
  const identity = await customer.call<{ id: string }>('POST', '/v2/identity/identities', {
    ref_id: 'ada',
    person_details: { first_name: 'Ada', last_name: 'Example' },
  })
  expect(identity).toMatchObject({ status: 200 })
  const identity_id = identity.body.id
  const statusPath = `/v2/identity/identities/${identity_id}/sandbox-status`
  await customer.call('PUT', statusPath, { status: 'APPROVED' })
  const made = await customer.call<{ id: string; profile_id: string }>('POST', '/v2/identity/accounts', {
    account: { ref_id: 'ada', identity_id },
    create_profile: true,
  })
  expect(made).toMatchObject({ status: 200 })
  const { id: account_id, profile_id } = made.body
  const withdrawals = {
    identity: await withdraw(customer, { identity_id }),
    account: await withdraw(customer, { account_id }),
    profile: await withdraw(customer, { profile_id }),
  }
  const nobody = await withdraw(customer)

  await customer.call('PUT', statusPath, { status: 'DENIED' })
  await settle()
  expect(await read(nobody)).toEqual(done)
  const denied = stopped(
    `identity ${identity_id} is DENIED: nothing can be withdrawn for it, and it is given no deposit address, until it is APPROVED`,
  )
  for (const id of Object.values(withdrawals)) expect(await read(id)).toEqual(denied)

  await customer.call('PUT', statusPath, { status: 'APPROVED' })
  await setAccountDisabled(service.db, account_id, { admin_disabled: true }, TEST_ORIGIN)
  await settle()
  expect(await read(withdrawals.identity)).toEqual(done)
  const disabled = stopped(`account ${account_id} is DISABLED: nothing can be withdrawn for it`)
  expect([await read(withdrawals.account), await read(withdrawals.profile)]).toEqual([disabled, disabled])

  await setAccountDisabled(service.db, account_id, { admin_disabled: false }, TEST_ORIGIN)
  await settle()
  expect([await read(withdrawals.account), await read(withdrawals.profile)]).toEqual([done, done])
  expect((await verify(service.db)).disagreements).toEqual([])
})

test('a signed withdrawal is broadcast and completed, despite any freeze', async () => {
  const customer = await newCustomer(service)
  const signed = await withdraw(customer)
  // The first claim signs, and the next broadcasts; the network accepts nothing yet.
  const broadcast = () => Promise.reject(new NodeRefusal('no'))
  await settleWithdrawals(
    service.db,
    new Map([...service.networks].map(([network, adapter]) => [network, { ...adapter, broadcast }])),
  )
  const { rows } = await service.db.query('select state from outgoing_transfers where transfer_id = $1', [
    signed,
  ])
  expect(rows).toEqual([{ state: 'SIGNED' }])
  await freeze(service.db, TEST_ORIGIN, { kind: 'ALL' }, 'OPERATOR', 'a leak')
  await settle()
  expect(await read(signed)).toEqual(done)
})

test('a freeze can wait for open signing transactions; later ones see the freeze', async () => {
  const pool = openDatabase(service.url, { max: 3, onError: () => undefined })
  try {
    const signing = await pool.connect()
    await signing.query('begin')
    const target = { network: 'ETHEREUM' }
    expect(await freezesOfSigning(signing, target)).toEqual([])
    await freeze(pool, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' }, 'OPERATOR', 'a leak')
    expect(await signingEnds(pool, 50)).toBe(false)

    let isOver = false
    const waiting = signingEnds(pool, 60_000).then((ended) => (isOver = ended))
    // A freeze that waits keeps nobody else from signing, however often it is repeated.
    for (let payment = 1; payment <= 5; payment++)
      expect(await transaction(pool, (tx) => freezesOfSigning(tx, target))).toMatchObject([
        { kind: 'NETWORK', subject: 'ETHEREUM', detail: 'a leak' },
      ])
    expect(isOver).toBe(false)
    await signing.query('commit')
    signing.release()
    // What began to sign later is not waited for.
    await transaction(pool, async (tx) => {
      await freezesOfSigning(tx, target)
      await waiting
    })
    expect(isOver).toBe(true)
  } finally {
    await pool.end()
  }
})
