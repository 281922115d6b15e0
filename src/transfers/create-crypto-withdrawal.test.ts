import { afterAll, beforeAll, expect, test } from 'vitest'
import { magicAddress } from '../networks/simulated/magic-addresses.ts'
import {
  atEnd,
  credit,
  fund,
  newCustomer,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from '../../test/support.ts'

let service: TestService
let customer: TestCustomer

beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
  await fund(customer, '1000')
})
afterAll(() => service.close())

const URL = '/v2/transfer/crypto-withdrawals'

test('the answered record is the stored record', async () => {
  const body = withdrawalOf(customer, {
    ref_id: 'kept',
    amount: '10.50',
    metadata: { order: '17' },
    memo: 'hello',
    beneficiary: { person_details: { first_name: 'Ada', last_name: 'Lovelace' } },
  })
  const created = await customer.call('POST', URL, body)
  expect(created.status).toBe(200)
  expect(created.body).toMatchObject({
    amount: '10.5',
    fee: '1',
    total: '11.5',
    direction: 'DEBIT',
    type: 'CRYPTO_WITHDRAWAL',
    status: 'PENDING',
    notional_value: '11.5',
    metadata: { order: '17' },
    memo: 'hello',
    auto_conversion: {},
  })
  const read = await customer.call('GET', `/v2/transfer/transfers/${String(created.body.id)}`)
  expect(read.body).toEqual(created.body)
})

test('a memo on STELLAR has at most 28 bytes (not characters), the limit of its transactions', async () => {
  await credit(service.ledger, customer, 'XLM', '100')
  const order = (memo: string) =>
    customer.call(
      'POST',
      URL,
      withdrawalOf(customer, {
        asset: 'XLM',
        balance_asset: 'XLM',
        amount: '2',
        crypto_network: 'STELLAR',
        destination_address: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
        memo,
      }),
    )
  for (const memo of ['x'.repeat(28), 'ü'.repeat(14)])
    expect(await order(memo)).toMatchObject({ status: 200, body: { memo } })
  for (const memo of ['x'.repeat(29), `${'ü'.repeat(14)}x`])
    expect(await order(memo)).toMatchObject({
      status: 400,
      body: { detail: 'memo is longer than the 28 bytes that STELLAR carries' },
    })
  // Another network accepts it.
  expect((await customer.call('POST', URL, withdrawalOf(customer, { memo: 'x'.repeat(29) }))).status).toBe(
    200,
  )
})

test("in live mode the sandbox's magic addresses are refused: they have no private keys", async () => {
  const live = await startTestService({ BURSAR_MODE: 'live' })
  atEnd(() => live.close())
  const own = await newCustomer(live)
  for (const [crypto_network, asset] of [
    ['ETHEREUM', 'ETH'],
    ['BITCOIN', 'BTC'],
    ['SOLANA', 'SOL'],
  ] as const) {
    const destination_address = magicAddress(crypto_network, 'NEVER_CONFIRMS')!
    const body = withdrawalOf(own, { asset, balance_asset: asset, crypto_network, destination_address })
    expect(await own.call('POST', URL, body)).toMatchObject({
      status: 400,
      body: {
        type: expect.stringMatching(/unsupported-address$/) as string,
        detail:
          'destination_address cannot be paid: it is a magic address of the sandbox, for which no private key exists',
        meta: { destination_address, crypto_network },
      },
    })
  }
})
