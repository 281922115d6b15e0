import { Type, type Static } from 'typebox'
import { OneOf, Text, Timestamp, Uuid } from '../../contract/fields.ts'
import { ROLES } from '../../contract/roles.ts'
import { presentOf } from '../../db/rows.ts'
import type { Operator } from './operators.ts'
import type { Passkey } from './passkeys.ts'
import { SIGN_IN_METHODS, type Session } from './sessions.ts'

/** Operators, their sessions and passkeys as the API shows them (docs/reference/operators.md). */

const ShownOperator = Type.Object({
  id: Uuid('Operator.'),
  name: Type.String({ description: 'Its name.' }),
  role: OneOf(ROLES, 'What it may do.'),
  customer_id: Type.Optional(Uuid('The only customer that it may act for; absent where it may act for any.')),
})

export const operatorToWire = ({ id, name, role, customer_id }: Operator): Static<typeof ShownOperator> => ({
  id,
  name,
  role,
  ...presentOf({ customer_id }),
})

/** An operator as the ADMINs of its customer see it. */
export const AdministeredOperator = Type.Object({
  ...ShownOperator.properties,
  status: OneOf(['ACTIVE', 'DISABLED'], 'Whether it has access.'),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
  disabled_at: Type.Optional(Timestamp('When its access ended.')),
})

export const administeredToWire = (operator: Operator): Static<typeof AdministeredOperator> => ({
  ...operatorToWire(operator),
  status: operator.disabled_at === null ? 'ACTIVE' : 'DISABLED',
  created_at: operator.created_at,
  updated_at: operator.updated_at,
  ...presentOf({ disabled_at: operator.disabled_at }),
})

export const ShownSession = Type.Object({
  id: Uuid('Session.'),
  operator_id: Uuid('Operator.'),
  method: OneOf(SIGN_IN_METHODS, 'How it was opened.'),
  status: OneOf(['OPEN', 'ENDED'], 'ENDED: it was ended, or has expired.'),
  created_at: Timestamp('When it was opened.'),
  last_used_at: Timestamp('When it took its latest access token.'),
  expires_at: Timestamp('When it ends at the latest.'),
  ended_at: Type.Optional(Timestamp('When it was ended.')),
})

export const sessionToWire = (session: Session): Static<typeof ShownSession> => ({
  id: session.id,
  operator_id: session.operator_id,
  method: session.method,
  status: session.is_open ? 'OPEN' : 'ENDED',
  created_at: session.created_at,
  last_used_at: session.used_at,
  expires_at: session.expires_at,
  ...presentOf({ ended_at: session.ended_at }),
})

export const ShownPasskey = Type.Object({
  id: Uuid('Passkey.'),
  operator_id: Uuid('Operator.'),
  name: Type.String({ description: 'The name that the operator gave it.' }),
  created_at: Timestamp('When it was added.'),
  last_used_at: Type.Optional(Timestamp('The latest sign-in with it.')),
})

export const passkeyToWire = ({
  id,
  operator_id,
  name,
  created_at,
  used_at,
}: Passkey): Static<typeof ShownPasskey> => ({
  id,
  operator_id,
  name,
  created_at,
  ...presentOf({ last_used_at: used_at }),
})

export const SessionSecret = Text(100, 'The secret of the session, from the sign-in.', 1)
