import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import { requireBankAccount } from '../movements/fiat-withdrawal.ts'
import {
  FiatDepositInstructions,
  INSTRUCTIONS_COLUMNS,
  instructionsToWire,
  type InstructionsRow,
} from '../records/fiat-deposit-instructions.ts'

/** Lists the customer's deposit instructions, by creation time (API behaviour, Fiat deposit instructions). */
export const listFiatDepositInstructions = operation({
  method: 'GET',
  url: '/v2/transfer/fiat-deposit-instructions',
  scope: 'transfer:read_fiat_deposit_instructions',
  tag: 'Transfers',
  summary: 'List Fiat Deposit Instructions',
  description: "Lists the customer's deposit instructions, newest first.",
  example: { query: { profile_ids: [EXAMPLE.profile_id], limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by ids.'),
      profile_ids: Filter(FilterValue, 'Filter by profiles.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      networks: Filter(FiatDepositInstructions.properties.fiat_network, 'Filter by fiat networks.'),
      identity_ids: Filter(FilterValue, 'Filter by identities.'),
      account_ids: Filter(FilterValue, 'Filter by accounts.'),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(FiatDepositInstructions),
  problems: ['unavailable'],
  run: ({ query, customerId, db, networks }) =>
    listByCreation(db, customerId, query, {
      list: 'fiat-deposit-instructions',
      select: `select ${INSTRUCTIONS_COLUMNS} from fiat_deposit_instructions`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['profile_id = any (?::uuid[])', uuidsOf(query.profile_ids)],
        ['ref_id = any (?)', query.ref_ids],
        ['fiat_network = any (?)', query.networks],
        ['identity_id = any (?::uuid[])', uuidsOf(query.identity_ids)],
        ['account_id = any (?::uuid[])', uuidsOf(query.account_ids)],
      ],
      toWire: (row: InstructionsRow) => instructionsToWire(row, requireBankAccount(networks)),
    }),
})
