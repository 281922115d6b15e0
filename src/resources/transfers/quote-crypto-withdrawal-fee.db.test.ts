import { describe, expect, test } from 'vitest'
import {
  DESTINATION,
  fund,
  newCustomer,
  ROW_MACS,
  withdrawalOf,
  ownTestService,
} from '../../../test/support.ts'
import { verify } from '../../money/verify/verify.ts'
import { OPEN_QUOTES_MAX } from './quote-crypto-withdrawal-fee.ts'
import { deleteExpiredQuotes, deleteUsedQuotes } from '../../money/records/fee-quotes.ts'

const QUOTE = {
  asset: 'USDP',
  crypto_network: 'ETHEREUM',
  destination_address: DESTINATION,
  amount: '25',
}

/** Inserts quotes as the operation does. They expire after the given seconds; `used` quotes belong to a withdrawal. */
const INSERT = `
  insert into fee_quotes (customer_id, id, created_at, expires_at, asset, crypto_network, destination_address, fee, amount,
                          transfer_id)
  select $1, gen_random_uuid(), now(), now() + make_interval(secs => $2), 'USDP', 'ETHEREUM', 'x', 1, 1,
         case when $3 then gen_random_uuid() end
  from generate_series(1, $4::integer)`

describe('Create Crypto Withdrawal Fee', () => {
  test("open quotes per customer are limited; used and expired quotes do not count, nor other customers' quotes", async () => {
    const service = await ownTestService()
    const { db } = service
    const [one, two] = [await newCustomer(service), await newCustomer(service)]
    await db.query(INSERT, [one.customer_id, 300, false, OPEN_QUOTES_MAX - 1])
    await db.query(INSERT, [one.customer_id, 300, true, 50])
    await db.query(INSERT, [one.customer_id, -1, false, 50])
    const ask = ({ call }: typeof one) => call('POST', '/v2/transfer/fees/crypto-withdrawal', QUOTE)
    expect((await ask(one)).status).toBe(200)
    expect(await ask(one)).toMatchObject({
      status: 429,
      headers: { 'retry-after': '300' },
      body: {
        detail: 'the customer has 1000 unused fee quotes; use them, or wait until they expire',
      },
    })
    expect((await ask(two)).status).toBe(200)
  })

  test('only quotes that expired unused more than an hour ago, or used 30 days ago, are deleted', async () => {
    const service = await ownTestService()
    const { db } = service
    const { customer_id } = await newCustomer(service)
    for (const [seconds, used] of [
      [-3_660, false],
      [-3_540, false],
      [-90_000, true],
      [-31 * 86_400, true],
      [300, false],
    ] as const)
      await db.query(INSERT, [customer_id, seconds, used, 2])
    expect(await deleteExpiredQuotes(db, 1)).toBe(1)
    expect(await deleteExpiredQuotes(db, 10)).toBe(1)
    expect(await deleteExpiredQuotes(db, 10)).toBe(0)
    expect(await deleteUsedQuotes(db, 10)).toBe(2)
    expect(await deleteUsedQuotes(db, 10)).toBe(0)
    const { rows } = await db.query('select count(*)::integer as left from fee_quotes')
    expect(rows).toEqual([{ left: 6 }])
  })

  test.each([
    ['negative', '-1000'],
    ['nothing', '0'],
    ['no number', "'NaN'"],
  ])("a quote of the service's role whose fee is %s does not exist", async (_, fee) => {
    const service = await ownTestService()
    const customer = await newCustomer(service)
    await fund(customer, '100')
    const { body } = await customer.call<{ id: string }>('POST', '/v2/transfer/fees/crypto-withdrawal', QUOTE)
    const { rows } = await service.db.query<{ id: string }>(
      `insert into fee_quotes (customer_id, id, created_at, expires_at, asset, crypto_network, destination_address, fee, amount,
                               sealed_at, mac)
       select customer_id, gen_random_uuid(), created_at, expires_at, asset, crypto_network, destination_address, ${fee}, amount,
              sealed_at, mac
       from fee_quotes where id = $1 returning id`,
      [body.id],
    )
    const withdraw = (fee_id: string) =>
      customer.call(
        'POST',
        '/v2/transfer/crypto-withdrawals',
        withdrawalOf(customer, { amount: '25', fee_id }),
      )
    expect((await verify(service.db, { rowMacs: ROW_MACS })).disagreements.map(({ rule }) => rule)).toEqual([
      'every row of fee_quotes matches its MAC',
    ])
    expect((await withdraw(rows[0]!.id)).status).toBe(404)
    expect((await withdraw(body.id)).status).toBe(200)
  })
})
