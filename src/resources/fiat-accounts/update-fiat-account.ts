import { isDeepStrictEqual } from 'node:util'
import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Metadata, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { repeated, requireUnchanged } from '../../contract/read-only.ts'
import { operation } from '../operation.ts'
import {
  FIAT_ACCOUNT_COLUMNS,
  FiatAccount,
  FiatAccountOwner,
  fiatAccountToWire,
  FiatNetworkInstructions,
  requireFiatAccount,
  type FiatAccountRow,
} from '../../money/records/fiat-account.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { transaction } from '../../db/database.ts'

const READ_ONLY = [
  'id',
  'customer_id',
  'status',
  'ref_id',
  'identity_id',
  'account_id',
  'created_at',
  'updated_at',
] as const

/**
 * Changes a fiat account's metadata (API behaviour, Fiat accounts). Owner and bank details never change: wires under way
 * read them when they are sent, and their MAC covers them.
 */
export const updateFiatAccount = operation({
  method: 'PUT',
  url: '/v2/transfer/fiat-accounts/:id',
  scope: 'transfer:write_fiat_account',
  tag: 'Transfers',
  summary: 'Update Fiat Account',
  description:
    'Replaces the metadata. All other members may be repeated but not changed: create a new fiat account for other bank details.',
  params: Type.Object({ id: Uuid('Id of the fiat account.') }),
  body: Closed(
    {
      metadata: Type.Optional(Metadata),
      fiat_account_owner: Type.Optional(FiatAccountOwner),
      fiat_network_instructions: Type.Optional(FiatNetworkInstructions),
      ...repeated(FiatAccount, READ_ONLY),
    },
    { minProperties: 1 },
  ),
  example: {
    params: { id: EXAMPLE.fiat_account_id },
    bodies: { 'Other metadata': { metadata: { department: 'Payroll' } } },
  },
  reply: FiatAccount,
  problems: ['not-found'],
  async run({ params, body, customerId, origin, db }) {
    const { metadata, fiat_account_owner, fiat_network_instructions, ...others } = body
    const fixed = { fiat_account_owner, fiat_network_instructions }
    const known = await requireFiatAccount(db, customerId, params.id)
    for (const field of ['fiat_account_owner', 'fiat_network_instructions'] as const) {
      if (fixed[field] !== undefined && !isDeepStrictEqual(fixed[field], known[field]))
        throw problem.badRequest(
          `${field} cannot be changed: create a new fiat account with POST /v2/transfer/fiat-accounts, and delete this one`,
          field,
        )
    }
    requireUnchanged(others, known)
    if (metadata === undefined) return known
    return transaction(db, async (tx) => {
      const { rows } = await tx.query<FiatAccountRow>(
        `
        update fiat_accounts
        set metadata = $3, updated_at = (select clock_timestamp())
        where customer_id = $1 and id = $2 and deleted_at is null
        returning ${FIAT_ACCOUNT_COLUMNS}`,
        [customerId, params.id, metadata],
      )
      if (rows[0] === undefined) throw problem.notFound('fiat account', params.id)
      await recordNow(tx, customerId, audited(origin, 'fiat_account.update', params.id))
      return fiatAccountToWire(rows[0])
    })
  },
})
