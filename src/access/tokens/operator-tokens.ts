import type { JWTPayload } from 'jose'
import { scopesOfRole, type Role } from '../../contract/roles.ts'
import type { Database } from '../../db/database.ts'
import { invalidToken } from '../../http/authenticate.ts'
import { uuidsOf } from '../../http/lists.ts'
import type { Caller } from '../../http/operation.ts'
import { scopesIn } from './jwt.ts'

/** Access tokens of operators: JWTs like those of API clients that also name the operator and its session. */

/** Lifetime of an operator's access token. The session takes the next token. */
export const OPERATOR_TOKEN_SECONDS = 10 * 60

export interface OperatorGrant {
  operatorId: string
  sessionId: string
  generation: number
  customerId: string
  scopes: readonly string[]
  /** Until the session expires, in whole seconds; the token does not outlive it. */
  secondsLeft: number
}

export const ENDED = 'the session of the access token has ended'
export const CHANGED =
  'the operator of the access token was changed or disabled; take a new token from the session, or sign in again'

export const operatorClaims = ({
  operatorId,
  sessionId,
  generation,
  customerId,
  scopes,
}: OperatorGrant): JWTPayload & { sub: string } => ({
  sub: operatorId,
  // RFC 9068, 2.2 requires client_id.
  client_id: operatorId,
  operator_id: operatorId,
  session_id: sessionId,
  generation,
  customer_id: customerId,
  scope: scopes.join(' '),
})

/**
 * The caller of an operator's token whose signature is verified. Throws the 401 problem unless the token's session is open
 * and the operator is enabled, still has the role, and may act for the customer.
 */
export async function operatorOf(
  db: Database,
  customerId: string,
  { operator_id, session_id, generation, scope }: JWTPayload,
): Promise<Omit<Caller, 'customerId'>> {
  const { rows } = await db.query<{
    operator_id: string
    session_id: string
    role: Role
    customer_id: string | null
    generation: number
    is_enabled: boolean
    is_open: boolean
  }>(
    `
    select o.id as operator_id, s.id as session_id, o.role, o.customer_id, o.generation,
           o.disabled_at is null as is_enabled,
           s.ended_at is null and s.expires_at > clock_timestamp() as is_open
    from operator_sessions s
    join operators o on o.id = s.operator_id
    where s.id = any ($1::uuid[]) and o.id = any ($2::uuid[])`,
    [uuidsOf([String(session_id)]), uuidsOf([String(operator_id)])],
  )
  const [found] = rows
  if (!found?.is_open) throw invalidToken(ENDED)
  if (!found.is_enabled || found.generation !== generation) throw invalidToken(CHANGED)
  if (found.customer_id !== null && found.customer_id !== customerId)
    throw invalidToken('the operator of the access token may not act for its customer')
  const ofRole: readonly string[] = scopesOfRole(found.role, 'sandbox')
  return {
    clientId: found.operator_id,
    scopes: scopesIn(scope).filter((name) => ofRole.includes(name)),
    actor: { type: 'OPERATOR', id: found.operator_id },
    session: { id: found.session_id, generation: found.generation },
  }
}
