/*
 * A withdrawal is signed or refunded, never both, whichever of worker and canceller comes first.
 * src/resources/transfers/cancel-transfer.db.test.ts tests what can be cancelled.
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  credit,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  type TestCustomer,
  withdraw,
  withdrawalOf,
  ownTestService,
} from '../../../test/support.ts'
import { availableOf, networksWith, onChain, readTransfer } from '../../../test/payouts.ts'
import { untilOneWaits } from '../../../test/cluster.ts'
import { hurryUnlocked, settle } from '../../../test/work-off.ts'
import { failuresIn, ReportedFailures } from '../../db/each-alone.ts'
import { type Database, openDatabase, tookTooLong, transaction } from '../../db/database.ts'
import { freeze, unfreeze } from '../../money/records/freezes.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { keepTransactions } from '../../networks/network-transactions.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import { NodeRefusal } from '../../networks/node-failure.ts'
import { CANCELLED_BY, cancelForOperator, NotCancellable } from './cancel-withdrawal.ts'
import type { WaitingReason } from '../../networks/waiting.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'
import { atEnd } from '../../../test/at-end.ts'
import { refusedWith } from '../../../test/matchers.ts'

const service = await ownTestService()

const requireClean = async () => expect((await verify(service.db)).disagreements).toEqual([])

test('the operator cancels no transfer that is not a withdrawal', async () => {
  const deposit = await credit(service.ledger, await newCustomer(service), 'USD', '100')
  for (const id of [deposit.id, randomUUID()])
    await expect(cancelForOperator(service.db, id, TEST_ORIGIN)).rejects.toThrow('there is no withdrawal')
})

test('a withdrawal whose own record lost its transaction is not cancelled', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100')
  const { id } = await withdraw(customer)
  await transaction(service.db, (tx) =>
    keepTransactions(tx, 'ETHEREUM', [
      {
        customer_id: customer.customer_id,
        transfer_id: id,
        crypto_tx_hash: '0xkept',
        raw_transaction: Buffer.from('kept'),
      },
    ]),
  )
  await expect(cancelForOperator(service.db, id, TEST_ORIGIN)).rejects.toThrow(
    `withdrawal ${id} is signed: it may be paid already`,
  )
  expect(await availableOf(customer)).not.toBe('100')
  await service.owner.query('delete from network_transactions')
  await cancelForOperator(service.db, id, TEST_ORIGIN)
  expect(await availableOf(customer)).toBe('100')
})

test('a withdrawal that may be paid by what the database has no record of is not cancelled', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100')
  const { id } = await withdraw(customer)
  const reasons = [
    { code: 'UNKNOWN_SPENDS', detail: 'the wallet has sent what is not on record' },
    {
      code: 'SIGNER_REFUSES',
      detail: `the signer refuses it: transfer ${id} was signed with nonce 5 of 0x1`,
    },
  ] as const
  const waits = (reason: WaitingReason) =>
    networksWith(service.networks, {
      sign: async (_tx, withdrawals) => withdrawals.map(() => ({ outcome: 'DEFERRED', reason })),
    })
  for (const reason of reasons) {
    await hurryUnlocked(service.db)
    await settleWithdrawals(service.db, waits(reason))
    await expect(cancelForOperator(service.db, id, TEST_ORIGIN)).rejects.toThrow('may be paid already')
  }
  await hurryUnlocked(service.db)
  await settleWithdrawals(service.db, waits({ code: 'SIGNER_REFUSES', detail: 'it is frozen' }))
  await cancelForOperator(service.db, id, TEST_ORIGIN)
  expect(await availableOf(customer)).toBe('100')
})

test('the orchestration of a cancelled withdrawal ends FAILED, with the money back', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100')
  const order = await customer.call<{ id: string; destination_transfer: { transfer_id: string } }>(
    'POST',
    '/v2/orchestration/orchestrations',
    {
      ref_id: 'order',
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '20',
      source: { profile: { profile_id: customer.profile_id } },
      destination: { crypto: { network: 'ETHEREUM', address: withdrawalOf(customer).destination_address } },
    },
  )
  expect(order).toMatchObject({ status: 200, body: { status: 'PROCESSING' } })
  await cancelForOperator(service.db, order.body.destination_transfer.transfer_id, TEST_ORIGIN)
  const { body } = await customer.call('GET', `/v2/orchestration/orchestrations/${order.body.id}`)
  expect(body).toMatchObject({
    status: 'FAILED',
    fail_reason: { detail: `the destination transfer failed: ${CANCELLED_BY.operator.detail}` },
  })
  expect(await availableOf(customer)).toBe('100')
  await requireClean()
})

describe('at the moment of signing', () => {
  const adapter = () => service.networks.get('ETHEREUM')!
  const withEthereum = (calls: Partial<NetworkAdapter>) => networksWith(service.networks, calls)
  /** The test runs for a real network, and for a network that is simulated in the database. */
  const KINDS: [string, Partial<NetworkAdapter>][] = [
    ['in the database', {}],
    ['over a node', { asksNode: true, signsAlone: true }],
  ]
  const told = (cancelling: Promise<unknown>) =>
    cancelling.then(
      () => 'cancelled',
      (error: unknown) => (error instanceof NotCancellable ? error.message : error),
    )

  test.each(
    KINDS.flatMap(([how, kind]) =>
      (['new', 'held'] as const).flatMap((state) =>
        [false, true].map((dies) => ({ how, kind, state, dies })),
      ),
    ),
  )('$how, one that is $state waits for the worker; which dies: $dies', async ({ kind, state, dies }) => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '100')
    const { id } = await withdraw(customer)
    const target = { kind: 'CUSTOMER', customer_id: customer.customer_id } as const
    if (state === 'held') {
      await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'a leak')
      await settle(service, 1)
      await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)
      await service.db.query(
        'update outgoing_transfers set due_at = (select clock_timestamp()) where transfer_id = $1',
        [id],
      )
    }
    let cancelling: Promise<unknown> | undefined
    const sign: NetworkAdapter['sign'] = async (tx, withdrawals) => {
      const signed = await adapter().sign(tx, withdrawals)
      await untilOneWaits(service.url, () => {
        cancelling ??= told(cancelForOperator(service.db, id, TEST_ORIGIN))
      })
      if (dies) throw new Error('the worker died here')
      return signed
    }
    const round = settleWithdrawals(service.db, withEthereum({ ...kind, sign }))
    await (dies ? expect(round).rejects.toThrow('steps of settlement failed') : round)
    expect(await cancelling).toBe(dies ? 'cancelled' : `withdrawal ${id} is signed: it may be paid already`)
    await settle(service)
    expect(await readTransfer(customer, { id })).toMatchObject({ status: dies ? 'FAILED' : 'COMPLETED' })
    expect(await onChain(service.db, id)).toBe(dies ? 0 : 1)
    expect((await availableOf(customer)) === '100').toBe(dies)
    await requireClean()
  })

  test.each(KINDS)('%s, a worker skips a withdrawal that is being cancelled', async (_, kind) => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '100')
    const { id } = await withdraw(customer)
    let cancelling: Promise<unknown> | undefined
    await transaction(service.db, async (tx) => {
      await tx.query('select from balances where customer_id = $1 for update', [customer.customer_id])
      await untilOneWaits(service.url, () => {
        cancelling = told(cancelForOperator(service.db, id, TEST_ORIGIN))
      })
      // The cancellation holds the withdrawal, and waits for the balance.
      expect(await settleWithdrawals(service.db, withEthereum(kind))).toBe(0)
    })
    expect(await cancelling).toBe('cancelled')
    await settle(service)
    expect([await availableOf(customer), await onChain(service.db, id)]).toEqual(['100', 0])
    await requireClean()
  })

  test('no withdrawal can be cancelled after the bytes of its shared transaction are recorded', async () => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '100')
    const ids: string[] = []
    for (let made = 0; made < 3; made++) ids.push((await withdraw(customer)).id)
    await cancelForOperator(service.db, ids[0]!, TEST_ORIGIN)
    let cancelling: Promise<unknown> | undefined
    const batches: string[][] = []
    const networks = withEthereum({
      asksNode: true,
      signsAlone: true,
      paysMany: 10,
      async sign(tx, withdrawals) {
        batches.push(withdrawals.map(({ transfer_id }) => transfer_id))
        await untilOneWaits(service.url, () => {
          cancelling = told(cancelForOperator(service.db, ids[1]!, TEST_ORIGIN))
        })
        const [signed] = await adapter().sign(tx, withdrawals)
        return withdrawals.map((_, index) => ({
          ...(signed as Extract<typeof signed, { outcome: 'SIGNED' }>),
          payments: withdrawals.length,
          crypto_tx_index: String(index),
        }))
      },
      broadcast: () => Promise.reject(new NodeRefusal('no')),
      checkStatus: async (withdrawals) => withdrawals.map(() => ({ state: 'UNKNOWN' })),
    })
    await settleWithdrawals(service.db, networks)
    const signed = (id: string) => `withdrawal ${id} is signed: it may be paid already`
    expect(batches).toEqual([ids.slice(1)])
    expect(await cancelling).toBe(signed(ids[1]!))
    expect(await told(cancelForOperator(service.db, ids[2]!, TEST_ORIGIN))).toBe(signed(ids[2]!))
    const { rows } = await service.db.query(
      `select state, raw_transaction, crypto_tx_hash is not null as kept from outgoing_transfers
       where transfer_id = any ($1)`,
      [ids.slice(1)],
    )
    const kept = { state: 'SIGNED', raw_transaction: null, kept: true }
    expect(rows).toEqual([kept, kept])
    // Ends the test: the simulated chain does not know the transaction, so no worker could settle these withdrawals.
    await service.owner.query('delete from network_transactions')
    await service.db.query('update outgoing_transfers set due_at = null where transfer_id = any ($1)', [ids])
  })
})

