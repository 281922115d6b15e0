import { Type, type Static } from 'typebox'
import { ASSETS, CRYPTO_NETWORKS, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, NamedObject, Network, OneOf, Timestamp } from '../../contract/fields.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { operatorFigures } from '../../rails/wallets/operator-figures.ts'
import { networkHealth, type NetworkHealth } from '../../rails/wallets/network-health.ts'
import { operation } from '../operation.ts'
import { listingFields, listingOf } from './listing.ts'

const Count = (description: string) => Type.Integer({ description })

const ForOperators = Type.Object(
  {
    reachable: Type.Optional(
      Type.Boolean({ description: 'Whether its node answers; absent where it is simulated.' }),
    ),
    error: Type.Optional(Type.String({ description: 'Why it does not.' })),
    height: Type.Optional(Type.Integer({ description: 'The newest block of the node.' })),
    hot_wallet: Type.Optional(
      Type.Object(
        {
          asset: AssetSymbol,
          amount: Amount('What the hot wallet holds.'),
          low_mark: Type.Optional(Amount('What it should hold at least.')),
          below_low_mark: Type.Boolean({ description: 'Whether it holds less.' }),
        },
        { description: "The hot wallet's amount of the network's own asset, which pays the fees." },
      ),
    ),
    custody: Type.Array(
      Type.Object({
        asset: AssetSymbol,
        in_custody: Amount('What the ledgers of all customers have there.'),
        held: Type.Optional(Amount('What the wallet holds; absent while its node does not answer.')),
        difference: Type.Optional(
          Type.String({ description: 'Held beyond custody. Payments under way explain a small difference.' }),
        ),
      }),
      { description: 'Empty where the network is simulated: nothing is on a chain.' },
    ),
    lanes: Type.Optional(
      Type.Array(
        Type.Object({
          lane: Type.String({ description: 'The address of the wallet.' }),
          holds: Type.Array(Type.Object({ asset: AssetSymbol, amount: Amount('What it holds.') })),
          in_flight: Count('Its transactions that are signed and not mined.'),
          journal: Type.Optional(
            Type.Object(
              {
                next_nonce: Count('Its next nonce.'),
                ahead: Count('Signatures that this database does not know; negative: not signed yet.'),
              },
              { description: 'By the journal of the signer process.' },
            ),
          ),
          blocked: Type.Optional(
            Type.Object({
              code: Type.String({ description: 'Why nothing is signed from it.' }),
              detail: Type.String({ description: 'The same for people.' }),
            }),
          ),
        }),
        { description: 'The wallets that pay, where there is more than one, or a signer process.' },
      ),
    ),
    signer: Type.Optional(
      Type.Object(
        {
          reachable: Type.Boolean({ description: 'Whether it answers.' }),
          error: Type.Optional(Type.String({ description: 'Why it does not.' })),
        },
        { description: 'The signer process; absent where there is none.' },
      ),
    ),
    asked: Type.Optional(
      Type.Object(
        { count: Count('How many wait.'), since: Timestamp('Since when the first waits.') },
        { description: 'Withdrawals that wait for the signer process.' },
      ),
    ),
    asks: Type.Array(
      Type.Object({
        kind: OneOf(
          ['REFILL', 'SEND'],
          'REFILL: the hot wallet is below its low mark. SEND: it is above its high mark.',
        ),
        asset: AssetSymbol,
        amount: Amount('What brings it to its target.'),
        to: Type.Optional(Type.String({ description: 'Of a send: the address in cold storage.' })),
      }),
      { description: 'The refills and sends to cold storage that people are asked for.' },
    ),
    refills: Type.Array(
      Type.Object({
        crypto_tx_hash: Type.String({ description: 'The transaction.' }),
        since: Timestamp('When it was found.'),
        detail: Type.Optional(
          Type.String({ description: 'Why it could not be posted; absent before the first attempt.' }),
        ),
      }),
      { description: 'Payments from cold storage that are not posted yet.' },
    ),
    in_flight: Count('Withdrawals that have not ended.'),
    waiting: Type.Array(
      Type.Object({
        code: Type.String({ description: 'Why they wait.' }),
        detail: Type.String({ description: 'The same for people.' }),
        count: Count('How many wait.'),
        since: Timestamp('Since when the first waits.'),
      }),
    ),
    frozen: Type.Array(
      Type.Object({
        reason: Type.String({ description: 'Reason of the freeze.' }),
        detail: Type.String({ description: 'Why it was placed.' }),
        since: Timestamp('When it was placed.'),
      }),
      { description: 'The freezes of the network, and of everything.' },
    ),
    uncredited: Type.Array(
      Type.Object({
        reason: Type.String({ description: 'Why deposits are not credited.' }),
        count: Count('How many are not.'),
        since: Timestamp('When the first was found.'),
      }),
    ),
  },
  {
    description:
      'Figures of the whole deployment, for operators with the scope `operators:read_network` alone.',
  },
)

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
  for_operators: Type.Optional(ForOperators),
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
