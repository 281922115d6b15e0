/*
 * Invariants of a deposit to a profile:
 * 1. the balance includes the deposit when it is answered, and activity_id is its transfer;
 * 2. the profile gets the amount that the bank or custody account pays;
 * 3. a refused request changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { approve, entriesOf, newCustomer, ownTestService, newProfile } from '../../../test/support.ts'
import { ASSETS, CRYPTO_NETWORKS, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { DepositAddress } from '../../money/records/deposit-address.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { A_UUID, A_TIME } from '../../../test/matchers.ts'

const HASHES = {
  evm: /^0x[0-9a-f]{64}$/,
  bitcoin: /^[0-9a-f]{64}$/,
  stellar: /^[0-9a-f]{64}$/,
  solana: /^[1-9A-HJ-NP-Za-km-z]{86,88}$/,
}

const service = await ownTestService()
const customer = await newCustomer(service)
afterAll(async () => expect((await verify(service.db)).disagreements).toEqual([]))

const urlOf = (profile_id: string) => `/v2/sandbox/profiles/${profile_id}/deposit`

async function newAddress(profile_id: string, changes: object = {}): Promise<DepositAddress> {
  const answer = await customer.call<DepositAddress>('POST', '/v2/transfer/deposit-addresses', {
    profile_id,
    crypto_network: 'ETHEREUM',
    ...changes,
  })
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

/** Deposits, and reads the resulting transfer. */
async function deposited(profile_id: string, body: object): Promise<Transfer> {
  const answer = await customer.call('POST', urlOf(profile_id), body)
  expect(answer).toMatchObject({ status: 200, body: { activity_id: A_UUID } })
  const read = await customer.call<Transfer>(
    'GET',
    `/v2/transfer/transfers/${String(answer.body.activity_id)}`,
  )
  expect(read.status).toBe(200)
  return read.body
}

/** Reads a profile's balances, by asset. */
async function balances(profile_id: string): Promise<Record<string, string>> {
  const { body } = await customer.call<{ items: { asset: string; available: string }[] }>(
    'GET',
    `/v2/profiles/${profile_id}/balances`,
  )
  return Object.fromEntries(body.items.map(({ asset, available }) => [asset, available]))
}

/** The common fields of every deposit's record. */
const recordOf = (profile_id: string, asset: string, amount: string) => ({
  id: A_UUID,
  customer_id: customer.customer_id,
  profile_id,
  direction: 'CREDIT',
  status: 'COMPLETED',
  asset,
  balance_asset: asset,
  amount,
  fee: '0',
  total: amount,
  created_at: A_TIME,
  updated_at: A_TIME,
})

