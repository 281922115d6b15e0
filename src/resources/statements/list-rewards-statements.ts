import { Type } from 'typebox'
import { AssetSymbol, OneOf } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { pageParameters } from '../../http/lists.ts'
import { listOperation } from '../list-operation.ts'
import {
  REWARDS_STATEMENT_TYPE,
  RewardsStatement,
  rewardsStatementToWire,
  type RewardsStatementRow,
} from './rewards-statement.ts'

export const listRewardsStatements = listOperation({
  url: '/v2/rewards/statements',
  scope: 'rewards:read_statements',
  alternativeScope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'List Rewards Statements',
  description: "Lists the monthly rewards of the token's customer, latest period first.",
  example: { query: { asset_type: 'USDG', limit: 12 } },
  list: 'rewards-statements',
  item: RewardsStatement,
  parameters: {
    asset_type: Type.Optional({ ...AssetSymbol, description: 'Filter by the rewarded asset.' }),
    type: Type.Optional(OneOf([REWARDS_STATEMENT_TYPE], 'Filter by statement type.')),
  },
  bounded: false,
  page: pageParameters,
  check: ({ query: { asset_type } }) =>
    requireKnownAssets('asset_type', asset_type === undefined ? undefined : [asset_type]),
  select: `
    select id, ref_id, asset, total_amount_owed, amount_paid, period_start, period_end, created_at
    from statements`,
  orderBy: () => 'period_start',
  where: ({ query }) => [['asset = ?', query.asset_type]],
  toWire: (row: RewardsStatementRow) => rewardsStatementToWire(row),
})
