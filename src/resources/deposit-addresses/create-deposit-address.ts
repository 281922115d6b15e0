import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Metadata, Network, RefId, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import {
  ConversionTarget,
  DepositAddress,
  insertDepositAddress,
} from '../../money/records/deposit-address.ts'

export const createDepositAddress = operation({
  method: 'POST',
  url: '/v2/transfer/deposit-addresses',
  scope: 'transfer:write_deposit_address',
  tag: 'Transfers',
  summary: 'Create Deposit Address',
  description:
    'Creates an address. Deposits to it over its network, or over a network with the same addresses, are credited to the profile.',
  body: Closed({
    profile_id: Uuid('Profile to credit.'),
    crypto_network: Network,
    identity_id: Type.Optional(Uuid('Identity that deposits.')),
    account_id: Type.Optional(Uuid('Account that deposits.')),
    ref_id: Type.Optional(RefId),
    metadata: Type.Optional(Metadata),
    conversion_target_asset: Type.Optional(ConversionTarget),
  }),
  example: {
    bodies: {
      'An Ethereum address whose stablecoins become USD': {
        profile_id: EXAMPLE.profile_id,
        crypto_network: 'ETHEREUM',
        ref_id: 'address-2026-0001',
        conversion_target_asset: 'USD',
      },
    },
  },
  reply: DepositAddress,
  problems: ['not-found', 'identity-verification-required', 'disabled', 'already-exists', 'unavailable'],
  run: ({ body, customerId, origin, db, networks, rowMacs }) =>
    insertDepositAddress(db, { networks, rowMacs }, customerId, body, { origin }),
})
