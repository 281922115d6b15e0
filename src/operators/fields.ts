import { Type, type Static } from 'typebox'
import { ROLES } from '../contract/roles.ts'
import { Text, Timestamp, Uuid } from '../contract/fields.ts'
import { presentOf } from '../db/rows.ts'
import type { Operator } from './operators.ts'
import type { Passkey } from './passkeys.ts'
import type { Session } from './sessions.ts'

/** Operators, their sessions and passkeys as the API shows them. */

export const OperatorBody = Type.Object(
  {
    id: Uuid('Operator id.'),
    name: Type.String({ description: 'Its name.' }),
    role: Type.Enum([...ROLES], { type: 'string', description: 'Its role.' }),
    customer_id: Type.Optional(
      Uuid('The only customer that it may act for; absent where it may act for any.'),
    ),
  },
  { $id: 'Operator' },
)

export const operatorToWire = ({ id, name, role, customer_id }: Operator): Static<typeof OperatorBody> => ({
  id,
  name,
  role,
  ...presentOf({ customer_id }),
})

export const SessionBody = Type.Object(
  {
    id: Uuid('Session id.'),
    operator_id: Uuid('The operator who signed in.'),
    method: Type.Enum(['LINK', 'PASSKEY', 'OPENID'], {
      type: 'string',
      description: 'How the operator signed in.',
    }),
    status: Type.Enum(['OPEN', 'ENDED'], {
      type: 'string',
      description: 'ENDED: it was ended or has expired.',
    }),
    created_at: Timestamp('Time of the sign-in.'),
    last_used_at: Timestamp('When it took its latest access token.'),
    expires_at: Timestamp('When it ends at the latest.'),
    ended_at: Type.Optional(Timestamp('When it was ended.')),
  },
  { $id: 'OperatorSession' },
)

export const sessionToWire = (session: Session): Static<typeof SessionBody> => ({
  id: session.id,
  operator_id: session.operator_id,
  method: session.method,
  status: session.is_open ? 'OPEN' : 'ENDED',
  created_at: session.created_at,
  last_used_at: session.used_at,
  expires_at: session.expires_at,
  ...presentOf({ ended_at: session.ended_at }),
})

const PasskeyBody = Type.Object(
  {
    id: Uuid('Passkey id.'),
    operator_id: Uuid('Its operator.'),
    name: Type.String({ description: 'The name that the operator gave it.' }),
    created_at: Timestamp('When it was added.'),
    last_used_at: Type.Optional(Timestamp('The latest sign-in with it.')),
  },
  { $id: 'OperatorPasskey' },
)

export const passkeyToWire = ({
  id,
  operator_id,
  name,
  created_at,
  used_at,
}: Passkey): Static<typeof PasskeyBody> => ({
  id,
  operator_id,
  name,
  created_at,
  ...presentOf({ last_used_at: used_at }),
})

/** The secret of a session, in a request. */
export const SessionSecret = Text(100, 'The secret of the session, from the sign-in.', 1)
