import { Type } from 'typebox'
import { firstIdAt } from '../db/ids.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../http/fields.ts'
import {
  listReply,
  pageOf,
  pageParameters,
  pageReply,
  timeBounds,
  timeRange,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../http/operation.ts'
import {
  FiatDepositInstructions,
  INSTRUCTIONS_COLUMNS,
  instructionsToWire,
  type InstructionsRow,
} from '../ledger/records/fiat-deposit-instructions.ts'

/** Lists the customer's deposit instructions, by creation time (design sections 5 and 6). */
export const listFiatDepositInstructions = operation({
  method: 'GET',
  url: '/v2/transfer/fiat-deposit-instructions',
  scope: 'transfer:read_fiat_deposit_instructions',
  tag: 'Transfers',
  summary: 'List Fiat Deposit Instructions',
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by ids.'),
      profile_ids: Filter(FilterValue, 'Filter by profiles.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      ...timeBounds('created_at'),
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(FiatDepositInstructions),
  async run({ query, customerId, db }) {
    const page = pageOf('fiat-deposit-instructions', query)
    const created = timeRange(query, 'created_at')
    const { rows } = await db.query<InstructionsRow>(
      `
      select ${INSTRUCTIONS_COLUMNS}
      from fiat_deposit_instructions
      where customer_id = $1
        and id >= $2 and id < $3
        and ($4::uuid[] is null or id = any ($4))
        and ($5::uuid[] is null or profile_id = any ($5))
        and ($6::text[] is null or ref_id = any ($6))
        and ($7::uuid is null or id ${page.descending ? '<' : '>'} $7)
      order by id ${page.descending ? 'desc' : 'asc'}
      limit $8`,
      [
        customerId,
        firstIdAt(created.from),
        firstIdAt(created.to),
        uuidsOf(query.ids),
        uuidsOf(query.profile_ids),
        query.ref_ids,
        page.after?.[0],
        page.limit + 1,
      ],
    )
    return pageReply(rows, page, (row) => [row.id], instructionsToWire)
  },
})
