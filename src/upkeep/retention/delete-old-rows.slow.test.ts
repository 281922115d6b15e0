/*
 * Rows are deleted by age, in batches, and only those that nothing needs any more. Ledger records stay: the service's role
 * may not delete them (src/db/privileges.slow.test.ts).
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { workOff } from '../../../test/work-off.ts'
import { fund, newCustomer, withdrawalOf, ownTestService } from '../../../test/support.ts'
import { verify } from '../../money/verify/verify.ts'
import { deleteOldRows, deleteOldSimulation } from './delete-old-rows.ts'

async function start() {
  const service = await ownTestService()
  return service
}

test('quotes are deleted in batches: one round deletes 10,000 of a kind at most, and says that there are more', async () => {
  const { db } = await start()
  const customer_id = randomUUID()
  await db.query("insert into customers (id, name, created_at) values ($1, 'Test', now())", [customer_id])
  const insert = (age: string, used: boolean, count: number) =>
    db.query(
      `insert into fee_quotes (customer_id, id, created_at, expires_at, asset, crypto_network, destination_address, fee,
                               amount, transfer_id)
       select $1, gen_random_uuid(), now(), now() - $2::interval, 'USDP', 'ETHEREUM', 'x', 1, 1,
              case when $3 then gen_random_uuid() end
       from generate_series(1, $4::integer)`,
      [customer_id, age, used, count],
    )
  await insert('61 minutes', false, 10_001)
  await insert('59 minutes', false, 1)
  await insert('31 days', true, 2)
  await insert('29 days', true, 3)
  expect(await deleteOldRows(db)).toEqual({ deleted: 10_002, more: true })
  expect(await deleteOldRows(db)).toEqual({ deleted: 1, more: false })
  const { rows } = await db.query('select count(*)::integer as left from fee_quotes')
  expect(rows).toEqual([{ left: 4 }])
})

test('a sight of a deposit is deleted 30 days after it ended; a PENDING one and the transfers are kept', async () => {
  const { db, owner } = await start()
  await owner.query(`
    insert into seen_deposits (customer_id, transfer_id, network, crypto_tx_hash, crypto_tx_index, address, block_number,
                               state, seen_at, ended_at)
    select gen_random_uuid(), gen_random_uuid(), 'BITCOIN', state || days, '0', 'x', 1, state, now() - days * interval '1 day',
           case when state <> 'PENDING' then now() - days * interval '1 day' end
    from unnest(array['PENDING', 'COMPLETED', 'FAILED']) as state, unnest(array[29, 31]) as days`)
  expect(await deleteOldRows(db)).toEqual({ deleted: 2, more: false })
  const { rows } = await db.query<{ hash: string }>(
    'select crypto_tx_hash as hash from seen_deposits order by 1',
  )
  expect(rows.map(({ hash }) => hash)).toEqual(['COMPLETED29', 'FAILED29', 'PENDING29', 'PENDING31'])
})

test('which trace a transfer belongs to is kept for 30 days', async () => {
  const { db, owner } = await start()
  await owner.query(`
    insert into traces (customer_id, transfer_id, created_at, traceparent)
    select gen_random_uuid(), gen_random_uuid(), now() - days * interval '1 day', days
    from unnest(array[29, 31]) as days`)
  expect(await deleteOldRows(db)).toEqual({ deleted: 1, more: false })
  expect((await db.query('select traceparent from traces')).rows).toEqual([{ traceparent: '29' }])
})

test('rows of a kind that the database does not delete keep those of other kinds from nothing', async () => {
  const { db, owner } = await start()
  await owner.query(`
    insert into seen_deposits (customer_id, transfer_id, network, crypto_tx_hash, crypto_tx_index, address, block_number,
                               state, seen_at, ended_at)
    values (gen_random_uuid(), gen_random_uuid(), 'BITCOIN', 'a', '0', 'x', 1, 'FAILED', now() - interval '31 days', now() - interval '31 days')`)
  // The first kinds are quotes.
  await owner.query('alter table fee_quotes rename to away')
  const names = ['deleteExpiredQuotes', 'deleteUsedQuotes']
  await expect(deleteOldRows(db)).rejects.toMatchObject({ errors: names.map((record) => ({ record })) })
  expect((await db.query('select from seen_deposits')).rowCount).toBe(0)
})

test('a simulated transaction is deleted after 30 days, unless its withdrawal or its deposit has not ended', async () => {
  const service = await start()
  const { db, owner } = service
  const customer = await newCustomer(service)
  await fund(customer, '1000')
  const pay = async (changes: Record<string, unknown> = {}) => {
    const { status } = await customer.call(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, changes),
    )
    expect(status).toBe(200)
  }
  const address = await customer.call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
    profile_id: customer.profile_id,
    crypto_network: 'ETHEREUM',
  })
  await pay()
  await pay({ destination_address: address.body.address })
  await workOff(
    service,
    async () =>
      void (await db.query('update outgoing_transfers set due_at = now() where due_at is not null')),
  )
  const hashes = async () => {
    const { rows } = await db.query<{ hash: string; arrives: boolean }>(
      'select hash, arrives from simulated_chain order by broadcast_at, hash',
    )
    return rows
  }
  const [paid, toUs] = await hashes()
  expect(await deleteOldSimulation(db)).toBe(0)
  await owner.query(`update simulated_chain set broadcast_at = now() - interval '31 days'`)

  // The deposit is not recorded yet.
  await owner.query('update simulated_chain set arrives = hash = $1', [toUs!.hash])
  // The withdrawal has not ended.
  const [state] = (
    await owner.query<{ state: string }>(
      `update outgoing_transfers set state = 'BROADCAST' where crypto_tx_hash = $1 returning state`,
      [paid!.hash],
    )
  ).rows
  expect(state).toEqual({ state: 'BROADCAST' })
  expect(await deleteOldSimulation(db)).toBe(0)
  expect(await hashes()).toHaveLength(2)

  await owner.query(
    `update outgoing_transfers set state = 'DONE'; update simulated_chain set arrives = false`,
  )
  expect(await deleteOldSimulation(db)).toBe(2)
  expect(await hashes()).toEqual([])
  // What is gone is not needed: nothing is paid or credited again.
  const transfers = async () => {
    const { rows } = await db.query<{ id: string; status: string }>(
      'select id, status from transfers order by id',
    )
    return rows
  }
  const before = await transfers()
  await workOff(service, async () => undefined)
  expect(await transfers()).toEqual(before)
  expect(await verify(db)).toMatchObject({ disagreements: [] })
})
