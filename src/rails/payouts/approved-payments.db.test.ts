/*
 * A policy's approvals bind each way in which money leaves: a withdrawal, a bulk request, a wire, and an orchestration that
 * a client or a rule starts. Nothing is signed before the approval, and a no refunds the profile to the last unit.
 */
import { afterAll, describe, expect, test } from 'vitest'
import { addTestApprover, decideAs, type TestApprover } from '../../../test/approvers.ts'
import { setPolicy } from '../../../test/policies.ts'
import {
  fund,
  MASTER_KEYS,
  newCustomer,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { runOrchestrations } from '../../resources/orchestrations/run-orchestrations.ts'
import { verify } from '../../money/verify/verify.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'
import type { ApprovalDecision } from '../../contract/approval.ts'
import { signOnlyAccepted } from './sign-only-accepted.ts'

const macs = new RowMacs(MASTER_KEYS)
const service = await ownTestService()
afterAll(async () => expect((await verify(service.db, { macs })).disagreements).toEqual([]))

interface World {
  customer: TestCustomer
  ada: TestApprover
  /** The same person as the customer's client. */
  client: TestApprover
}

/** A customer of whom each payment needs an approver. */
async function newWorld(): Promise<World> {
  const customer = await newCustomer(service)
  const { customer_id, client_id } = customer
  await setPolicy(service.db, customer_id, { rules: [{ id: 'all', action: 'APPROVE', approvals: 1 }] })
  return {
    customer,
    ada: await addTestApprover(service.owner, customer_id),
    client: await addTestApprover(service.owner, customer_id, { client_id }),
  }
}

/** Runs the worker until nothing changes any more. */
async function work(): Promise<void> {
  const networks = new Map([...service.networks].map(([name, one]) => [name, signOnlyAccepted(one, macs)]))
  for (let round = 1; round <= 5; round++) {
    await service.db.query(
      'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
    )
    await runOrchestrations(service.db, { ...service, macs, govern: service.ledger.govern })
    await settleWithdrawals(service.db, networks)
  }
}

interface Paid {
  id: string
  status: string
  secondary_status?: { name: string }
  status_details?: { pending_customer_approval?: { approval_id: string } }
}

/** The customer's payments that left, or are to leave, newest first. */
async function payments({ customer }: World): Promise<Paid[]> {
  const query = 'type=CRYPTO_WITHDRAWAL&type=WIRE_WITHDRAWAL'
  const answer = await customer.call<{ items: Paid[] }>('GET', `/v2/transfer/transfers?${query}`)
  expect(answer.status).toBe(200)
  return answer.body.items
}

async function balances({ customer: { call, profile_id } }: World) {
  const { body } = await call<{ items: { asset: string; available: string }[] }>(
    'GET',
    `/v2/profiles/${profile_id}/balances`,
  )
  return new Map(body.items.map(({ asset, available }) => [asset, available]))
}

const decide = (
  { customer: { customer_id } }: World,
  id: string,
  by: TestApprover,
  decision: ApprovalDecision,
) => decideAs(service.db, customer_id, id, by, decision)

/** The signed bytes that the networks have of these payments. */
async function signed(ids: string[]): Promise<number> {
  const { rows } = await service.db.query<{ count: number }>(
    `
    select (select count(*)::int from simulated_chain
            where exists (select from unnest($1::text[]) id
                          where position(convert_to(id, 'UTF8') in raw_transaction) > 0))
         + (select count(*)::int from outgoing_transfers
            where transfer_id = any ($1::uuid[]) and raw_transaction is not null) as count`,
    [ids],
  )
  return rows[0]!.count
}

const ADDRESS = '0x52908400098527886E0F7030069857D2E4169EE7'
const ORCHESTRATION = {
  source_asset: 'USD',
  destination_asset: 'USDG',
  destination: { crypto: { network: 'ETHEREUM', address: ADDRESS } },
}

/** Takes 100 USD from the customer's profile, in one or more payments. */
const WAYS: Record<string, (world: World) => Promise<unknown>> = {
  'a withdrawal': ({ customer }) =>
    customer.call(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, { amount: undefined, total: '100' }),
    ),
  'a bulk request': ({ customer }) =>
    customer.call('POST', '/v2/transfer/crypto-withdrawals/bulk', {
      withdrawals: ['one', 'two', 'three', 'four'].map((ref_id) =>
        withdrawalOf(customer, { amount: undefined, total: '25', ref_id }),
      ),
    }),
  'a wire': async ({ customer }) => {
    const { body } = await customer.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
      fiat_account_owner: { institution_details: { name: 'Acme' } },
      fiat_network_instructions: { wire: { account_number: '000987654321' } },
    })
    return customer.call('POST', '/v2/transfer/fiat-withdrawals', {
      profile_id: customer.profile_id,
      asset: 'USD',
      total: '100',
      fiat_account_id: body.id,
    })
  },
  'an orchestration of a client': ({ customer }) =>
    customer.call('POST', '/v2/orchestration/orchestrations', {
      ...ORCHESTRATION,
      ref_id: 'one',
      source_amount: '100',
      source: { profile: { profile_id: customer.profile_id } },
    }),
}

