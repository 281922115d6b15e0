import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed } from '../../contract/fields.ts'
import { readOperation } from '../operation.ts'
import { FiatAccount, requireFiatAccount } from '../../money/records/fiat-account.ts'

export const getFiatAccount = readOperation({
  url: '/v2/transfer/fiat-accounts/:id',
  scope: 'transfer:read_fiat_account',
  tag: 'Transfers',
  summary: 'Get Fiat Account',
  description: 'Reads one fiat account. A deleted one is not found, unless include_deleted is true.',
  query: Closed({
    include_deleted: Type.Optional(
      Type.Boolean({ default: false, description: 'True: also a deleted fiat account.' }),
    ),
  }),
  id: 'Id of the fiat account.',
  example: EXAMPLE.fiat_account_id,
  reply: FiatAccount,
  run: ({ params, query, customerId, db }) =>
    requireFiatAccount(db, customerId, params.id, { includeDeleted: query.include_deleted ?? false }),
})
