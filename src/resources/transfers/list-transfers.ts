import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { OneOf } from '../../contract/fields.ts'
import { pageParameters } from '../../http/lists.ts'
import { Transfer, TRANSFER_COLUMNS, transferToWire, type TransferRow } from '../../money/ledger/transfer.ts'
import { listOperation } from '../list-operation.ts'
import { filtered, transferFilters } from './transfer-filters.ts'

/** A deep page costs as much as the first. */
export const listTransfers = listOperation<TransferRow>({
  url: '/v2/transfer/transfers',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'List Transfers',
  description:
    'Lists transfers of every type, newest first. Filters combine: a record must pass each of them.',
  example: { query: { profile_ids: [EXAMPLE.profile_id], statuses: ['COMPLETED'], limit: 10 } },
  list: 'transfers',
  item: Transfer,
  parameters: transferFilters,
  bounded: false,
  page: {
    order_by: Type.Optional(OneOf(['CREATED_AT', 'UPDATED_AT'], 'Sort key.', { default: 'CREATED_AT' })),
    ...pageParameters,
  },
  select: (query) => `select ${TRANSFER_COLUMNS} from transfers t${filtered(query).joins}`,
  alias: 't',
  sameIds: (query) => filtered(query).ids,
  orderBy: (query) => (query.order_by === 'UPDATED_AT' ? 'updated_at' : undefined),
  where: ({ query }) => filtered(query).where,
  toWire: transferToWire,
})
