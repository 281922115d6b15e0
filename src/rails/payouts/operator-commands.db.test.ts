/*
 * What an operator's command does to money that moves is in the audit log, once, with the user who gave the command. These are
 * the commands that need a node or a hot wallet: the node here agrees. `test/audit-commands.db.test.ts` walks over the others.
 */
import { afterAll, expect, test } from 'vitest'
import { credit, MASTER_KEYS, newCustomer, withdraw, ownTestService } from '../../../test/support.ts'
import { networksWith as changed, readTransfer } from '../../../test/payouts.ts'
import { settle } from '../../../test/work-off.ts'
import type { Origin } from '../../contract/actor.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { addressFromBytes } from '../../contract/addresses/addresses.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import { verifyAuditChains } from '../../money/verify/audit-chains.ts'
import { verify } from '../../money/verify/verify.ts'
import { cancelForOperator } from './cancel-withdrawal.ts'
import { markWithdrawalPaid } from './mark-withdrawal-paid.ts'
import { creditSaidDeposit, rescanDeposits } from '../deposits/recover-deposits.ts'
import { resendWithdrawal } from './resend-withdrawal.ts'
import { resolveWithdrawal } from './resolve-withdrawal.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'
import { cancelTreasuryTransfer, orderConsolidation, orderTreasurySend } from '../treasury/orders.ts'
import { signOnlyAccepted } from './sign-only-accepted.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
await credit(service.ledger, customer, 'ETH', '100')
afterAll(async () => {
  // The transaction of `withdrawal mark-paid` is invented: its bytes pay nothing.
  const invented = 'every signed transaction pays its withdrawal'
  const { disagreements } = await verify(service.db)
  expect(disagreements.filter(({ rule }) => rule !== invented)).toEqual([])
  expect((await verifyAuditChains(service.db)).faults).toEqual([])
})

const SAID_BY = 'grace'
const ORIGIN: Origin = { actor: { type: 'COMMAND_LINE', id: SAID_BY } }
const addressOf = (text: string) => addressFromBytes('ETHEREUM', Buffer.from(text.padEnd(32)))

/** ETHEREUM as the sandbox simulates it, with this change. */
const adapterWith = (change: Partial<NetworkAdapter>): NetworkAdapter => ({
  ...service.networks.get('ETHEREUM')!,
  ...change,
})
const networksWith = (change: Partial<NetworkAdapter>) => changed(service.networks, change)

interface Recorded {
  customer_id: string
  action: string
  subject_id: string
}

/** Runs a command, and returns what it has recorded. */
async function recordedBy(command: () => Promise<unknown>): Promise<Recorded[]> {
  const select = async () => {
    const { rows } = await service.db.query<Recorded & { id: string }>(
      `select id, customer_id, action, coalesce(subject_id, subject_ids[1]::text) as subject_id
       from audit_log where actor_type = 'COMMAND_LINE' and actor_id = $1 and outcome = 'DONE'
       order by id`,
      [SAID_BY],
    )
    return rows
  }
  const before = await select()
  await command()
  return (await select()).slice(before.length).map(({ id: _, ...row }) => row)
}

/** The record of a command for a record of the customer, or of the platform. */
const only = (action: string, subject_id: string, customer_id = customer.customer_id) => [
  { customer_id, action, subject_id },
]

const ordered = () => withdraw(customer, { asset: 'ETH', balance_asset: 'ETH', amount: '1' })
const statusOf = async (made: Transfer) => (await readTransfer(customer, made)).status

test('withdrawal cancel', async () => {
  const { id } = await ordered()
  expect(await recordedBy(() => cancelForOperator(service.db, id, ORIGIN))).toEqual(
    only('transfer.cancel', id),
  )
  expect(await recordedBy(() => cancelForOperator(service.db, id, ORIGIN))).toEqual([])
})

test('withdrawal mark-paid, and withdrawal resend once it is completed', async () => {
  const made = await ordered()
  const hash = 'ab'.repeat(32)
  const paid = { raw_transaction: Buffer.from('signed elsewhere'), crypto_tx_hash: hash }
  const resent: string[] = []
  const networks = networksWith({
    claimTransaction: async () => paid,
    broadcast: async (sent) => sent.map(() => ({ accepted: true })),
    checkStatus: async (sent) => sent.map(() => ({ state: 'CONFIRMED', crypto_tx_index: '0' })),
    resend: async ({ crypto_tx_hash }) => void resent.push(crypto_tx_hash),
  })
  await service.db.query(
    `insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at)
     values ($1, $2, 'ETHEREUM', 'HELD', now())`,
    [customer.customer_id, made.id],
  )
  const mark = () => markWithdrawalPaid(service.db, networks, made.id, hash, ORIGIN)
  expect(await recordedBy(mark)).toEqual(only('transfer.mark_paid', made.id))
  expect(await recordedBy(mark)).toEqual([])
  const resend = () => resendWithdrawal(service.db, networks, made.id, ORIGIN)
  expect(await recordedBy(() => expect(resend()).rejects.toThrow('is PENDING'))).toEqual([])
  await settle({ db: service.db, networks }, 3)
  expect(await statusOf(made)).toBe('COMPLETED')
  expect(await recordedBy(resend)).toEqual(only('transfer.resend', made.id))
  expect(resent).toEqual([hash])
})