describe.each([...Object.keys(WAYS), 'an orchestration of a rule'])('%s', (way) => {
  /** Starts the payments of this way, which take all 100 USD of the profile, and has the worker try to pay them. */
  async function waiting() {
    const world = await newWorld()
    const { customer } = world
    const start = WAYS[way]
    if (start === undefined) {
      const { profile_id } = customer
      const rule = { ...ORCHESTRATION, ref_id: 'rule', profile_id, source: { profile: { profile_id } } }
      expect(await customer.call('POST', '/v2/orchestration/rules', rule)).toMatchObject({ status: 200 })
    }
    await fund(customer, '100')
    if (start !== undefined) expect(await start(world)).toMatchObject({ status: 200 })
    await work()
    const made = await payments(world)
    expect(made.length).toBe(way === 'a bulk request' ? 4 : 1)
    for (const one of made)
      expect(one).toMatchObject({
        status: 'PENDING',
        secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL' },
      })
    expect((await balances(world)).get('USD')).toBe('0')
    const ids = made.map(({ id }) => id)
    expect(await signed(ids)).toBe(0)
    return {
      world,
      ids,
      approvals: made.map((one) => one.status_details!.pending_customer_approval!.approval_id),
    }
  }

  test('is paid after its approval, and not before; who started it cannot approve it', async () => {
    const { world, ids, approvals } = await waiting()
    for (const approval of approvals) {
      await expect(decide(world, approval, world.client, 'APPROVE')).rejects.toMatchObject({
        slug: 'forbidden',
        detail: expect.stringContaining('the initiator cannot decide') as string,
      })
      await work()
      const before = await signed(ids)
      expect(await decide(world, approval, world.ada, 'APPROVE')).toMatchObject({ status: 'APPROVED' })
      await work()
      expect(await signed(ids)).toBeGreaterThan(before)
    }
    for (const one of await payments(world)) expect(one).toMatchObject({ status: 'COMPLETED' })
    expect((await balances(world)).get('USD')).toBe('0')
  })

  test('is refunded to the last unit after a no', async () => {
    const { world, ids, approvals } = await waiting()
    for (const approval of approvals)
      expect(await decide(world, approval, world.ada, 'REJECT')).toMatchObject({ status: 'REJECTED' })
    await work()
    const ended = await payments(world)
    expect(ended.map(({ id }) => id)).toEqual(ids)
    for (const one of ended)
      expect(one).toMatchObject({ status: 'FAILED', secondary_status: { name: 'CUSTOMER_REJECTED' } })
    expect(await signed(ids)).toBe(0)
    const left = [...(await balances(world))].filter(([, available]) => available !== '0')
    expect(left).toEqual([['USD', '100']])
  })
})
