import { Type, type Static } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { OneOf } from '../../contract/fields.ts'
import { transaction } from '../../db/database.ts'
import { readTransfer } from '../../money/ledger/transfer.ts'
import { readOperation } from '../operation.ts'
import { checkTransfer } from '../../money/verify/check-transfer.ts'

const TransferVerification = Type.Object({
  holds: Type.Boolean({ description: 'Whether every check holds.' }),
  checks: Type.Array(
    Type.Object({
      check: OneOf(['SUMS_TO_ZERO', 'BALANCES_FOLLOW', 'POSTINGS_OF_STATUS', 'AUDIT_CHAIN'], 'The check.'),
      holds: Type.Boolean({ description: 'Whether it holds.' }),
      detail: Type.String({ description: 'What was compared, or what differs.' }),
    }),
  ),
})

export const verifyTransfer = readOperation({
  url: '/v2/transfer/transfers/:id/verification',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'Verify Transfer',
  description:
    'Derives the entries of one transfer again: they sum to zero, each balance follows from the one before it, they are those of its status, and the audit log has them as they were written.',
  id: 'Transfer id.',
  example: EXAMPLE.transfer_id,
  reply: TransferVerification,
  async run({ params, customerId, db }): Promise<Static<typeof TransferVerification>> {
    const { id } = await readTransfer(db, customerId, params.id)
    // One snapshot: the transfer may change its status between two statements.
    const checks = await transaction(
      db,
      (tx) => checkTransfer(tx, customerId, id),
      'isolation level repeatable read read only',
    )
    return { holds: checks.every(({ holds }) => holds), checks }
  },
})
