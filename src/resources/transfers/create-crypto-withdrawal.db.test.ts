import { describe, expect, test } from 'vitest'
import { magicAddress } from '../../networks/simulated/magic-addresses.ts'
import {
  credit,
  everyTable,
  fund,
  newCustomer,
  withdrawalOf,
  sharedTestService,
  ownTestService,
} from '../../../test/support.ts'
import { refusedWith } from '../../../test/matchers.ts'

const service = await sharedTestService()
const customer = await newCustomer(service)
await fund(customer, '1000')

const URL = '/v2/transfer/crypto-withdrawals'

describe('Create Crypto Withdrawal', () => {
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
    for (const memo of ['x'.repeat(28), 'ü'.repeat(14), 'id:42', `hash:${'0f'.repeat(32)}`])
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

  // The rules are tried one by one in destination-rules.test.ts.
  test('a destination that loses the money is refused at every entrance with the same words, and changes nothing', async () => {
    const issuer = 'GDQE7IXJ4HUHV6RQHIUPRJSEZE4DRS5WY577O2FY6YQ5LVWZ7JZTU2V5'
    const { profile_id } = customer
    for (const [network, asset, address, why] of [
      ['STELLAR', 'PYUSD', issuer, 'it is the issuer of PYUSD, which destroys what is sent to it'],
      ['ETHEREUM', 'USDP', `0x${'0'.repeat(40)}`, 'nobody has the key of the zero address'],
      [
        'ETHEREUM',
        'USDP',
        '0x8E870D67F660D95d5be530380D0eC0bd388289E1',
        'it is the contract of USDP, which keeps what is sent to it',
      ],
      [
        'SOLANA',
        'USDG',
        '2u1tszSeqZ3qBWF3uNGPFc8TzMk2tdiwknnRMWGWjGWH',
        'it is the mint of USDG, which keeps what is sent to it',
      ],
    ] as const) {
      const one = { profile_id, asset, crypto_network: network, destination_address: address, amount: '2' }
      const order = {
        ...{ ref_id: crypto.randomUUID(), source_asset: 'USD', destination_asset: asset },
        destination: { crypto: { address, network } },
      }
      const before = await everyTable(service.db)
      const answers = [
        await customer.call('POST', URL, one),
        await customer.call('POST', '/v2/transfer/fees/crypto-withdrawal', { ...one, profile_id: undefined }),
        await customer.call('POST', '/v2/orchestration/rules', {
          ...order,
          profile_id,
          source: { fiat: {} },
        }),
        await customer.call('POST', '/v2/orchestration/orchestrations', {
          ...order,
          source: { profile: { profile_id } },
          source_amount: '5',
        }),
      ]
      for (const { status, body } of answers) {
        expect(status).toBe(400)
        expect(body.detail).toContain(`cannot be paid: ${why}`)
      }
      expect(await everyTable(service.db)).toEqual(before)
    }
  })

  test('a memo that contradicts the address, or that a receiver cannot compare, is refused', async () => {
    const order = (changes: object) =>
      customer.call('POST', URL, {
        ...{ profile_id: customer.profile_id, asset: 'XLM', amount: '2', crypto_network: 'STELLAR' },
        ...changes,
      })
    const muxed = 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ'
    const plain = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
    for (const [destination_address, memo, why] of [
      [muxed, '123', 'memo cannot be sent to a multiplexed address (M...)'],
      [plain, '', 'memo is empty'],
      [plain, ' 3440566070 ', 'memo begins or ends with space'],
      [plain, '3440\u200b566070', 'memo must not hold the character U+200B'],
      [plain, 'ID:5', 'memo names a kind'],
    ] as const)
      expect(await order({ destination_address, memo })).toMatchObject(refusedWith(400, why))
    expect((await order({ destination_address: muxed })).status).toBe(200)
  })

  test('an address of BITCOIN_CASH that takes tokens is paid, and is one destination with its other spelling', async () => {
    await credit(service.ledger, customer, 'BCH', '1')
    const [tokens, plain] = [
      'zr7fzmep8g7h7ymfxy74lgc0v950j3r295z4y4gq0v',
      'qr7fzmep8g7h7ymfxy74lgc0v950j3r2959lhtxxsl',
    ]
    const at = (destination_address: string) => ({
      asset: 'BCH',
      crypto_network: 'BITCOIN_CASH',
      destination_address,
      amount: '0.01',
    })
    const { body: quote } = await customer.call('POST', '/v2/transfer/fees/crypto-withdrawal', at(plain))
    const order = { ...at(tokens), profile_id: customer.profile_id, fee_id: quote.id }
    expect(await customer.call('POST', URL, order)).toMatchObject({
      status: 200,
      body: { destination_address: tokens },
    })
  })

  test("in live mode the sandbox's magic addresses are refused: they have no private keys", async () => {
    const live = await ownTestService({ BURSAR_MODE: 'live' })
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
})
