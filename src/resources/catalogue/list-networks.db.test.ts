import { describe, expect, test } from 'vitest'
import {
  fund,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  withdrawalOf,
  ownTestService,
} from '../../../test/support.ts'
import { ASSETS, CRYPTO_NETWORKS, NETWORKS } from '../../contract/assets/catalogue.ts'
import type { PayoutNetwork, NetworkAdapter } from '../../networks/network.ts'
import { readNetworkHealth } from '../../rails/wallets/network-health.ts'
import { freeze, unfreeze } from '../../money/records/freezes.ts'
import { listNetworks } from './list-networks.ts'

interface Listing {
  asset?: string
  crypto_network?: string
  decimals: number
  withdrawal_fee: string
  withdrawal_minimum: string
  withdrawal_maximum: string
  deposit_minimum: string
}
interface NetworkRecord {
  crypto_network: string
  status: string
  chain?: string
  confirmations?: number
  finality?: string
  fees: string
  memo: boolean
  assets: Listing[]
}

const service = await ownTestService()
const customer = await newCustomer(service)
await fund(customer, '100')

/** The operation with these adapters, and health that is read anew. */
async function listed(networks: ReadonlyMap<PayoutNetwork, Partial<NetworkAdapter>>, mode = 'sandbox') {
  // A cached health belongs to its database object.
  const db = { query: (text: string, values?: unknown[]) => service.db.query(text, values) }
  const answer = await listNetworks.run({ db, networks, settings: { mode }, scopes: [] } as never)
  const { items } = answer as { items: NetworkRecord[] }
  return new Map(items.map((item) => [item.crypto_network, item]))
}
/** The assets, as anybody reads them without a token. */
async function assetsListed() {
  const assets = await service.app.inject('/v2/assets')
  expect(assets.statusCode).toBe(200)
  return assets.json<{ items: { asset: string; decimals: number; networks: Listing[] }[] }>().items
}
const SIMULATED = new Map(CRYPTO_NETWORKS.map((network) => [network, { isSimulated: true }] as const))

describe('List Assets', () => {
  test('every asset is listed, with the terms that withdrawals are held to', async () => {
    const items = await assetsListed()
    expect(items.map(({ asset, decimals }) => [asset, decimals])).toEqual(
      ASSETS.map(({ symbol, decimals }) => [symbol, decimals]),
    )

    const usdp = items.find(({ asset }) => asset === 'USDP')!.networks[0]!
    const quote = await customer.call('POST', '/v2/transfer/fees/crypto-withdrawal', {
      asset: 'USDP',
      crypto_network: usdp.crypto_network,
      destination_address: withdrawalOf(customer).destination_address,
      amount: usdp.withdrawal_minimum,
    })
    expect(quote).toMatchObject({ status: 200, body: { fee: usdp.withdrawal_fee } })
  })
})

describe('List Networks', () => {
  test('every network is listed, with the assets and terms that List Assets has', async () => {
    const items = await assetsListed()
    const { body } = await customer.call<{ items: NetworkRecord[] }>('GET', '/v2/networks')
    expect(body.items.map(({ crypto_network }) => crypto_network)).toEqual(CRYPTO_NETWORKS)
    for (const { crypto_network, assets: carried } of body.items) {
      expect(carried.map(({ asset }) => asset)).toContain(
        NETWORKS[crypto_network as keyof typeof NETWORKS].gasAsset,
      )
      for (const { asset, ...terms } of carried) {
        const listing = items.find((one) => one.asset === asset)!.networks
        expect(listing).toContainEqual({ crypto_network, ...terms })
      }
    }
  })

  test('a freeze stops a network, or all; withdrawals that wait for a node delay it', async () => {
    const statuses = async () => new Set([...(await listed(SIMULATED)).values()].map(({ status }) => status))
    expect(await statuses()).toEqual(new Set(['AVAILABLE']))

    const { body } = await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer))
    const waiting = `
      insert into outgoing_transfers as kept
        (customer_id, transfer_id, network, state, created_at, due_at, waiting_since, waiting_code, waiting_detail)
      values ($1, $2, 'ETHEREUM', 'HELD', now(), now(), now(), $3, 'the hot wallet has 7')
      on conflict (customer_id, transfer_id) do update set waiting_code = excluded.waiting_code`
    for (const [code, status] of [
      ['HOT_WALLET_SHORT', 'AVAILABLE'],
      ['NODE_DOWN', 'DELAYED'],
    ]) {
      await service.db.query(waiting, [customer.customer_id, body.id, code])
      const found = await listed(SIMULATED)
      expect(found.get('ETHEREUM')).toMatchObject({ status })
      expect(JSON.stringify([...found])).not.toContain('hot wallet')
      expect(found.get('BASE')).toMatchObject({ status: 'AVAILABLE' })
    }

    await freeze(
      service.db,
      TEST_ORIGIN,
      { kind: 'NETWORK', network: 'ETHEREUM' },
      'CUSTODY_SHORT',
      'a secret reason',
    )
    const stopped = await listed(SIMULATED)
    expect(stopped.get('ETHEREUM')).toMatchObject({ status: 'STOPPED' })
    expect(stopped.get('BASE')).toMatchObject({ status: 'AVAILABLE' })
    expect(JSON.stringify([...stopped])).not.toContain('secret')
    await freeze(service.db, TEST_ORIGIN, { kind: 'ALL' }, 'OPERATOR', 'why')
    expect(await statuses()).toEqual(new Set(['STOPPED']))
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'ALL' })
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' })
    expect((await readNetworkHealth(service.db)).stopped.size).toBe(0)
  })

  test('a real network says its depth, its minimum deposit and how fees follow the chain', async () => {
    const estimateFee = () => Promise.reject(new Error('not asked'))
    const real = { carriesNoMemo: true, estimateFee, minimumDeposit: () => '7' } as const
    const found = await listed(
      new Map<PayoutNetwork, Partial<NetworkAdapter>>([
        ['ETHEREUM', { ...real, confirmations: 12 }],
        ['BASE', { ...real, confirmations: 'finalized' }],
      ]),
      'live',
    )
    const terms = { chain: 'MAIN', fees: 'ESTIMATED', memo: false }
    expect(found.get('ETHEREUM')).toMatchObject({ ...terms, confirmations: 12 })
    expect(found.get('ETHEREUM')!.assets[0]).toMatchObject({ deposit_minimum: '7' })
    expect(found.get('BASE')).toMatchObject({ ...terms, finality: 'FINALIZED' })
    expect(found.get('SOLANA')).toMatchObject({ status: 'UNAVAILABLE', fees: 'SCHEDULED', memo: false })
    expect(found.get('SOLANA')).not.toHaveProperty('chain')
  })
})
