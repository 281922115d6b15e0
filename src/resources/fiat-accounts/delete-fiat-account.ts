import { Type } from 'typebox'
import { transaction } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'
import {
  FIAT_ACCOUNT_COLUMNS,
  FiatAccount,
  type FiatAccountRow,
  fiatAccountToWire,
  requireFiatAccount,
} from '../../money/records/fiat-account.ts'
import { ruleThatPays } from '../../money/records/orchestration-rule.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const deleteFiatAccount = operation({
  method: 'DELETE',
  url: '/v2/transfer/fiat-accounts/:id',
  scope: 'transfer:write_fiat_account',
  tag: 'Transfers',
  summary: 'Delete Fiat Account',
  description:
    'Nothing new is paid to it; wires under way are still sent. Refused while an active orchestration rule pays to it. The record stays, with its deleted_at. A repeat changes nothing.',
  params: Type.Object({ id: Uuid('Id of the fiat account.') }),
  example: { params: { id: EXAMPLE.fiat_account_id } },
  reply: FiatAccount,
  problems: ['not-found'],
  run: ({ params, customerId, origin, db }) =>
    transaction(db, async (tx) => {
      // The time of the deletion is read behind this lock, which waits for wires and rules under way (`lockFiatAccounts`).
      await tx.query('select 1 from fiat_accounts where customer_id = $1 and id = $2 for update', [
        customerId,
        params.id,
      ])
      const { rows } = await tx.query<FiatAccountRow>(
        `
        update fiat_accounts
        set deleted_at = now, updated_at = now
        from (select clock_timestamp() as now) clock
        where customer_id = $1 and id = $2 and deleted_at is null
        returning ${FIAT_ACCOUNT_COLUMNS}`,
        [customerId, params.id],
      )
      if (rows[0] === undefined)
        return requireFiatAccount(tx, customerId, params.id, { includeDeleted: true })
      const rule = await ruleThatPays(tx, customerId, params.id)
      if (rule !== undefined)
        throw problem.badRequest(
          `fiat account ${params.id} is paid by the active orchestration rule ${rule}: delete the rule first`,
        )
      await recordNow(tx, customerId, audited(origin, 'fiat_account.delete', params.id))
      return fiatAccountToWire(rows[0])
    }),
})
