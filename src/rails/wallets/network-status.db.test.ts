import { originOfLoop } from '../../contract/actor.ts'
import { expect, test } from 'vitest'
import { credit, newCustomer, ownTestService } from '../../../test/support.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { deposit } from '../../money/movements/deposit.ts'
import { judgeNetwork } from './configured-networks.ts'
import { networkReports, type Reported } from './network-status.ts'
import type { NetworkStatus } from '../../networks/wallet-status.ts'

const service = await ownTestService()

/** A network whose node answers this status, or fails with this error. */
const network = (status: NetworkStatus | Error, low?: string): Reported => ({
  adapter: {
    ...service.networks.get('LITECOIN')!,
    ...(low !== undefined && { treasury: { marks: { LTC: { low } }, cold: [] } }),
    status: async () => {
      if (status instanceof Error) throw status
      return status
    },
  },
  confirmations: 6,
})
const report = async (status: NetworkStatus | Error, lowMark?: string) =>
  (await networkReports(service.db, new Map([['LITECOIN', network(status, lowMark)]])))[0]!

test('custody is the sum over all customers, and the difference is exact', async () => {
  for (const minor of [150_000_000n, 7n]) {
    const { customer_id, profile_id } = await newCustomer(service)
    await service.ledger.submit(
      customer_id,
      deposit(
        customer_id,
        {
          profile_id,
          type: 'CRYPTO_DEPOSIT',
          asset: 'LTC',
          minor,
          arrivedAt: 'custody:LITECOIN',
          place: { id: crypto.randomUUID() },
          record: { crypto_network: 'LITECOIN' },
        },
        originOfLoop('test'),
      ),
    )
  }
  const custody = async (held: string) => (await report({ height: 1, held: { LTC: held } })).custody
  const about = { asset: 'LTC', in_custody: '1.50000007' }
  expect(await custody('1.50000007')).toEqual([
    { ...about, held: '1.50000007', difference: '0', short: false },
  ])
  expect(await custody('1.50000006')).toEqual([
    { ...about, held: '1.50000006', difference: '-0.00000001', short: true },
  ])
  expect(await custody('2')).toEqual([
    { ...about, held: '2', difference: '0.49999993', unexplained: '0.49999993', short: false },
  ])
  // An asset that the node does not report counts as missing in full.
  expect((await report({ height: 1, held: {} })).custody).toEqual([
    { ...about, held: '0', difference: '-1.50000007', short: true },
  ])
})

test('the report has the figures of the ledger when the node does not answer', async () => {
  expect(await report(new Error('the node is away'), '1')).toMatchObject({
    reachable: false,
    error: 'the node is away',
    custody: [{ asset: 'LTC', held: '?', in_custody: '1.50000007', difference: '?' }],
    below_low_mark: false,
  })
})

test.each([
  ['1.99999999', true],
  ['2', false],
  ['2.00000001', false],
])('with %s and a low mark of 2, below_low_mark is %s', async (held, below) => {
  expect((await report({ height: 1, held: { LTC: held } }, '2.0')).below_low_mark).toBe(below)
  expect((await report({ height: 1, held: { LTC: held } })).below_low_mark).toBe(false)
  // Deposits that are not yet swept to the hot wallet cannot pay withdrawals.
  const swept = { height: 1, held: { LTC: '100' }, hotWallet: { LTC: held } }
  expect(await report(swept, '2.0')).toMatchObject({
    below_low_mark: below,
    custody: [{ held: '100', hot_wallet: held }],
  })
})

test('waiting withdrawals are counted by reason with their earliest time, longest wait first', async () => {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'LTC', '10')
  const ids: string[] = []
  for (let order = 0; order < 4; order++) {
    const { status, body } = await customer.call<{ id: string }>('POST', '/v2/transfer/crypto-withdrawals', {
      profile_id: customer.profile_id,
      asset: 'LTC',
      amount: '1',
      crypto_network: 'LITECOIN',
      destination_address: 'mkHS9ne12qx9pS9VojpwU5xtRd4T7X7ZUt',
    })
    expect({ status, body }).toMatchObject({ status: 200 })
    ids.push(body.id)
  }
  await service.db.query(
    `
    insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at, due_at, waiting_code,
                                    waiting_detail, waiting_since)
    select $1, id, 'LITECOIN', state, now(), now(), code, lower(code), since
    from unnest($2::uuid[], '{HELD,HELD,HELD,DONE}'::text[], '{HOT_WALLET_SHORT,FEE_ABOVE_CEILING,HOT_WALLET_SHORT,null}'::text[],
                '{2026-01-03T00:00:00Z,2026-01-02T00:00:00Z,2026-01-01T00:00:00Z,null}'::timestamptz[])
      as b (id, state, code, since)`,
    [customer.customer_id, ids],
  )
  expect(await report({ height: 5, held: { LTC: '0' } })).toMatchObject({
    height: 5,
    in_flight: { HELD: 3 },
    waiting: [
      {
        code: 'HOT_WALLET_SHORT',
        detail: 'hot_wallet_short',
        count: 2,
        since: '2026-01-01T00:00:00.000000Z',
      },
      {
        code: 'FEE_ABOVE_CEILING',
        detail: 'fee_above_ceiling',
        count: 1,
        since: '2026-01-02T00:00:00.000000Z',
      },
    ],
  })
})

