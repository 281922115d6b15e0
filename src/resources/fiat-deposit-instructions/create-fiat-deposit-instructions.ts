import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Metadata, OneOf, RefId, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { requireBankAccount } from '../../money/movements/fiat-withdrawal.ts'
import {
  FiatDepositInstructions,
  insertInstructions,
  instructionsToWire,
  RoutingNumberType,
} from '../../money/records/fiat-deposit-instructions.ts'

const CreateFiatDepositInstructionsBody = Closed({
  profile_id: Uuid('Profile to credit.'),
  fiat_network: OneOf(['WIRE'], 'Fiat network.'),
  routing_number_type: Type.Optional(RoutingNumberType),
  ref_id: Type.Optional(RefId),
  identity_id: Type.Optional(Uuid('Identity that deposits.')),
  account_id: Type.Optional(Uuid('Account that deposits.')),
  metadata: Type.Optional(Metadata),
})

export const createFiatDepositInstructions = operation({
  method: 'POST',
  url: '/v2/transfer/fiat-deposit-instructions',
  scope: 'transfer:write_fiat_deposit_instructions',
  tag: 'Transfers',
  summary: 'Create Fiat Deposit Instructions',
  description:
    'Creates instructions for wires: the bank account, and the memo_id that a wire needs for the profile to be credited.',
  body: CreateFiatDepositInstructionsBody,
  example: {
    bodies: {
      'Wires to a profile': {
        profile_id: EXAMPLE.profile_id,
        fiat_network: 'WIRE',
        routing_number_type: 'ABA',
        ref_id: 'instructions-2026-0001',
        metadata: { order: '1041' },
      },
    },
  },
  reply: FiatDepositInstructions,
  problems: ['not-found', 'disabled', 'already-exists', 'unavailable'],
  async run({ body, customerId, origin, db, networks, rowMacs }) {
    const account = requireBankAccount(networks)
    const made = await insertInstructions(db, { account, rowMacs }, customerId, body, origin)
    return instructionsToWire(made, account)
  },
})
