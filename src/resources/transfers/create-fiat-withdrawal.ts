import { Type } from 'typebox'
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
  WIRE_MEMO_LENGTH_MAX,
} from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { fiatWithdrawal, wireAmount } from '../../money/movements/fiat-withdrawal.ts'
import { FIAT_ACCOUNTS, requirePayable } from '../../money/records/fiat-account.ts'
import { need } from '../../money/records/need.ts'
import { Transfer } from '../../money/ledger/transfer.ts'
import { PAYMENT_PROBLEMS } from '../../contract/problems.ts'

export const createFiatWithdrawal = operation({
  method: 'POST',
  url: '/v2/transfer/fiat-withdrawals',
  scope: 'transfer:write_fiat_withdrawal',
  tag: 'Transfers',
  takesMoney: true,
  summary: 'Create Fiat Withdrawal',
  description:
    'Sends USD to a bank account by wire. The transfer is PENDING; its total is debited immediately.',
  query: DryRunQuery,
  body: Closed({
    profile_id: Uuid('Profile to withdraw from.'),
    asset: AssetSymbol,
    fiat_account_id: Uuid('Fiat account to pay, from POST /v2/transfer/fiat-accounts.'),
    amount: Type.Optional(Amount('Amount to withdraw. Exactly one of amount and total.')),
    total: Type.Optional(Amount('Total to withdraw, fee included. Exactly one of amount and total.')),
    ref_id: Type.Optional(RefId),
    identity_id: Type.Optional(Uuid('Identity of the user making the withdrawal.')),
    account_id: Type.Optional(Uuid('Account of the identity making the withdrawal.')),
    memo: Type.Optional(Text(WIRE_MEMO_LENGTH_MAX, 'Memo sent with the wire.')),
    metadata: Type.Optional(Metadata),
  }),
  example: {
    bodies: {
      'A wire to a bank account': {
        profile_id: EXAMPLE.profile_id,
        asset: 'USD',
        fiat_account_id: EXAMPLE.fiat_account_id,
        amount: '40.00',
        ref_id: 'wire-2026-0001',
        memo: 'Invoice 1041',
      },
    },
  },
  reply: Transfer,
  problems: [...PAYMENT_PROBLEMS, 'below-min-withdraw-limit', 'exceed-max-withdraw-limit', 'unavailable'],
  async run({ query: { dry_run }, body, customerId, origin, requireCaller, ledger, networks }) {
    const minor = wireAmount(body, networks)
    const { profile_id, identity_id, account_id, asset, fiat_account_id } = body
    const { transfer } = await ledger.submit(customerId, {
      ref_id: body.ref_id,
      payment: {
        type: 'WIRE_WITHDRAWAL',
        ...{ profile_id, identity_id, account_id, asset, destination: fiat_account_id },
      },
      requireCaller,
      dryRun: dry_run,
      origin,
      balances: [{ profile_id, asset }],
      needs: [need(FIAT_ACCOUNTS, fiat_account_id)],
      decide(view) {
        const fiat_account = requirePayable(view.get(FIAT_ACCOUNTS, fiat_account_id), fiat_account_id)
        return fiatWithdrawal(customerId, { ...body, fiat_account, minor, balanceAsset: asset }, view)
      },
    })
    return transfer
  },
})
