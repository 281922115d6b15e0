/*
 * An EVM network, with the worker killed (SIGKILL) between every two steps in turn. Invariants of each turn:
 * 1. the chain shows each withdrawal once, with its exact amount, and each deposit is credited once;
 * 2. the ledger agrees with the chain to the last unit: custody is the hot wallet plus the deposits that are not
 * swept;
 * 3. nothing stays locked: no transaction in the node, no unused nonce, no lock in the database, nothing in flight.
 */
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { Ledger } from '../src/money/movements/queue.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { macOfWithdrawal } from '../src/audit/withdrawal-macs.ts'
import { newPrivateKey, signStatement } from '../src/governance/approvals/approval-statement.ts'
import { Policies } from '../src/governance/policy/policy.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { addTestApprover, decideAs, insertDecision, statementOf, type TestApprover } from './approvers.ts'
import { setPolicy } from './policies.ts'
import {
  dieEverywhere,
  dieInTreasury,
  evmWorld,
  prepare,
  startRealService,
  workToTheEnd,
} from './real-networks.ts'
import { BASE_URL, caller, MASTER_KEYS } from './support.ts'
import { hurry, mine } from './work-off.ts'
import { governBy } from '../src/governance/policy/judge-payments.ts'
import { buildApp } from '../src/program/build-app.ts'
import { signOnlyAccepted } from '../src/rails/payouts/sign-only-accepted.ts'
import { readAccepted } from '../src/money/movements/accepted-withdrawals.ts'
import { atEnd } from './at-end.ts'

const world = await evmWorld()
const service = await startRealService(world)
// The worker reads the chain for deposits from here on.
await workToTheEnd(service, world)
afterAll(async () => {
  await service?.close()
  await world?.stop()
})

test('a worker that dies between any two steps loses nothing and pays nothing twice', async () => {
  // A deposit to withdraw from while later deposits are not swept yet.
  await prepare(service, world, { asset: 'ETH', amount: '3' })
  await workToTheEnd(service, world)
  await prepare(service, world, { asset: 'USDG', amount: '500' })
  await workToTheEnd(service, world)
  const steps = ['eth_sendRawTransaction', 'insert into sweeps', 'update outgoing_transfers', 'commit']
  const places = await dieEverywhere(
    service,
    world,
    {
      deposit: { asset: 'ETH', amount: '0.5' },
      withdrawal: { asset: 'ETH', amount: '0.300000000000000007' },
      rule: { asset: 'USDG', amount: '20.000001' },
    },
    steps,
  )
  for (const step of steps) expect(places.join('\n')).toContain(step)

  const { chain } = world.anvil
  const made = await chain.getTransactionCount({ address: world.hotWallet })
  const { rows } = await service.db.query<{ next: string; kept: string }>(
    `select (select next_nonce from evm_nonces) as next,
            (select count(*) from outgoing_transfers) + (select count(*) from sweeps where kind = 'TOP_UP') as kept`,
  )
  expect(rows).toEqual([{ next: String(made), kept: String(made) }])
})

test('a worker that dies while it moves coins to cold storage moves them once', async () => {
  await prepare(service, world, { asset: 'ETH', amount: '5' })
  await workToTheEnd(service, world)
  const places = await dieInTreasury(service, world, { asset: 'ETH', amount: '0.010000000000000003' })
  expect(places.length).toBeGreaterThan(1)
})

