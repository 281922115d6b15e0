import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import type { Scope } from '../../contract/scopes.ts'
import { Transfer } from '../../money/ledger/transfer.ts'
import { cancelWithdrawal, NotCancellable } from '../../rails/payouts/cancel-withdrawal.ts'
import { readTransfer } from '../../money/ledger/transfer.ts'

/** The types that can be cancelled, with the scope that creates and cancels each. */
const SCOPE_OF: Partial<{ [type in Transfer['type']]: Scope }> = {
  CRYPTO_WITHDRAWAL: 'transfer:write_crypto_withdrawal',
  WIRE_WITHDRAWAL: 'transfer:write_fiat_withdrawal',
}

/**
 * Cancels a withdrawal that is not signed (ARCHITECTURE, "Life of a withdrawal"), even when its profile or network is
 * frozen. A repeat returns the same record.
 */
export const cancelTransfer = operation({
  method: 'POST',
  url: '/v2/transfer/transfers/:id/cancel',
  scope: 'transfer:write_crypto_withdrawal',
  alternativeScope: 'transfer:write_fiat_withdrawal',
  tag: 'Transfers',
  repeats: 'HARMLESS',
  summary: 'Cancel Transfer',
  description:
    'Cancels a PENDING withdrawal that is not signed yet: it becomes FAILED with the secondary status CUSTOMER_REJECTED, and its total returns to the profile. A signed withdrawal may be paid already and cannot be cancelled. Crypto withdrawals need the scope `transfer:write_crypto_withdrawal`, wires `transfer:write_fiat_withdrawal`. A repeated cancel returns the same record.',
  params: Type.Object({ id: Uuid('Id of a withdrawal.') }),
  // The demo's transfer has ended: it shows the refusal.
  example: { params: { id: EXAMPLE.transfer_id } },
  reply: Transfer,
  problems: ['not-found', 'not-cancellable'],
  async run({ params, customerId, scopes, origin, db }) {
    const { id, type, status } = await readTransfer(db, customerId, params.id)
    const scope = SCOPE_OF[type]
    if (scope === undefined) throw problem.notCancellable({ id, status }, 'is not a withdrawal')
    if (!scopes.includes(scope)) throw problem.missingScope([scope], scopes)
    try {
      await cancelWithdrawal(db, { customer_id: customerId, transfer_id: id }, 'client', origin)
    } catch (error) {
      if (!(error instanceof NotCancellable)) throw error
      throw problem.notCancellable({ id, status: error.status }, error.why)
    }
    return readTransfer(db, customerId, id)
  },
})
