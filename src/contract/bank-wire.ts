import { Type } from 'typebox'
import { Free, Text } from './fields.ts'

const Line = Text(200, 'Text.')

/** A postal address (API behaviour, Fiat accounts). Other members are kept. */
export const Address = Type.Object(
  {
    country: Type.Optional(Line),
    address1: Type.Optional(Line),
    address2: Type.Optional(Line),
    city: Type.Optional(Line),
    province: Type.Optional(Line),
    zip_code: Type.Optional(Line),
  },
  { additionalProperties: true },
)

/**
 * The other party's bank details of a wire (API behaviour, Fiat accounts). All members are optional in the contract.
 * Other members are kept; the object has at most 8 KiB.
 */
export const Wire = Type.Object(
  {
    account_number: Type.Optional(Line),
    fiat_account_owner_address: Type.Optional(Address),
    routing_details: Type.Optional(
      Type.Object(
        {
          routing_number_type: Type.Optional(Line),
          routing_number: Type.Optional(Line),
          bank_name: Type.Optional(Line),
          bank_address: Type.Optional(Address),
        },
        { additionalProperties: true },
      ),
    ),
  },
  Free,
)