describe('Deposit To Sandbox Profile', () => {
  describe('a deposit of', () => {
    test.each(ASSETS.filter(({ kind }) => kind === 'fiat').map(({ symbol }) => symbol))(
      '%s arrives by wire, from the bank',
      async (asset) => {
        const profile_id = await newProfile(customer)
        const transfer = await deposited(profile_id, { asset, amount: '10.50' })
        expect(transfer).toEqual({ ...recordOf(profile_id, asset, '10.5'), type: 'WIRE_DEPOSIT' })
        expect(await entriesOf(service.db, transfer.id)).toEqual([
          `CREATED bank ${asset} -10.5`,
          `CREATED profile ${asset} 10.5`,
        ])
        expect(await balances(profile_id)).toEqual({ [asset]: '10.5' })
      },
    )

    test.each(
      ASSETS.flatMap(({ symbol, networks }) =>
        (Object.keys(networks) as CryptoNetwork[]).map((network) => [symbol, network] as const),
      ),
    )('%s over %s comes from custody on that network', async (asset, crypto_network) => {
      const profile_id = await newProfile(customer)
      const body = { asset, amount: '.25', crypto_network }
      const [first, second] = [await deposited(profile_id, body), await deposited(profile_id, body)]
      expect(first).toEqual({
        ...recordOf(profile_id, asset, '0.25'),
        type: 'CRYPTO_DEPOSIT',
        crypto_network,
        crypto_tx_hash: expect.stringMatching(HASHES[NETWORKS[crypto_network].family]) as string,
        crypto_tx_index: '0',
        notional_value: expect.stringMatching(/^\d+(\.\d\d?)?$/) as string,
      })
      expect(second.crypto_tx_hash).not.toBe(first.crypto_tx_hash)
      expect(await entriesOf(service.db, first.id)).toEqual([
        `CREATED simulated:${crypto_network} ${asset} -0.25`,
        `CREATED profile ${asset} 0.25`,
      ])
      expect(await balances(profile_id)).toEqual({ [asset]: '0.5' })
    })

    test.each([
      ['USDP', 'ETHEREUM'],
      ['PYUSD', 'ETHEREUM'],
      ['BTC', 'BITCOIN'],
      ['SOL', 'SOLANA'],
      ['XLM', 'STELLAR'],
      ['POL', 'POLYGON_POS'],
      ['OKB', 'XLAYER'],
    ])('%s arrives over %s when the request names no network', async (asset, crypto_network) => {
      expect(await deposited(customer.profile_id, { asset, amount: '1' })).toMatchObject({ crypto_network })
    })

    test.each([
      ['USDP', '12.349', '12.34'],
      ['USDG', '1000000', '1000000'],
      ['PYUSD', '0.009', '0'],
      ['BTC', '0.00012349', '12.34'],
      ['ETH', '0.000000000000000001', '0'],
      ['ETH', '1', '3500'],
    ])('%s has its notional value in USD: %s is worth %s', async (asset, amount, notional_value) => {
      const transfer = await deposited(customer.profile_id, { asset, amount })
      expect(transfer).toMatchObject({ amount, total: amount, notional_value })
    })
  })

  describe('a deposit to an address', () => {
    test("takes the address's identity and account", async () => {
      const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
      const { body: identity } = await customer.call('POST', '/v2/identity/identities', {
        ref_id: randomUUID(),
        person_details,
      })
      const identity_id = identity.id as string
      await approve(customer, identity_id)
      const { body: account } = await customer.call('POST', '/v2/identity/accounts', {
        account: { identity_id },
      })
      const owner = { identity_id, account_id: account.id as string, metadata: { order: '1041', '': '' } }
      const profile_id = await newProfile(customer)
      const { address } = await newAddress(profile_id, { ...owner, ref_id: randomUUID() })
      const transfer = await deposited(profile_id, {
        asset: 'USDP',
        amount: '5',
        crypto_network: 'ETHEREUM',
        crypto_address: address,
      })
      // The ref_id of the address does not become the transfer's.
      expect(transfer).toEqual({
        ...recordOf(profile_id, 'USDP', '5'),
        ...owner,
        type: 'CRYPTO_DEPOSIT',
        destination_address: address,
        crypto_network: 'ETHEREUM',
        crypto_tx_hash: expect.any(String) as string,
        crypto_tx_index: '0',
        notional_value: '5',
      })
    })

    test.each(CRYPTO_NETWORKS)('of %s arrives over that network', async (crypto_network) => {
      const { symbol: asset } = ASSETS.find(({ networks }) => networks[crypto_network] !== undefined)!
      const { address: crypto_address } = await newAddress(customer.profile_id, { crypto_network })
      const transfer = await deposited(customer.profile_id, {
        asset,
        amount: '1',
        crypto_network,
        crypto_address,
      })
      expect(transfer).toMatchObject({ crypto_network, destination_address: crypto_address, amount: '1' })
    })

    test('of one EVM network may arrive over another, in any spelling of the address', async () => {
      const metadata = { order: '17' }
      const { address } = await newAddress(customer.profile_id, { crypto_network: 'BASE', metadata })
      for (const crypto_address of [
        address,
        address.toLowerCase(),
        `0x${address.slice(2).toUpperCase()}`,
      ] as const) {
        const body = { asset: 'USDG', amount: '1', crypto_network: 'INK', crypto_address }
        const transfer = await deposited(customer.profile_id, body)
        expect(transfer).toMatchObject({
          crypto_network: 'INK',
          destination_address: crypto_address,
          metadata,
        })
        expect(await entriesOf(service.db, transfer.id)).toContain('CREATED simulated:INK USDG -1')
      }
    })

    test.each([
      ['USDP', 'ETHEREUM', '10.50', '10.5'],
      ['USDP', 'SOLANA', '0.010000', '0.01'],
      ['PYUSD', 'STELLAR', '1000000', '1000000'],
      ['USDG', 'XLAYER', '.25', '0.25'],
    ] as const)(
      'that converts credits %s over %s, an amount of %s, as USD',
      async (asset, crypto_network, sent, amount) => {
        const profile_id = await newProfile(customer)
        const { address: crypto_address } = await newAddress(profile_id, {
          crypto_network,
          conversion_target_asset: 'USD',
        })
        const body = { asset, amount: sent, crypto_network, crypto_address }
        const transfer = await deposited(profile_id, body)
        expect(transfer).toEqual({
          ...recordOf(profile_id, asset, amount),
          type: 'CRYPTO_DEPOSIT',
          balance_asset: 'USD',
          auto_conversion: {},
          destination_address: crypto_address,
          crypto_network,
          crypto_tx_hash: expect.any(String) as string,
          crypto_tx_index: '0',
          notional_value: amount,
        })
        expect(await entriesOf(service.db, transfer.id)).toEqual([
          `CREATED simulated:${crypto_network} ${asset} -${amount}`,
          `CREATED profile USD ${amount}`,
          `CREATED conversion USD -${amount}`,
          `CREATED conversion ${asset} ${amount}`,
        ])
        expect(await balances(profile_id)).toEqual({ USD: amount })
      },
    )

    test.each([
      ['a part of a cent', 'USDP', 'ETHEREUM', '10.005', 'USD'],
      ['the smallest unit of the asset', 'USDP', 'ETHEREUM', '0.000000000000000001', 'USD'],
      ['an asset that the platform does not issue', 'BTC', 'BITCOIN', '1', 'USD'],
      ['an asset that the platform does not issue', 'ETH', 'ETHEREUM', '1.25', 'USD'],
      ['a deposit to an address without conversion', 'USDP', 'ETHEREUM', '10.5', 'NO_CONVERSION'],
    ] as const)(
      '%s is credited without conversion: %s',
      async (_, asset, crypto_network, amount, conversion_target_asset) => {
        const profile_id = await newProfile(customer)
        const { address } = await newAddress(profile_id, { crypto_network, conversion_target_asset })
        const body = { asset, amount, crypto_network, crypto_address: address }
        const transfer = await deposited(profile_id, body)
        expect(transfer).toMatchObject({ asset, balance_asset: asset, amount, total: amount })
        expect(transfer).not.toHaveProperty('auto_conversion')
        expect(await entriesOf(service.db, transfer.id)).toEqual([
          `CREATED simulated:${crypto_network} ${asset} -${amount}`,
          `CREATED profile ${asset} ${amount}`,
        ])
        expect(await balances(profile_id)).toEqual({ [asset]: amount })
      },
    )
  })
})