test.each([
  ['PAID', 'COMPLETED'],
  ['NOT_PAID', 'FAILED'],
] as const)('withdrawal resolve: %s', async (outcome, ends) => {
  const made = await ordered()
  const networks = networksWith({
    checkStatus: async (asked) =>
      asked.map(() => ({
        state: 'UNRESOLVED',
        reason: { code: 'UNRESOLVED', detail: 'the receipt lacks the transfer' },
      })),
  })
  await settle({ db: service.db, networks }, 3)
  const resolve = () =>
    resolveWithdrawal(service.db, networks, made.id, {
      outcome,
      evidence: 'looked at the explorer',
      origin: ORIGIN,
    })
  expect(await recordedBy(resolve)).toEqual(only('transfer.resolve', made.id))
  expect(await statusOf(made)).toBe(ends)
  expect(await recordedBy(() => expect(resolve()).rejects.toThrow(`is ${ends} already`))).toEqual([])
})

test('treasury send, wallet consolidate and treasury cancel', async () => {
  const ordering = { db: service.db, macs: new RowMacs(MASTER_KEYS), origin: ORIGIN }
  const cold = addressOf('the cold storage')
  const adapter = adapterWith({
    status: async () => ({ held: { ETH: '50' } }) as never,
    planConsolidation: async () => ({
      asset: 'ETH',
      ...{ amount: '3', destination_address: cold, max_fee_rate: '1' },
      ...{ coins: 2, fee_max: '0.1' },
    }),
  })
  const ids: string[] = []
  for (const order of [
    () =>
      orderTreasurySend(ordering, adapter, {
        ...{ network: 'ETHEREUM', asset: 'ETH', amount: '2' },
        ...{ destination_address: cold, reference: 'to cold storage' },
      }),
    () => orderConsolidation(ordering, adapter, 'ETHEREUM', undefined),
  ]) {
    const recorded = await recordedBy(async () => ids.push((await order()).transfer.id))
    expect(recorded).toEqual(only('transfer.order', ids.at(-1)!, PLATFORM_ID))
    // A repeat finds the first order.
    expect(await recordedBy(order)).toEqual([])
  }
  for (const id of ids) {
    const cancel = () => cancelTreasuryTransfer(service.db, id, ORIGIN)
    expect(await recordedBy(cancel)).toEqual(only('transfer.cancel', id, PLATFORM_ID))
    expect(await recordedBy(cancel)).toEqual([])
  }
  // A cancelled one posts no entries. Set back by the service's role, it is not signed all the same.
  const cancelled = `customer_id = '${PLATFORM_ID}' and status = 'FAILED'`
  const { rows } = await service.db.query<{ id: string; secondary_status: object }>(
    `select id, secondary_status from transfers where ${cancelled}`,
  )
  await service.db.query(
    `update transfers set status = 'PENDING', secondary_status = null where ${cancelled}`,
  )
  await service.db.query(
    `update outgoing_transfers set state = 'HELD', due_at = now() where customer_id = $1`,
    [PLATFORM_ID],
  )
  const real = { ...adapter, asksNode: true, signsAlone: true } as const
  const networks: Networks = new Map([['ETHEREUM', signOnlyAccepted(real, ordering.macs)]])
  await settleWithdrawals(service.db, networks)
  const held = await service.db.query(
    `select state, waiting_detail from outgoing_transfers where customer_id = $1`,
    [PLATFORM_ID],
  )
  const detail = 'not what was accepted: it was paid or cancelled before'
  expect(held.rows).toEqual(ids.map(() => ({ state: 'HELD', waiting_detail: detail })))
  for (const { id, secondary_status } of rows)
    await service.db.query(`update transfers set status = 'FAILED', secondary_status = $2 where id = $1`, [
      id,
      secondary_status,
    ])
  await service.db.query(
    `update outgoing_transfers set state = 'DONE', due_at = null, waiting_code = null, waiting_detail = null where customer_id = $1`,
    [PLATFORM_ID],
  )
})

test('deposits credit and deposits rescan', async () => {
  const { profile_id } = customer
  const { body } = await customer.call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
    profile_id,
    crypto_network: 'ETHEREUM',
  })
  const adapter = adapterWith({
    requireReceived: async () => undefined,
    scanBlocks: async () => [],
    scanDeposits: async () => ({ deposits: [], cursor: '1' }) as never,
  })
  const said = { crypto_tx_hash: 'cd'.repeat(32), address: body.address, asset: 'ETH', amount: '2' }
  const creditIt = () => creditSaidDeposit(service, 'ETHEREUM', adapter, said, ORIGIN)
  let made: Transfer | undefined
  const recorded = await recordedBy(async () => (made = await creditIt()))
  expect(recorded).toEqual(only('transfer.create', made!.id))
  expect(await recordedBy(() => expect(creditIt()).rejects.toThrow('before'))).toEqual([])
  const blocks = { from: 1n, to: 5n }
  expect(await recordedBy(() => rescanDeposits(service, 'ETHEREUM', adapter, blocks, ORIGIN))).toEqual(
    only('network.rescan', 'ETHEREUM', PLATFORM_ID),
  )
})
