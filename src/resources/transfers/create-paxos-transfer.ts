import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, DryRunQuery, Metadata, RefId, Uuid } from '../../contract/fields.ts'
import { PAYMENT_PROBLEMS } from '../../contract/problems.ts'
import { forAll } from '../../db/database.ts'
import { Transfer } from '../../money/ledger/transfer.ts'
import { transferToCustomer } from '../../money/movements/platform-transfer.ts'
import { operation } from '../operation.ts'
import { minorToMove } from './create-internal-transfer.ts'

export const createPaxosTransfer = operation({
  method: 'POST',
  url: '/v2/transfer/paxos',
  scope: 'transfer:write_paxos_transfer',
  tag: 'Transfers',
  takesMoney: true,
  summary: 'Create Paxos Transfer',
  description:
    'Moves money to a profile of another customer immediately. Returns the debit; the credit of the receiver has the same group_id.',
  query: DryRunQuery,
  body: Closed({
    ref_id: Type.Optional(RefId),
    asset: AssetSymbol,
    amount: Amount('Amount to move.'),
    from_profile_id: Uuid('Profile to debit.'),
    to_profile_id: Uuid('Profile of another customer to credit.'),
    identity_id: Type.Optional(Uuid('Identity of the sender, recorded with the debit.')),
    account_id: Type.Optional(Uuid('Account of the sender, recorded with the debit.')),
    metadata: Type.Optional(Metadata),
    recipient_metadata: Type.Optional(Metadata),
  }),
  example: {
    bodies: {
      'To a profile that another customer has named': {
        ref_id: 'paxos-2026-0001',
        asset: 'USD',
        amount: '10.50',
        from_profile_id: EXAMPLE.profile_id,
        to_profile_id: '0192f3a4-7b1c-7d3e-8f00-0000000000aa',
      },
    },
  },
  reply: Transfer,
  problems: [...PAYMENT_PROBLEMS, 'unavailable'],
  run({ query: { dry_run }, body, customerId: customer_id, origin, requireCaller, db, ledger }) {
    const { amount, asset: symbol, ...named } = body
    const minor = minorToMove(symbol, amount)
    const who = { customer_id, origin, requireCaller, dryRun: dry_run }
    return transferToCustomer(forAll(db), ledger, { ...named, ...who, asset: symbol, minor })
  },
})
