import { Type } from 'typebox'
import { AssetSymbol, Closed, OneOf } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { firstIdAt, momentAt, UUID } from '../../db/ids.ts'
import {
  EVER,
  listReply,
  MICROS,
  microsToTimestamp,
  pageOf,
  pageParameters,
  pageReply,
  readPage,
} from '../../http/lists.ts'
import { operation } from '../operation.ts'
import {
  REWARDS_STATEMENT_TYPE,
  RewardsStatement,
  rewardsStatementToWire,
  type RewardsStatementRow,
} from './rewards-statement.ts'

/** Lists the customer's statements as rewards statements, latest period first (API behaviour, Statements). */
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
    const page = pageOf('rewards-statements', query, [MICROS, UUID])
    const direction = page.descending ? 'desc' : 'asc'
    const rows = await readPage(db, page, EVER, async ({ to }) => {
      const { rows } = await db.query<RewardsStatementRow>(
        `
        select id, ref_id, asset, total_amount_owed, amount_paid, period_start, period_end, created_at
        from statements
        where customer_id = $1
          and id < $6
          and ($2::text is null or asset = $2)
          and ($3::timestamptz is null or (period_start, id) ${page.descending ? '<' : '>'} ($3, $4::uuid))
        order by period_start ${direction}, id ${direction}
        limit $5`,
        [
          customerId,
          asset_type,
          page.after && microsToTimestamp(Number(page.after[0])),
          page.after?.[1],
          page.limit + 1,
          firstIdAt(to),
        ],
      )
      return rows
    })
    const keyOf = (row: RewardsStatementRow) => [String(momentAt(row.period_start).micros), row.id]
    return pageReply(rows, page, keyOf, rewardsStatementToWire)
  },
})
