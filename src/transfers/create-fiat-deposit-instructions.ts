import { randomInt } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { violatedConstraint, type Queryable } from '../db/database.ts'
import { newId, readClock } from '../db/ids.ts'
import { Metadata, RefId, Uuid } from '../http/fields.ts'
import { operation } from '../http/operation.ts'
import { problem } from '../http/problems.ts'
import { selectProfiles } from '../ledger/balances.ts'
import {
  FiatDepositInstructions,
  INSTRUCTIONS_COLUMNS,
  instructionsToWire,
  RoutingNumberType,
  type InstructionsRow,
} from './fiat-deposit-instructions.ts'

const CreateFiatDepositInstructionsBody = Type.Object(
  {
    profile_id: Uuid('Profile to credit.'),
    fiat_network: Type.Enum(['WIRE'], { type: 'string', description: 'Fiat network.' }),
    routing_number_type: Type.Optional(RoutingNumberType),
    ref_id: Type.Optional(RefId),
    identity_id: Type.Optional(Uuid('Identity that deposits.')),
    account_id: Type.Optional(Uuid('Account that deposits.')),
    metadata: Type.Optional(Metadata),
  },
  { additionalProperties: false },
)
type Body = Static<typeof CreateFiatDepositInstructionsBody>

/** Creates deposit instructions (design section 6); their memo_id attributes a wire to the profile. */
export const createFiatDepositInstructions = operation({
  method: 'POST',
  url: '/v2/transfer/fiat-deposit-instructions',
  scope: 'transfer:write_fiat_deposit_instructions',
  tag: 'Transfers',
  summary: 'Create Fiat Deposit Instructions',
  body: CreateFiatDepositInstructionsBody,
  example: {
    profile_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
    fiat_network: 'WIRE',
    routing_number_type: 'ABA',
    ref_id: 'instructions-2026-0001',
    metadata: { order: '1041' },
  },
  reply: FiatDepositInstructions,
  problems: ['not-found', 'already-exists', 'unavailable'],
  async run({ body, customerId, db, settings }) {
    if (settings.mode !== 'sandbox') throw problem.unavailable('fiat_network WIRE is not connected to a bank')
    return instructionsToWire(await insertInstructions(db, customerId, body))
  },
})

/** Makes instructions for a profile. Throws not-found for the records they name, already-exists for the ref_id. */
export async function insertInstructions(
  db: Queryable,
  customerId: string,
  body: Body,
): Promise<InstructionsRow> {
  const known = await selectByRefId(db, customerId, body.ref_id)
  if (known !== undefined) throw problem.alreadyExists('ref_id', instructionsToWire(known))
  const profiles = await selectProfiles(db, customerId, [body.profile_id])
  if (!profiles.has(body.profile_id)) throw problem.notFound('profile', body.profile_id)
  // There are no identities and accounts yet, so that none can be found.
  if (body.account_id !== undefined) throw problem.notFound('account', body.account_id)
  if (body.identity_id !== undefined) throw problem.notFound('identity', body.identity_id)
  const now = await readClock(db)
  try {
    const { rows } = await db.query<InstructionsRow>(
      `
      insert into fiat_deposit_instructions (customer_id, id, created_at, profile_id, memo_id, status, fiat_network,
                                             routing_number_type, ref_id, metadata)
      values ($1, $2, $3, $4, $5, 'VALID', $6, $7, $8, $9)
      returning ${INSTRUCTIONS_COLUMNS}`,
      [
        customerId,
        newId(now),
        now.text,
        body.profile_id,
        newMemoId(),
        body.fiat_network,
        body.routing_number_type ?? 'ABA',
        body.ref_id,
        body.metadata,
      ],
    )
    return rows[0]!
  } catch (error) {
    if (violatedConstraint(error) !== 'fiat_deposit_instructions_ref_id') throw error
    // Another request with the same ref_id was first.
    const first = await selectByRefId(db, customerId, body.ref_id)
    throw problem.alreadyExists('ref_id', instructionsToWire(first!))
  }
}

async function selectByRefId(db: Queryable, customerId: string, refId: string | undefined) {
  if (refId === undefined) return undefined
  const { rows } = await db.query<InstructionsRow>(
    `select ${INSTRUCTIONS_COLUMNS} from fiat_deposit_instructions where customer_id = $1 and ref_id = $2`,
    [customerId, refId],
  )
  return rows[0]
}

const MEMO_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const MEMO_LENGTH = 16

const newMemoId = () =>
  Array.from({ length: MEMO_LENGTH }, () => MEMO_ALPHABET[randomInt(MEMO_ALPHABET.length)]).join('')
