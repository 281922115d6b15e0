import { Type } from 'typebox'
import type { Database } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, OneOf } from '../../contract/fields.ts'
import { listByCreation, listReply, pageParameters } from '../../http/lists.ts'
import { operation, type ListQuery } from '../operation.ts'
import { Transfer, TRANSFER_COLUMNS, transferToWire, type TransferRow } from '../../money/ledger/transfer.ts'
import { filtered, transferFilters } from './transfer-filters.ts'

export const listTransfers = operation({
  method: 'GET',
  url: '/v2/transfer/transfers',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'List Transfers',
  description:
    'Lists transfers of every type, newest first. Filters combine: a record must pass each of them.',
  query: Closed({
    ...transferFilters,
    order_by: Type.Optional(OneOf(['CREATED_AT', 'UPDATED_AT'], 'Sort key.', { default: 'CREATED_AT' })),
    ...pageParameters,
  }),
  example: { query: { profile_ids: [EXAMPLE.profile_id], statuses: ['COMPLETED'], limit: 10 } },
  reply: listReply(Transfer),
  run: ({ query, customerId, db }) => readTransfers(db, customerId, query),
})

/** Reads a page of the customer's transfers. A deep page costs as much as the first. */
export const readTransfers = (db: Database, customerId: string, query: ListQuery) => {
  const { joins, where, ids } = filtered(query)
  return listByCreation<TransferRow, Transfer>(db, customerId, query, {
    list: 'transfers',
    select: `select ${TRANSFER_COLUMNS} from transfers t${joins}`,
    alias: 't',
    sameIds: ids,
    ...(query.order_by === 'UPDATED_AT' && { orderBy: 'updated_at' }),
    where,
    toWire: transferToWire,
  })
}