test('a forged, replayed or altered approval brings nothing onto the chain; real ones pay once', async () => {
  const macs = new RowMacs(MASTER_KEYS)
  const ledger = new Ledger(service.db, {
    macs,
    govern: governBy(new Policies(MASTER_KEYS, { sandbox: true })),
  })
  const app = await buildApp({
    ...service,
    ledger,
    masterKeys: MASTER_KEYS,
    baseUrl: BASE_URL,
    log: pino({ level: 'silent' }),
  })
  atEnd(() => app.close())
  const networks = new Map(
    [...service.networks].map(([name, adapter]) => [name, signOnlyAccepted(adapter, macs)]),
  )
  /** More rounds of the worker than a withdrawal needs from its creation to its end. */
  const work = async () => {
    for (let round = 1; round <= 8; round++) {
      await mine(world.mining)
      await hurry(service.db)
      await settleWithdrawals(service.db, networks)
    }
  }

  const { customer } = await prepare(service, world, { asset: 'ETH', amount: '2' })
  await workToTheEnd(service, world)
  const { customer_id, profile_id } = customer
  const [ada, bob] = [
    await addTestApprover(service.owner, customer_id),
    await addTestApprover(service.owner, customer_id),
  ]
  const both = [ada, bob]
  await setPolicy(service.db, customer_id, {
    rules: [{ id: 'four-eyes', action: 'APPROVE', approvals: 2 }],
  })
  const { chain } = world.anvil
  const signedSoFar = () => chain.getTransactionCount({ address: world.hotWallet, blockTag: 'pending' })
  const call = caller(app, customer.token)
  const pay = async () => {
    const destination_address = await world.newAddress()
    const order = { profile_id, asset: 'ETH', crypto_network: 'ETHEREUM', amount: '0.1', destination_address }
    const { status, body } = await call<{
      id: string
      status_details: { pending_customer_approval: { approval_id: string } }
    }>('POST', '/v2/transfer/crypto-withdrawals', order)
    expect(status).toBe(200)
    const { approval_id } = body.status_details.pending_customer_approval
    return { id: body.id, approval_id, destination_address }
  }
  type Waiting = Awaited<ReturnType<typeof pay>>
  const insert = ({ approval_id }: Waiting, { id }: TestApprover, signed: object) =>
    insertDecision(service.db, customer_id, approval_id, id, signed)
  const textOf = ({ approval_id }: Waiting) => statementOf(service.db, customer_id, approval_id)
  const decide = ({ approval_id }: Waiting, by: TestApprover) =>
    decideAs(service.db, customer_id, approval_id, by)
  const thief = await world.newAddress()
  /** What a thief of the service's role, or of the master key, writes for each payment. */
  const attacks: Record<string, (one: Waiting) => Promise<unknown>> = {
    forged: async (one) => {
      const jwk = newPrivateKey()
      for (const by of both) await insert(one, by, signStatement(await textOf(one), jwk))
    },
    replayed: async (one) => {
      const other = await textOf(await pay())
      for (const by of both) await insert(one, by, signStatement(other, by.jwk))
    },
    altered: async (one) => {
      const text = (await textOf(one)).replace('"amount":"0.1"', '"amount":"0.01"')
      for (const by of both) await insert(one, by, signStatement(text, by.jwk))
    },
    'given twice': async (one) => {
      for (const by of [ada, ada]) await insert(one, by, signStatement(await textOf(one), by.jwk))
    },
    'set by SQL': (one) =>
      service.db.query(`update approvals set status = 'APPROVED' where id = $1`, [one.approval_id]),
    'for another destination': async (one) => {
      for (const by of both) await decide(one, by)
      await service.owner.query('update transfers set destination_address = $2 where id = $1', [
        one.id,
        thief,
      ])
      const [accepted] = await readAccepted(service.db, customer_id, [one.id])
      await service.owner.query('update transfers set mac = $2 where id = $1', [
        one.id,
        macOfWithdrawal(macs, accepted!),
      ])
    },
  }

  const before = await signedSoFar()
  const attacked: Record<string, Waiting> = {}
  for (const [name, attack] of Object.entries(attacks)) {
    attacked[name] = await pay()
    await attack(attacked[name])
  }
  await work()
  expect(await signedSoFar()).toBe(before)
  for (const [name, { id, destination_address }] of Object.entries(attacked)) {
    expect([name, await world.received(destination_address, 'ETH')]).toEqual([name, []])
    const { rows } = await service.db.query(
      'select state, waiting_code, raw_transaction from outgoing_transfers where transfer_id = $1',
      [id],
    )
    expect([name, rows]).toEqual([
      name,
      [{ state: 'HELD', waiting_code: 'AWAITING_APPROVAL', raw_transaction: null }],
    ])
  }
  expect(await world.received(thief, 'ETH')).toEqual([])

  // What the thief wrote does not keep real approvers from deciding. Its payment to itself is put right by hand.
  const redirected = attacked['for another destination']!
  await service.owner.query('update transfers set destination_address = $2 where id = $1', [
    redirected.id,
    redirected.destination_address,
  ])
  const [accepted] = await readAccepted(service.db, customer_id, [redirected.id])
  await service.owner.query('update transfers set mac = $2 where id = $1', [
    redirected.id,
    macOfWithdrawal(macs, accepted!),
  ])
  const { rows: waiting } = await service.db.query<Waiting>(
    `select transfer_id as id, id as approval_id from approvals
     where customer_id = $1 and status <> 'USED' and transfer_id <> $2`,
    [customer_id, redirected.id],
  )
  const [grace, alan] = [
    await addTestApprover(service.owner, customer_id),
    await addTestApprover(service.owner, customer_id),
  ]
  for (const one of waiting) {
    await decide(one, grace)
    await decide(one, alan)
  }
  await work()
  for (const [name, { destination_address }] of Object.entries(attacked)) {
    const received = await world.received(destination_address, 'ETH')
    expect([name, received.map(({ amount }) => amount)]).toEqual([name, ['0.1']])
  }
  expect(await signedSoFar()).toBe(before + waiting.length + 1)
  expect(await world.received(thief, 'ETH')).toEqual([])
})
