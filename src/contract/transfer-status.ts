import { Type, type Static } from 'typebox'

export const SecondaryStatusName = Type.Enum(
  ['TRAVEL_RULE_INFO_REQUESTED', 'TRAVEL_RULE_REJECTED', 'CUSTOMER_REJECTED', 'PENDING_CUSTOMER_APPROVAL'],
  { type: 'string' },
)

export const SecondaryStatus = Type.Object(
  { name: SecondaryStatusName, detail: Type.String() },
  { description: 'Finer-grained explanation of the status.' },
)
export type SecondaryStatus = Static<typeof SecondaryStatus>

const destination = { message: Type.String(), destination_address: Type.String() }
export const StatusDetails = Type.Object(
  {
    missing_trustline: Type.Optional(Type.Object({ ...destination, asset: Type.String() })),
    max_rent_exceeded: Type.Optional(Type.Object(destination)),
    stale_fee_quote: Type.Optional(Type.Object({ message: Type.String() })),
    invalid_destination_address: Type.Optional(Type.Object(destination)),
    pending_customer_approval: Type.Optional(
      Type.Object({
        message: Type.String(),
        approval_id: Type.Optional(
          Type.String({
            description: 'The approval that it waits for; absent where a magic address simulates it.',
          }),
        ),
        required: Type.Optional(Type.Integer({ description: 'How many different approvers must approve.' })),
        role: Type.Optional(Type.String({ description: 'The role that approvers need.' })),
      }),
    ),
    conflicting_transaction: Type.Optional(Type.Object({ message: Type.String() })),
  },
  { maxProperties: 1, description: 'Why the transfer is in its state, where there is more to say.' },
)
export type StatusDetails = Static<typeof StatusDetails>
