import { minorUnits } from '../../contract/assets/precision.ts'
import { Type } from 'typebox'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import {
  Amount,
  AssetSymbol,
  Closed,
  DryRunQuery,
  Metadata,
  RefId,
  Text,
  Uuid,
} from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { PAYMENT_PROBLEMS, problem } from '../../contract/problems.ts'
import { internalTransfer } from '../../money/movements/internal-transfer.ts'
import { Transfer } from '../../money/ledger/transfer.ts'

export const createInternalTransfer = operation({
  method: 'POST',
  url: '/v2/transfer/internal',
  scope: 'transfer:write_internal_transfer',
  tag: 'Transfers',
  takesMoney: true,
  summary: 'Create Internal Transfer',
  description:
    'Moves money between profiles immediately. Returns the debit; the credit has the same group_id.',
  query: DryRunQuery,
  body: Closed({
    ref_id: Type.Optional(RefId),
    asset: AssetSymbol,
    amount: Amount('Amount to move.'),
    from_profile_id: Uuid('Profile to debit.'),
    to_profile_id: Uuid('Profile to credit.'),
    from_identity_id: Type.Optional(Uuid('Identity of the sender, recorded with the debit.')),
    from_account_id: Type.Optional(Uuid('Account of the sender, recorded with the debit.')),
    to_identity_id: Type.Optional(Uuid('Identity of the receiver, recorded with the credit.')),
    to_account_id: Type.Optional(Uuid('Account of the receiver, recorded with the credit.')),
    metadata: Type.Optional(Metadata),
    recipient_metadata: Type.Optional(Metadata),
    memo: Type.Optional(Text(256, 'Memo recorded with both legs.')),
  }),
  example: {
    bodies: {
      "From the default profile to an account's profile": {
        ref_id: 'internal-2026-0001',
        asset: 'USD',
        amount: '10.50',
        from_profile_id: EXAMPLE.profile_id,
        to_profile_id: EXAMPLE.account_profile_id,
      },
    },
  },
  reply: Transfer,
  problems: PAYMENT_PROBLEMS,
  async run({ query: { dry_run }, body, customerId, origin, requireCaller, ledger }) {
    const { from_profile_id, to_profile_id, amount } = body
    if (from_profile_id === to_profile_id) {
      throw problem.badRequest('to_profile_id must differ from from_profile_id', 'to_profile_id')
    }
    const symbol = body.asset
    const minor = minorToMove(symbol, amount)
    const sender = { identity_id: body.from_identity_id, account_id: body.from_account_id }
    const receiver = { identity_id: body.to_identity_id, account_id: body.to_account_id }
    const { transfer } = await ledger.submit(customerId, {
      ref_id: body.ref_id,
      receiver: body.to_identity_id === undefined && body.to_account_id === undefined ? undefined : receiver,
      payment: {
        type: 'INTERNAL_TRANSFER_DEBIT',
        ...{ profile_id: from_profile_id, ...sender, prefix: 'from_', staysWithCustomer: true },
        ...{ asset: symbol, destination: to_profile_id },
      },
      requireCaller,
      dryRun: dry_run,
      origin,
      balances: [
        { profile_id: from_profile_id, asset: symbol },
        { profile_id: to_profile_id, asset: symbol },
      ],
      decide(view) {
        view.requireOpen(to_profile_id)
        const { ref_id, memo, metadata } = body
        const how = { asset: symbol, minor, balanceAsset: symbol }
        return internalTransfer(
          customerId,
          {
            ...{ ref_id, memo, metadata, from_profile_id, to_profile_id },
            ...how,
            ...sender,
            receiver: { ...receiver, metadata: body.recipient_metadata ?? metadata },
          },
          view,
        )
      },
    })
    return transfer
  },
})

/** Returns an amount in minor units. Throws bad-request for an unknown asset or zero, and exceed-precision. */
export function minorToMove(symbol: string, amount: string): bigint {
  const asset = findAsset(symbol)
  if (asset === undefined) throw problem.badRequest(`asset ${symbol} is unknown`, 'asset')
  const minor = minorUnits('amount', amount, { asset: symbol, decimals: asset.decimals })
  if (minor === 0n) throw problem.badRequest('amount must be greater than zero', 'amount')
  return minor
}
