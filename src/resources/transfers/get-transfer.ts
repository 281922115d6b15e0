import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { readTransfer, Transfer } from '../../money/ledger/transfer.ts'

/** Reads one transfer by id (API behaviour, Transfers). */
export const getTransfer = operation({
  method: 'GET',
  url: '/v2/transfer/transfers/:id',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'Get Transfer',
  description:
    'Reads one transfer, with its current status and further details of the status where there are any.',
  params: Type.Object({ id: Uuid('Transfer id.') }),
  example: { params: { id: EXAMPLE.transfer_id } },
  reply: Transfer,
  problems: ['not-found'],
  run: ({ params, customerId, db }) => readTransfer(db, customerId, params.id),
})
