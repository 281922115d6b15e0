import { Type, type Static } from 'typebox'
import { firstIdAt, momentAt, UUID } from '../../db/ids.ts'
import type { Database } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Filter, FilterValue, FilterWithoutCommas, OneOf } from '../../contract/fields.ts'
import {
  listReply,
  microsToTimestamp,
  pageOf,
  pageParameters,
  pageReply,
  readPage,
  timeBounds,
  timeRange,
  MICROS,
  uuidsOf,
  type PageRequest,
  type TimeRange,
} from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { SecondaryStatusName } from '../../contract/transfer-status.ts'
import {
  Transfer,
  TRANSFER_COLUMNS,
  TransferStatus,
  transferToWire,
  TransferType,
  type TransferRow,
} from '../../money/ledger/transfer.ts'

const ListTransfersQuery = Closed({
  ids: Filter(FilterValue, 'Filter by transfer ids.'),
  profile_ids: Filter(FilterValue, 'Filter by profiles.'),
  identity_ids: Filter(FilterValue, 'Filter by identities.'),
  account_ids: Filter(FilterValue, 'Filter by accounts.'),
  ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
  group_ids: Filter(FilterValue, 'Filter by groups.'),
  crypto_tx_hashes: Filter(Type.String({ maxLength: 128 }), 'Filter by on-chain transaction hashes.'),
  type: Filter(TransferType, 'Filter by types.'),
  statuses: Filter(TransferStatus, 'Filter by statuses.'),
  secondary_statuses: Filter(SecondaryStatusName, 'Filter by secondary statuses.'),
  ...timeBounds('created_at'),
  ...timeBounds('updated_at'),
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
    where t.customer_id = $1
      and t.id >= $2 and t.id < $3
      and t.updated_at >= $4 and t.updated_at < $5
      and ($6::uuid[] is null or t.id = any ($6))
      and ($7::uuid[] is null or t.profile_id = any ($7))
      and ($8::uuid[] is null or t.identity_id = any ($8))
      and ($9::uuid[] is null or t.account_id = any ($9))
      and ($10::text[] is null or t.ref_id = any ($10))
      and ($11::uuid[] is null or t.group_id = any ($11))
      and ($12::text[] is null or t.crypto_tx_hash = any ($12))
      and ($13::text[] is null or t.type = any ($13))
      and ($14::text[] is null or t.status = any ($14))
      and ($15::text[] is null or t.secondary_status ->> 'name' = any ($15))
      and ${
        byUpdate
          ? `($16::timestamptz is null or (t.updated_at, t.id) ${beyond} ($16, $17::uuid))`
          : `($16::uuid is null or t.id ${beyond} $16)`
      }
    order by ${byUpdate ? `t.updated_at ${direction}, t.id ${direction}` : `t.id ${direction}`}
    limit $${byUpdate ? 18 : 17}`,
    [
      customerId,
      firstIdAt(created.from),
      firstIdAt(created.to),
      microsToTimestamp(updated.from),
      microsToTimestamp(updated.to),
      uuidsOf(query.ids),
      uuidsOf(query.profile_ids),
      uuidsOf(query.identity_ids),
      uuidsOf(query.account_ids),
      query.ref_ids,
      uuidsOf(query.group_ids),
      query.crypto_tx_hashes,
      query.type,
      query.statuses,
      query.secondary_statuses,
      ...(byUpdate
        ? [page.after && microsToTimestamp(Number(page.after[0])), page.after?.[1]]
        : [page.after?.[0]]),
      page.limit + 1,
    ],
  )
  return rows
}
