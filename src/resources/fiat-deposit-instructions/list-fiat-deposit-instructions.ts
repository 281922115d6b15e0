import { EXAMPLE } from '../../contract/example-records.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import { requireBankAccount } from '../../money/movements/fiat-withdrawal.ts'
import {
  FiatDepositInstructions,
  INSTRUCTIONS_COLUMNS,
  instructionsToWire,
  type InstructionsRow,
} from '../../money/records/fiat-deposit-instructions.ts'

export const listFiatDepositInstructions = listOperation({
  url: '/v2/transfer/fiat-deposit-instructions',
  scope: 'transfer:read_fiat_deposit_instructions',
  tag: 'Transfers',
  summary: 'List Fiat Deposit Instructions',
  description: "Lists the customer's deposit instructions, newest first.",
  example: { query: { profile_ids: [EXAMPLE.profile_id], limit: 10 } },
  list: 'fiat-deposit-instructions',
  item: FiatDepositInstructions,
  problems: ['unavailable'],
  select: `select ${INSTRUCTIONS_COLUMNS} from fiat_deposit_instructions`,
  sealed: 'fiat_deposit_instructions',
  filters: {
    ids: filterBy.ids('id', 'Filter by ids.'),
    profile_ids: filterBy.ids('profile_id', 'Filter by profiles.'),
    ref_ids: filterBy.texts('ref_id', 'Filter by ref_ids.'),
    networks: filterBy.values(
      'fiat_network',
      'Filter by fiat networks.',
      FiatDepositInstructions.properties.fiat_network,
    ),
    identity_ids: filterBy.ids('identity_id', 'Filter by identities.'),
    account_ids: filterBy.ids('account_id', 'Filter by accounts.'),
  },
  toWire: (row: InstructionsRow, { networks }) => instructionsToWire(row, requireBankAccount(networks)),
})
