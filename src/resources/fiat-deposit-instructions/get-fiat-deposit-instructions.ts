import { EXAMPLE } from '../../contract/example-records.ts'
import { readOperation } from '../operation.ts'
import { requireBankAccount } from '../../money/movements/fiat-withdrawal.ts'
import {
  FiatDepositInstructions,
  instructionsToWire,
  requireInstructions,
} from '../../money/records/fiat-deposit-instructions.ts'

export const getFiatDepositInstructions = readOperation({
  url: '/v2/transfer/fiat-deposit-instructions/:id',
  scope: 'transfer:read_fiat_deposit_instructions',
  tag: 'Transfers',
  summary: 'Get Fiat Deposit Instructions',
  description: 'Reads deposit instructions, with the bank account that wires go to now.',
  id: 'Id of the instructions.',
  example: EXAMPLE.instructions_id,
  reply: FiatDepositInstructions,
  problems: ['not-found', 'unavailable'],
  async run({ params, customerId, db, networks, rowMacs }) {
    const account = requireBankAccount(networks)
    return instructionsToWire(await requireInstructions(db, rowMacs, customerId, params.id), account)
  },
})
