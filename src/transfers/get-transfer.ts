import { Type } from 'typebox'
import type { Queryable } from '../db/database.ts'
import { EXAMPLE } from '../contract/example-records.ts'
import { Uuid } from '../contract/fields.ts'
import { operation } from '../http/operation.ts'
import { problem } from '../contract/problems.ts'
import { Transfer, TRANSFER_COLUMNS, transferToWire, type TransferRow } from '../ledger/transfer.ts'

/** Reads one transfer by id (design section 6). */
export const getTransfer = operation({
  method: 'GET',
  url: '/v2/transfer/transfers/:id',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'Get Transfer',
  description: 'Reads one transfer: its status now, and why it is in it where there is more to say.',
  params: Type.Object({ id: Uuid('Transfer id.') }),
  example: { params: { id: EXAMPLE.transfer_id } },
  reply: Transfer,
  problems: ['not-found'],
  run: ({ params, customerId, db }) => readTransfer(db, customerId, params.id),
})

/** The customer's transfer. Throws not-found. */
export async function readTransfer(db: Queryable, customerId: string, id: string): Promise<Transfer> {
  const { rows } = await db.query<TransferRow>({
    name: 'get transfer',
    text: `select ${TRANSFER_COLUMNS} from transfers t where t.customer_id = $1 and t.id = $2`,
    values: [customerId, id],
  })
  if (rows[0] === undefined) throw problem.notFound('transfer', id)
  return transferToWire(rows[0])
}
