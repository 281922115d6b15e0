import { EXAMPLE } from '../../contract/example-records.ts'
import { readOperation } from '../operation.ts'
import { readTransfer, Transfer } from '../../money/ledger/transfer.ts'

export const getTransfer = readOperation({
  url: '/v2/transfer/transfers/:id',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'Get Transfer',
  description:
    'Reads one transfer, with its current status and further details of the status where there are any.',
  id: 'Transfer id.',
  example: EXAMPLE.transfer_id,
  reply: Transfer,
  run: ({ params, customerId, db }) => readTransfer(db, customerId, params.id),
})