/** Asks again where a worker holds the withdrawal for too long. Returns whether that changed it, or why it was refused. */
async function cancelAsOperator(db: Database, id: string): Promise<unknown> {
  for (;;)
    try {
      return (await cancelForOperator(db, id, TEST_ORIGIN)).changed
    } catch (error) {
      if (!tookTooLong(error)) return error
    }
}

async function cancelAsClient(customer: TestCustomer, id: string) {
  for (;;) {
    const reply = await customer.call<Transfer>('POST', `/v2/transfer/transfers/${id}/cancel`)
    if (reply.status !== 503) return reply
  }
}

test('simultaneous cancelling and settling have one outcome for each withdrawal', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '10000')
  const ids: string[] = []
  for (let made = 0; made < 60; made++) ids.push((await withdraw(customer)).id)
  const before = Number(await availableOf(customer))
  // A connection for each that cancels: on a busy machine one would be waited for too long.
  const pools = [1, 2].map(() => openDatabase(service.url, { max: 32, onError: () => undefined }))
  for (const pool of pools) atEnd(() => pool.end())
  const overNode: Networks = new Map(
    [...service.networks].map(([network, adapter]) => [
      network,
      { ...adapter, asksNode: true, signsAlone: true },
    ]),
  )

  // Two reasons not to sign, so that some are cancelled while they are HELD.
  const target = { kind: 'CUSTOMER', customer_id: customer.customer_id } as const
  await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'a leak')

  let isOver = false
  const workers = pools.map(async (pool, index) => {
    while (!isOver) {
      await hurryUnlocked(pool)
      await settleWithdrawals(pool, index === 0 ? service.networks : overNode)
    }
  })
  // The first third meets the freeze, which ends after the first is cancelled, and the last third comes after a withdrawal
  // was signed. Both outcomes thus occur, however busy the machine.
  let cancelled = 0
  const [thawsAt, waitsFrom] = [ids.length / 3, (2 * ids.length) / 3]
  const signed = async () =>
    (
      await service.db.query(
        `select from outgoing_transfers where transfer_id = any ($1) and state in ('SIGNED', 'BROADCAST', 'DONE')
           and crypto_tx_hash is not null`,
        [ids],
      )
    ).rowCount
  const outcomes = await Promise.all(
    ids.map(async (id, index) => {
      await new Promise((resolve) => setTimeout(resolve, index * 5))
      if (index === thawsAt) {
        await expect.poll(() => cancelled, { timeout: 30_000 }).toBeGreaterThan(0)
        await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)
      }
      if (index >= waitsFrom) await expect.poll(signed, { timeout: 30_000 }).toBeGreaterThan(0)
      // The client and the operator cancel simultaneously.
      const [byOperator, byClient] = await Promise.all([
        cancelAsOperator(pools[index % 2]!, id),
        cancelAsClient(customer, id),
      ])
      if (byClient.status === 200) cancelled += 1
      return { byOperator, byClient }
    }),
  )
  isOver = true
  await Promise.all(workers)
  await settle(service, 10)

  let refunded = 0
  for (const [index, id] of ids.entries()) {
    const { status, secondary_status } = await readTransfer(customer, { id })
    const { byOperator, byClient } = outcomes[index]!
    const paid = await onChain(service.db, id)
    if (byClient.status === 200) {
      refunded += 1
      expect({ status, paid }).toEqual({ status: 'FAILED', paid: 0 })
      expect(secondary_status).toEqual(CANCELLED_BY[byOperator === true ? 'operator' : 'client'])
      expect(byClient.body.secondary_status).toEqual(secondary_status)
      expect({ byOperator }).toEqual({ byOperator: expect.any(Boolean) as boolean })
    } else {
      expect({ status, paid, answered: byClient.status }).toEqual({
        status: 'COMPLETED',
        paid: 1,
        answered: 409,
      })
      expect(byOperator).toBeInstanceOf(NotCancellable)
    }
  }
  expect(refunded).toBeGreaterThan(0)
  expect(refunded).toBeLessThan(ids.length)
  const { total } = await readTransfer(customer, { id: ids[0]! })
  expect(Number(await availableOf(customer))).toBeCloseTo(before + refunded * Number(total), 6)
  const { rows } = await service.db.query<{ most: number }>(
    `select max(count)::int as most from (
       select count(distinct event) from entries
       where customer_id = $1 and transfer_id = any ($2) and event in ('SETTLED', 'REFUNDED') group by transfer_id
     ) ends`,
    [customer.customer_id, ids],
  )
  expect(rows).toEqual([{ most: 1 }])
  await requireClean()
})

