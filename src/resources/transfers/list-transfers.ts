import { Type, type Static } from 'typebox'
import { momentAt, UUID } from '../../db/ids.ts'
import type { Database } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, OneOf } from '../../contract/fields.ts'
import {
  listReply,
  microsToTimestamp,
  pageOf,
  pageParameters,
  pageReply,
  readPage,
  timeRange,
  MICROS,
  type PageRequest,
  type TimeRange,
} from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { Transfer, TRANSFER_COLUMNS, transferToWire, type TransferRow } from '../../money/ledger/transfer.ts'
import { FILTERED, filterValues, transferFilters } from './transfer-filters.ts'

const ListTransfersQuery = Closed({
  ...transferFilters,
  order_by: Type.Optional(OneOf(['CREATED_AT', 'UPDATED_AT'], 'Sort key.', { default: 'CREATED_AT' })),
  ...pageParameters,
})
type ListTransfersQuery = Static<typeof ListTransfersQuery>

/** Lists the customer's transfers (API behaviour, Transfers). */
export const listTransfers = operation({
  method: 'GET',
  url: '/v2/transfer/transfers',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'List Transfers',
  description:
    'Lists transfers of every type, newest first. Filters combine: a record must pass each of them.',
  query: ListTransfersQuery,
  example: { query: { profile_ids: [EXAMPLE.profile_id], statuses: ['COMPLETED'], limit: 10 } },
  reply: listReply(Transfer),
  async run({ query, customerId, db }) {
    const byUpdate = query.order_by === 'UPDATED_AT'
    const page = pageOf('transfers', query, byUpdate ? [MICROS, UUID] : [UUID])
    const created = timeRange(query, 'created_at')
    const updated = timeRange(query, 'updated_at')
    const rows = await readPage(db, page, byUpdate ? updated : created, (range) =>
      selectTransfers(db, customerId, query, page, byUpdate ? [created, range] : [range, updated]),
    )
    return pageReply(
      rows,
      page,
      (row) => [...(byUpdate ? [String(momentAt(row.updated_at!).micros)] : []), row.id],
      transferToWire,
    )
  },
})

/**
 * Reads a page of transfers plus one more row. Ids sort by creation time. So the primary key serves the default order
 * and the created_at bounds, and a deep page costs as much as the first.
 */
export async function selectTransfers(
  db: Database,
  customerId: string,
  query: ListTransfersQuery,
  page: PageRequest,
  [created, updated]: [TimeRange, TimeRange],
): Promise<TransferRow[]> {
  const byUpdate = query.order_by === 'UPDATED_AT'
  const direction = page.descending ? 'desc' : 'asc'
  const beyond = page.descending ? '<' : '>'
  const { rows } = await db.query<TransferRow>(
    `
    select ${TRANSFER_COLUMNS}
    from transfers t
    where ${FILTERED}
      and ${
        byUpdate
          ? `($23::timestamptz is null or (t.updated_at, t.id) ${beyond} ($23, $24::uuid))`
          : `($23::uuid is null or t.id ${beyond} $23)`
      }
    order by ${byUpdate ? `t.updated_at ${direction}, t.id ${direction}` : `t.id ${direction}`}
    limit $${byUpdate ? 25 : 24}`,
    [
      ...filterValues(customerId, query, { created, updated }),
      ...(byUpdate
        ? [page.after && microsToTimestamp(Number(page.after[0])), page.after?.[1]]
        : [page.after?.[0]]),
      page.limit + 1,
    ],
  )
  return rows
}
