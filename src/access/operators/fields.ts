import type { Role } from '../../contract/roles.ts'
import { Text } from '../../contract/fields.ts'
import { presentOf } from '../../db/rows.ts'
import type { Operator } from './operators.ts'
import type { Passkey } from './passkeys.ts'
import type { Session, SignInMethod } from './sessions.ts'

/** Operators, their sessions and passkeys as the API shows them (docs/reference/operators.md). */

interface ShownOperator {
  id: string
  name: string
  role: Role
  /** The only customer that it may act for; absent where it may act for any. */
  customer_id?: string
}

export const operatorToWire = ({ id, name, role, customer_id }: Operator): ShownOperator => ({
  id,
  name,
  role,
  ...presentOf({ customer_id }),
})

interface AdministeredOperator extends ShownOperator {
  status: 'ACTIVE' | 'DISABLED'
  created_at: string
  updated_at: string
  disabled_at?: string
}

/** An operator as the ADMINs of its customer see it. */
export const administeredToWire = (operator: Operator): AdministeredOperator => ({
  ...operatorToWire(operator),
  status: operator.disabled_at === null ? 'ACTIVE' : 'DISABLED',
  created_at: operator.created_at,
  updated_at: operator.updated_at,
  ...presentOf({ disabled_at: operator.disabled_at }),
})

interface ShownSession {
  id: string
  operator_id: string
  method: SignInMethod
  /** ENDED: it was ended, or has expired. */
  status: 'OPEN' | 'ENDED'
  created_at: string
  /** When it took its latest access token. */
  last_used_at: string
  /** When it ends at the latest. */
  expires_at: string
  ended_at?: string
}

export const sessionToWire = (session: Session): ShownSession => ({
  id: session.id,
  operator_id: session.operator_id,
  method: session.method,
  status: session.is_open ? 'OPEN' : 'ENDED',
  created_at: session.created_at,
  last_used_at: session.used_at,
  expires_at: session.expires_at,
  ...presentOf({ ended_at: session.ended_at }),
})

interface ShownPasskey {
  id: string
  operator_id: string
  /** The name that the operator gave it. */
  name: string
  created_at: string
  /** The latest sign-in with it. */
  last_used_at?: string
}

export const passkeyToWire = ({ id, operator_id, name, created_at, used_at }: Passkey): ShownPasskey => ({
  id,
  operator_id,
  name,
  created_at,
  ...presentOf({ last_used_at: used_at }),
})

export const SessionSecret = Text(100, 'The secret of the session, from the sign-in.', 1)