test('nothing is given back for a withdrawal that was inserted, nor more than was taken', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100')
  const created = await withdraw(customer)
  const cancel = (id: string) => customer.call('POST', `/v2/transfer/transfers/${id}/cancel`)
  const invented = randomUUID()
  const columns = (
    await service.owner.query<{ names: string }>(
      `select string_agg(attname, ', ') as names from pg_attribute
       where attrelid = 'transfers'::regclass and attnum > 0 and not attisdropped and attname not in ('id', 'ref_id')`,
    )
  ).rows[0]!.names
  await service.db.query(
    `insert into transfers (id, ${columns}) select $2, ${columns} from transfers where id = $1`,
    [created.id, invented],
  )
  const post = (id: string, position: number) =>
    service.db.query(
      `insert into entries (customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version, created_at)
       select customer_id, $2, event, $3 + position, account, profile_id, asset, amount, balance_after, version + 1000, created_at
       from entries where transfer_id = $1 and event = 'CREATED'`,
      [created.id, id, position],
    )
  await post(invented, 0)
  const before = await availableOf(customer)
  expect(await cancel(invented)).toMatchObject(refusedWith(503, 'is not what was accepted'))
  await post(created.id, 10)
  expect(await cancel(created.id)).toMatchObject(refusedWith(503, 'entries that its creation did not post'))
  expect(await availableOf(customer)).toBe(before)
})

test('a refund that cannot be posted is the failure of one record, which the worker reports once', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'USD', '100')
  const { id } = await withdraw(customer, {
    destination_address: '0x6275727361722073616E64626F78203031000000',
  })
  // As the service's role could: its refund is posted already.
  await service.db.query(
    `insert into entries (customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version, created_at)
     select customer_id, transfer_id, 'REFUNDED', position, account, profile_id, asset, amount, balance_after, version + 1000, created_at
     from entries where transfer_id = $1`,
    [id],
  )
  const reported = new ReportedFailures()
  const rounds: (string | undefined)[][] = []
  for (let round = 1; round <= 4; round++) {
    await hurryUnlocked(service.db)
    const { ofRecords, rest } = failuresIn(
      await settleWithdrawals(service.db, service.networks).catch((error: unknown) => error),
    )
    expect(rest instanceof Error ? rest : undefined).toBe(undefined)
    rounds.push(reported.add(ofRecords).map(({ record }) => record))
  }
  expect(rounds.flat()).toEqual([`customer ${customer.customer_id}`])
})
