import { Type, type Static } from 'typebox'
import { ASSETS, CRYPTO_NETWORKS, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { AssetSymbol, NamedObject, Network, OneOf } from '../../contract/fields.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { OperatorFigures, operatorFigures } from '../../rails/wallets/operator-figures.ts'
import { networkHealth, type NetworkHealth } from '../../rails/wallets/network-health.ts'
import { operation } from '../operation.ts'
import { listingFields, listingOf } from './listing.ts'

const NetworkRecord = NamedObject('NetworkRecord', {
  crypto_network: Network,
  native_asset: Type.String({ description: 'The asset in which the network takes its fees.' }),
  chain: Type.Optional(OneOf(['MAIN', 'TEST', 'SIMULATED'], 'The connected chain; absent where none is.')),
  status: OneOf(
    ['AVAILABLE', 'DELAYED', 'STOPPED', 'UNAVAILABLE'],
    'DELAYED: withdrawals wait for the network. STOPPED: the platform pays nothing there for now, and withdrawals wait. UNAVAILABLE: not connected, and withdrawals are refused.',
  ),
  confirmations: Type.Optional(
    Type.Integer({ description: 'Confirmations that a deposit or withdrawal needs, on a real chain.' }),
  ),
  finality: Type.Optional(
    OneOf(['SAFE', 'FINALIZED'], "The chain's own finality, where it takes the place of `confirmations`."),
  ),
  fees: OneOf(
    ['SCHEDULED', 'ESTIMATED'],
    'ESTIMATED: a quote follows the cost of the chain, and the schedule may not cover it.',
  ),
  memo: Type.Boolean({ description: 'Whether a withdrawal can carry a memo.' }),
  assets: Type.Array(Type.Object({ asset: AssetSymbol, ...listingFields })),
  for_operators: Type.Optional(OperatorFigures),
})

export const listNetworks = operation({
  method: 'GET',
  url: '/v2/networks',
  scope: 'funding:read_profile',
  tag: 'Assets and Networks',
  summary: 'List Networks',
  description: 'Lists the networks, with their status, confirmations, and the fees and limits of each asset.',
  reply: Type.Object({ items: Type.Array(NetworkRecord) }),
  async run({ db, networks, settings, scopes }) {
    const seesAll = scopes.includes('operators:read_network')
    const [health, figures] = await Promise.all([
      networkHealth(db),
      seesAll ? operatorFigures(db, networks) : undefined,
    ])
    return {
      items: CRYPTO_NETWORKS.map((network) => {
        const adapter = networks.get(network)
        return {
          crypto_network: network,
          native_asset: NETWORKS[network].gasAsset,
          ...(adapter && { chain: chainOf(adapter, settings.mode) }),
          status: adapter === undefined ? ('UNAVAILABLE' as const) : statusOf(network, health),
          ...depthOf(adapter),
          fees: adapter?.estimateFee === undefined ? ('SCHEDULED' as const) : ('ESTIMATED' as const),
          memo: adapter !== undefined && !adapter.carriesNoMemo,
          ...(figures?.has(network) && { for_operators: figures.get(network)! }),
          assets: ASSETS.filter((asset) => asset.networks[network] !== undefined).map(({ symbol }) => ({
            asset: symbol,
            ...listingOf(symbol, network, networks),
          })),
        }
      }),
    }
  },
})

type NetworkRecord = Static<typeof NetworkRecord>

function chainOf(adapter: NetworkAdapter, mode: 'sandbox' | 'live'): 'MAIN' | 'TEST' | 'SIMULATED' {
  if (adapter.isSimulated) return 'SIMULATED'
  return mode === 'live' ? 'MAIN' : 'TEST'
}

function statusOf(network: CryptoNetwork, health: NetworkHealth): 'AVAILABLE' | 'DELAYED' | 'STOPPED' {
  if (health.allStopped || health.stopped.has(network)) return 'STOPPED'
  return health.delayed.has(network) ? 'DELAYED' : 'AVAILABLE'
}

/** The requirement for a transaction to count as final. */
function depthOf(adapter: NetworkAdapter | undefined): Pick<NetworkRecord, 'confirmations' | 'finality'> {
  const depth = adapter?.confirmations
  if (depth === undefined) return {}
  if (typeof depth === 'number') return { confirmations: depth }
  return { finality: depth === 'safe' ? 'SAFE' : 'FINALIZED' }
}
