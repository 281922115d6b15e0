import { Type } from 'typebox'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { AssetSymbol, Closed, NamedObject, Network, Timestamp } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { operation } from '../operation.ts'
import { REWARD_ASSET } from './statement.ts'

const RewardRate = NamedObject('RewardRate', {
  id: Type.String({ description: 'Rate id.', examples: ['USDG-2026-01-01'] }),
  asset_type: AssetSymbol,
  rate: Type.String({ description: 'Annual rate: 0.0376 is 3.76 %.', examples: ['0.0376'] }),
  networks: Type.Array(Network, { description: 'Networks of the asset; the rate is the same on all.' }),
  effective_at: Timestamp('From when on the rate is in force, until that of the next rate.'),
  created_at: Timestamp('When the rate was set.'),
})

/** Most rates of an answer: the newest. A rate a month fills it in 83 years. */
const RATES_MAX = 1_000

export const listRewardsRates = operation({
  method: 'GET',
  url: '/v2/rewards/rates',
  scope: 'rewards:read_rewards_details',
  alternativeScope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'List Rewards Rates',
  description: 'Lists the annual rates of rewards, newest first.',
  example: { query: { asset_type: 'USDG' } },
  query: Closed({
    asset_type: Type.Optional({ ...AssetSymbol, description: 'Filter by the rewarded asset.' }),
  }),
  reply: Type.Object({
    rates: Type.Array(RewardRate),
    items: Type.Array(RewardRate, { description: 'The same rates as `rates`.' }),
  }),
  async run({ query: { asset_type = REWARD_ASSET }, db }) {
    requireKnownAssets('asset_type', [asset_type])
    if (asset_type !== REWARD_ASSET) return { rates: [], items: [] }
    const { rows } = await db.query<RateRow>(
      `
      select distinct on (effective_from) effective_from::text, trim_scale(rate)::text as rate,
             effective_from::timestamp at time zone 'UTC' as effective_at, set_at as created_at
      from reward_rates
      order by effective_from desc, set_at desc
      limit $1`,
      [RATES_MAX],
    )
    const networks = Object.keys(findAsset(REWARD_ASSET)!.networks) as RateNetworks
    const rates = rows.map(({ effective_from, ...row }) => ({
      id: `${REWARD_ASSET}-${effective_from}`,
      asset_type: REWARD_ASSET,
      networks,
      ...row,
    }))
    return { rates, items: rates }
  },
})

type RateNetworks = (keyof NonNullable<ReturnType<typeof findAsset>>['networks'])[]

interface RateRow {
  effective_from: string
  rate: string
  effective_at: string
  created_at: string
}
