import { randomInt } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { inTransaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import { insertOnce } from './insert-once.ts'
import { newId, readClock } from '../../db/ids.ts'
import { Wire } from '../../contract/bank-wire.ts'
import { Metadata, NamedObject, NIL_UUID, OneOf, RefId, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { routingOf, type BankAccount } from '../../networks/bank/bank-account.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import { requireHolders } from './holders.ts'
import { lockOpenProfile } from './profile.ts'
import { audited } from '../../audit/audited.ts'
import { requireRoom } from './record-limits.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'

export const RoutingNumberType = OneOf(['ABA', 'SWIFT'], 'Kind of routing number.')

/** Instructions for a deposit by wire: the payer puts the memo_id on the wire, and the profile is credited. */
export const FiatDepositInstructions = NamedObject('FiatDepositInstructions', {
  id: Uuid('Id of the instructions.'),
  customer_id: Uuid('Customer id.'),
  profile_id: Uuid('Profile that is credited.'),
  memo_id: Type.String({ pattern: '^[A-Z0-9]{16}$', description: 'Memo that the deposit must carry.' }),
  status: OneOf(['VALID', 'DEPRECATED'], 'Status.'),
  fiat_network: OneOf(['WIRE'], 'Fiat network.'),
  fiat_network_instructions: Type.Object({ wire: Wire }),
  fiat_account_owner: Type.Object({ institution_details: Type.Object({ name: Type.String() }) }),
  ref_id: Type.Optional(RefId),
  identity_id: Uuid('Identity that deposits; the nil UUID where the record names none.'),
  account_id: Type.Optional(Uuid('Account that deposits.')),
  metadata: Type.Optional(Metadata),
  created_at: Timestamp('Creation time.'),
})
export type FiatDepositInstructions = Static<typeof FiatDepositInstructions>

export const INSTRUCTIONS_COLUMNS = `id, customer_id, profile_id, memo_id, status, fiat_network,
  routing_number_type, ref_id, identity_id, account_id, metadata, created_at`

type Stored = 'id' | 'customer_id' | 'profile_id' | 'memo_id' | 'status' | 'fiat_network' | 'created_at'
type Absent = 'ref_id' | 'identity_id' | 'account_id' | 'metadata'
export type InstructionsRow = Pick<FiatDepositInstructions, Stored> & {
  [K in Absent]: FiatDepositInstructions[K] | null
} & { routing_number_type: 'ABA' | 'SWIFT' }

/** Builds instructions with the current bank account for wires, which may differ from the account at their creation. */
export function instructionsToWire(
  { routing_number_type, ...row }: InstructionsRow,
  account: BankAccount,
): FiatDepositInstructions {
  const { account_number, account_owner, account_owner_address, bank_name, bank_address } = account
  return {
    ...(presentOf(row) as Pick<FiatDepositInstructions, Stored>),
    identity_id: row.identity_id ?? NIL_UUID,
    fiat_network_instructions: {
      wire: {
        account_number,
        fiat_account_owner_address: account_owner_address,
        routing_details: { ...routingOf(account, routing_number_type), bank_name, bank_address },
      },
    },
    fiat_account_owner: { institution_details: { name: account_owner } },
  }
}

export interface NewInstructions {
  profile_id: string
  fiat_network: 'WIRE'
  routing_number_type?: 'ABA' | 'SWIFT'
  ref_id?: string
  identity_id?: string
  account_id?: string
  metadata?: Record<string, string>
}

/**
 * Creates instructions for a profile. Throws not-found for the records they name, disabled for a deactivated profile,
 * already-exists for the ref_id, and bad-request for a kind of routing number that the bank account does not have.
 */
export async function insertInstructions(
  db: Database | Transaction,
  { account, rowMacs }: { account: BankAccount; rowMacs: RowMacs },
  customerId: string,
  body: NewInstructions,
  origin?: Origin,
): Promise<InstructionsRow> {
  const { routing_number_type } = routingOf(account, body.routing_number_type)
  if (body.routing_number_type !== undefined && body.routing_number_type !== routing_number_type)
    throw problem.badRequest(
      `routing_number_type ${body.routing_number_type} is not available for the bank account: it must be ${routing_number_type}`,
      'routing_number_type',
    )
  return insertOnce({
    constraint: 'fiat_deposit_instructions_ref_id',
    async find() {
      const known = await selectByRefId(db, rowMacs, customerId, body.ref_id)
      return known && instructionsToWire(known, account)
    },
    async insert() {
      return inTransaction(db, async (tx) => {
        await lockOpenProfile(tx, customerId, body.profile_id)
        await requireHolders(tx, customerId, body)
        await requireRoom(tx, customerId, 'fiat_deposit_instructions')
        const now = await readClock(tx)
        const { rows } = await tx.query<InstructionsRow>(
          `
        insert into fiat_deposit_instructions (customer_id, id, created_at, profile_id, memo_id, status, fiat_network,
                                               routing_number_type, ref_id, metadata, identity_id, account_id)
        values ($1, $2, $3, $4, $5, 'VALID', $6, $7, $8, $9, $10, $11)
        returning ${INSTRUCTIONS_COLUMNS}`,
          [
            customerId,
            newId(now),
            now.text,
            body.profile_id,
            newMemoId(),
            body.fiat_network,
            routing_number_type,
            body.ref_id,
            body.metadata,
            body.identity_id,
            body.account_id,
          ],
        )
        const made = rows[0]!
        await rowMacs.seal(tx, 'fiat_deposit_instructions', customerId, made.id)
        if (origin !== undefined)
          recordChanges(tx, customerId, now, [audited(origin, 'fiat_deposit_instructions.create', made.id)])
        return made
      })
    },
  })
}

/** Reads the customer's instructions with this id. Throws not-found. */
export async function requireInstructions(
  db: Queryable,
  macs: RowMacs,
  customerId: string,
  id: string,
): Promise<InstructionsRow> {
  const { rows } = await db.query<InstructionsRow>(
    `select ${INSTRUCTIONS_COLUMNS} from fiat_deposit_instructions where customer_id = $1 and id = $2`,
    [customerId, id],
  )
  const [found] = await macs.genuine(db, 'fiat_deposit_instructions', customerId, rows)
  if (found === undefined) throw problem.notFound('fiat deposit instructions', id)
  return found
}

async function selectByRefId(db: Queryable, macs: RowMacs, customerId: string, refId: string | undefined) {
  if (refId === undefined) return undefined
  const { rows } = await db.query<InstructionsRow>(
    `select ${INSTRUCTIONS_COLUMNS} from fiat_deposit_instructions where customer_id = $1 and ref_id = $2`,
    [customerId, refId],
  )
  return (await macs.genuine(db, 'fiat_deposit_instructions', customerId, rows))[0]
}

const MEMO_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const MEMO_LENGTH = 16

const newMemoId = () =>
  Array.from({ length: MEMO_LENGTH }, () => MEMO_ALPHABET[randomInt(MEMO_ALPHABET.length)]).join('')
