import { Type, type Static } from 'typebox'
import { Wire } from '../http/bank-wire.ts'
import { Metadata, RefId, Timestamp, Uuid } from '../http/fields.ts'

export const RoutingNumberType = Type.Enum(['ABA', 'SWIFT'], {
  type: 'string',
  description: 'Kind of routing number.',
})

/** Instructions for a deposit by wire: whoever pays puts the memo_id on it, and the profile is credited. */
export const FiatDepositInstructions = Type.Object(
  {
    id: Uuid('Id of the instructions.'),
    customer_id: Uuid('Customer id.'),
    profile_id: Uuid('Profile that is credited.'),
    memo_id: Type.String({ pattern: '^[A-Z0-9]{16}$', description: 'Memo that the deposit must carry.' }),
    status: Type.Enum(['VALID', 'DEPRECATED'], { type: 'string', description: 'Status.' }),
    fiat_network: Type.Enum(['WIRE'], { type: 'string' }),
    fiat_network_instructions: Type.Object({ wire: Wire }),
    fiat_account_owner: Type.Object({ institution_details: Type.Object({ name: Type.String() }) }),
    ref_id: Type.Optional(RefId),
    identity_id: Type.Optional(Uuid('Identity that deposits.')),
    account_id: Type.Optional(Uuid('Account that deposits.')),
    metadata: Type.Optional(Metadata),
    created_at: Timestamp('Creation time.'),
  },
  { $id: 'FiatDepositInstructions' },
)
export type FiatDepositInstructions = Static<typeof FiatDepositInstructions>

export const INSTRUCTIONS_COLUMNS = `id, customer_id, profile_id, memo_id, status, fiat_network,
  routing_number_type, ref_id, identity_id, account_id, metadata, created_at`

type Stored = 'id' | 'customer_id' | 'profile_id' | 'memo_id' | 'status' | 'fiat_network' | 'created_at'
type Absent = 'ref_id' | 'identity_id' | 'account_id' | 'metadata'
export type InstructionsRow = Pick<FiatDepositInstructions, Stored> & {
  [K in Absent]: FiatDepositInstructions[K] | null
} & { routing_number_type: 'ABA' | 'SWIFT' }

/** The sandbox's bank. The routing number is the example one that banks' own documents use. */
const BANK_ADDRESS = {
  country: 'US',
  address1: '1 Sandbox Plaza',
  city: 'New York',
  province: 'NY',
  zip_code: '10001',
}
const ROUTING_NUMBER = { ABA: '021000021', SWIFT: 'BRSRUS33XXX' }

export function instructionsToWire({
  routing_number_type,
  ...row
}: InstructionsRow): FiatDepositInstructions {
  const present = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
  return {
    ...(present as Pick<FiatDepositInstructions, Stored>),
    fiat_network_instructions: {
      wire: {
        account_number: '000123456789',
        fiat_account_owner_address: BANK_ADDRESS,
        routing_details: {
          routing_number_type,
          routing_number: ROUTING_NUMBER[routing_number_type],
          bank_name: 'Bursar Sandbox Bank',
          bank_address: BANK_ADDRESS,
        },
      },
    },
    fiat_account_owner: { institution_details: { name: 'Bursar Sandbox' } },
  }
}
