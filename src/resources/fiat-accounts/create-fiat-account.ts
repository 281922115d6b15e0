import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Metadata, RefId, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { requireBank } from '../../money/movements/fiat-withdrawal.ts'
import { wireFault } from '../../contract/bank-identifiers.ts'
import {
  FiatAccount,
  FiatAccountOwner,
  FiatNetworkInstructions,
  insertFiatAccount,
} from '../../money/records/fiat-account.ts'

export const createFiatAccount = operation({
  method: 'POST',
  url: '/v2/transfer/fiat-accounts',
  scope: 'transfer:write_fiat_account',
  tag: 'Transfers',
  summary: 'Create Fiat Account',
  description: "Registers a bank account for fiat withdrawals. The sandbox's bank decides immediately.",
  body: Closed({
    fiat_account_owner: FiatAccountOwner,
    fiat_network_instructions: FiatNetworkInstructions,
    ref_id: Type.Optional(RefId),
    identity_id: Type.Optional(Uuid('Identity of the owner.')),
    account_id: Type.Optional(Uuid('Account of the owner.')),
    metadata: Type.Optional(Metadata),
  }),
  example: {
    bodies: {
      'The account of a person': {
        fiat_account_owner: { person_details: { first_name: 'Ada', last_name: 'Example' } },
        fiat_network_instructions: {
          wire: {
            account_number: '000987654321',
            routing_details: {
              routing_number_type: 'ABA',
              routing_number: '021000021',
              bank_name: 'First Example Bank',
            },
          },
        },
        identity_id: EXAMPLE.identity_id,
        ref_id: 'bank-2026-0001',
      },
    },
  },
  reply: FiatAccount,
  problems: ['not-found', 'already-exists', 'unavailable'],
  async run({ body, customerId, origin, db, networks }) {
    const { person_details, institution_details } = body.fiat_account_owner
    if ((person_details === undefined) === (institution_details === undefined)) {
      throw problem.badRequest(
        'fiat_account_owner must hold exactly one of person_details and institution_details',
        'fiat_account_owner',
      )
    }
    const bank = requireBank(networks)
    const { wire } = body.fiat_network_instructions
    const missing = bank.missingOfAccount?.(wire)
    if (missing !== undefined)
      throw problem.badRequest(
        `fiat_network_instructions.wire.${missing} is required to send a wire`,
        `fiat_network_instructions.wire.${missing}`,
      )
    const fault = wireFault(wire)
    if (fault !== undefined)
      throw problem.badRequest(
        `fiat_network_instructions.wire.${fault}`,
        `fiat_network_instructions.wire.${fault.split(' ')[0]!}`,
      )
    const accepted = await bank.acceptsAccount?.(wire.account_number ?? '')
    const account = { ...body, status: accepted ? ('APPROVED' as const) : ('REJECTED' as const) }
    return insertFiatAccount(db, customerId, account, origin)
  },
})
