import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { FiatAccount, requireFiatAccount } from '../../money/records/fiat-account.ts'

/** Reads one fiat account by id (API behaviour, Fiat accounts). */
export const getFiatAccount = operation({
  method: 'GET',
  url: '/v2/transfer/fiat-accounts/:id',
  scope: 'transfer:read_fiat_account',
  tag: 'Transfers',
  summary: 'Get Fiat Account',
  description: 'Reads one fiat account. A deleted one is not found, unless include_deleted is true.',
  params: Type.Object({ id: Uuid('Id of the fiat account.') }),
  query: Closed({
    include_deleted: Type.Optional(
      Type.Boolean({ default: false, description: 'True: also a deleted fiat account.' }),
    ),
  }),
  example: { params: { id: EXAMPLE.fiat_account_id } },
  reply: FiatAccount,
  problems: ['not-found'],
  run: ({ params, query, customerId, db }) =>
    requireFiatAccount(db, customerId, params.id, { includeDeleted: query.include_deleted ?? false }),
})
