import { Type } from 'typebox'
import { ASSETS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { AssetSymbol, NamedObject, Network, OneOf } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { listingFields, listingOf } from './listing.ts'

const AssetRecord = NamedObject('Asset', {
  asset: AssetSymbol,
  name: Type.String({ description: 'Name.' }),
  kind: OneOf(['FIAT', 'STABLECOIN', 'CRYPTO'], 'Kind.'),
  decimals: Type.Integer({ description: 'Decimals of a balance.' }),
  platform_stablecoin: Type.Boolean({
    description: 'Worth one USD: it is exchanged for USD, and paid from it.',
  }),
  networks: Type.Array(Type.Object({ crypto_network: Network, ...listingFields }), {
    description: 'The networks that carry it; none for fiat.',
  }),
})

export const listAssets = operation({
  method: 'GET',
  url: '/v2/assets',
  scope: null,
  tag: 'Assets and Networks',
  summary: 'List Assets',
  description:
    'Lists the assets that a profile can hold, with decimals, fees and limits on each network. Needs no access token.',
  reply: Type.Object({ items: Type.Array(AssetRecord) }),
  async run({ networks }) {
    return {
      items: ASSETS.map(({ symbol, name, kind, decimals, platformStablecoin, networks: listings }) => ({
        asset: symbol,
        name,
        kind: KINDS[kind],
        decimals,
        platform_stablecoin: platformStablecoin,
        networks: (Object.keys(listings) as CryptoNetwork[]).map((network) => ({
          crypto_network: network,
          ...listingOf(symbol, network, networks),
        })),
      })),
    }
  },
})

const KINDS = { fiat: 'FIAT', stablecoin: 'STABLECOIN', crypto: 'CRYPTO' } as const