test('what waits for the signer process is counted, with the age of the first', async () => {
  const { customer_id } = await newCustomer(service)
  await service.db.query(
    `
    insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at, signed_at, due_at, crypto_tx_hash)
    select $1, gen_random_uuid(), 'BASE', state, now() - interval '1 day', now() - make_interval(secs => age), now(), age::text
    from (values ('ASKED', 100), ('ASKED', 400), ('SIGNED', 900)) as b (state, age)`,
    [customer_id],
  )
  const status = { height: 1, held: {}, signer: { reachable: false, error: 'it is away' } }
  const [found] = await networkReports(service.db, new Map([['BASE', network(status)]]))
  expect(found).toMatchObject({ in_flight: { ASKED: 2, SIGNED: 1 }, signer: status.signer })
  expect(found!.asked).toEqual({ count: 2, oldest_seconds: expect.closeTo(400, -1) as number })
  expect(judgeNetwork(found!)).toMatchObject({ result: 'FAIL', says: 'BASE: it is away' })
  expect(judgeNetwork({ ...found!, signer: { reachable: true } })).toMatchObject({
    result: 'WARN',
    says: expect.stringMatching(
      /^BASE: 2 withdrawals wait for the signer process, the first for 4\d\d/,
    ) as string,
  })
  expect(
    judgeNetwork({ ...found!, signer: { reachable: true }, asked: { count: 1, oldest_seconds: 299 } }),
  ).toMatchObject({
    result: 'OK',
  })
  await service.owner.query(`delete from outgoing_transfers where network = 'BASE'`)
})

test('the oldest payment that no block has is named after an hour', async () => {
  const { customer_id } = await newCustomer(service)
  const stuck = async () =>
    (await networkReports(service.db, new Map([['BITCOIN_CASH', network({ height: 1, held: {} })]])))[0]!
      .stuck
  await service.db.query(
    `
    insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at, signed_at, confirmations, due_at, crypto_tx_hash)
    select $1, gen_random_uuid(), 'BITCOIN_CASH', state, now() - interval '1 day', now() - make_interval(secs => age), seen, due, hash
    from (values ('BROADCAST', 3500, null, now(), 'young'), ('SIGNED', 4000, null, now(), 'refused'),
                 ('BROADCAST', 9000, 1, now(), 'mined'), ('DONE', 9500, null, null, 'done')) as b (state, age, seen, due, hash)`,
    [customer_id],
  )
  expect(await stuck()).toMatchObject({
    crypto_tx_hash: 'refused',
    seconds: expect.closeTo(4000, -2) as number,
  })
  await service.owner.query(`delete from outgoing_transfers where network = 'BITCOIN_CASH'`)
  expect(await stuck()).toBeUndefined()
})

test('a signed withdrawal may have left with its fee before it is posted, which is no shortage', async () => {
  const short = async (held: string) => (await report({ height: 1, held: { LTC: held } })).custody[0]!.short
  expect(await short('0.5')).toBe(true)
  await service.db.query(`
    update outgoing_transfers set state = 'BROADCAST', raw_transaction = '', crypto_tx_hash = '', waiting_code = null,
                                  waiting_detail = null, waiting_since = null
    where transfer_id = (select transfer_id from outgoing_transfers where state = 'HELD' limit 1)`)
  // 1 LTC of 1.50000007 LTC is signed.
  const { fee } = findAsset('LTC')!.networks.LITECOIN!
  const least = 50_000_007n - parseAmount(fee, 8)!
  expect(await short(formatAmount(least, 8))).toBe(false)
  expect(await short(formatAmount(least - 1n, 8))).toBe(true)
})
