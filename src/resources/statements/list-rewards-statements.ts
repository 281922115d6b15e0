import { Type } from 'typebox'
import { AssetSymbol, Closed, OneOf } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { listByCreation, listReply, pageParameters } from '../../http/lists.ts'
import { operation } from '../operation.ts'
import {
  REWARDS_STATEMENT_TYPE,
  RewardsStatement,
  rewardsStatementToWire,
  type RewardsStatementRow,
} from './rewards-statement.ts'

export const listRewardsStatements = operation({
  method: 'GET',
  url: '/v2/rewards/statements',
  scope: 'rewards:read_statements',
  alternativeScope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'List Rewards Statements',
  description: "Lists the monthly rewards of the token's customer, latest period first.",
  example: { query: { asset_type: 'USDG', limit: 12 } },
  query: Closed({
    asset_type: Type.Optional({ ...AssetSymbol, description: 'Filter by the rewarded asset.' }),
    type: Type.Optional(OneOf([REWARDS_STATEMENT_TYPE], 'Filter by statement type.')),
    ...pageParameters,
  }),
  reply: listReply(RewardsStatement),
  async run({ query, customerId, db }) {
    const { asset_type } = query
    requireKnownAssets('asset_type', asset_type === undefined ? undefined : [asset_type])
    return listByCreation(db, customerId, query, {
      list: 'rewards-statements',
      select: `
        select id, ref_id, asset, total_amount_owed, amount_paid, period_start, period_end, created_at
        from statements`,
      orderBy: 'period_start',
      where: [['asset = ?', asset_type]],
      toWire: (row: RewardsStatementRow) => rewardsStatementToWire(row),
    })
  },
})
