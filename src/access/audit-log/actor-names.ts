import type { Actor, NamedActor } from '../../contract/actor.ts'
import type { Approval } from '../../contract/approval.ts'
import { forAll, type Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'

/** Whether a token is of the platform's people, who see each other's names. */
export const namesAll = (scopes: readonly string[]): boolean => scopes.includes('operators:read_customer')

/** Gives an actor its name, where it has one. */
export type NamedActors = (actor: Actor) => NamedActor

/**
 * Reads the names that people gave to these API clients and operators of a customer, or of the platform. A customer does not
 * see the names of the platform's people who work on its records; the platform's people do (`namesAll`).
 */
export async function nameActors(
  db: Queryable,
  customerId: string,
  actors: readonly { type: string; id: string }[],
  allOperators = false,
): Promise<NamedActors> {
  const idsOf = (type: string) => [
    ...new Set(actors.flatMap((actor) => (actor.type === type ? actor.id : []))),
  ]
  const [clients, operators] = [idsOf('API_CLIENT'), idsOf('OPERATOR')]
  const names = new Map<string, string>()
  if (clients.length > 0) {
    const { rows } = await db.query<{ id: string; name: string | null }>(
      'select id, name from api_clients where customer_id = $1 and id::text = any ($2::text[])',
      [customerId, clients],
    )
    for (const { id, name } of rows) if (name !== null) names.set(id, name)
  }
  if (operators.length > 0) {
    const { rows } = await forAll(db).query<{ id: string; name: string }>(
      'select id, name from operators where (coalesce(customer_id, $1) = $2 or $4) and id::text = any ($3::text[])',
      [PLATFORM_ID, customerId, operators, allOperators],
    )
    for (const { id, name } of rows) names.set(id, name)
  }
  return ({ type, id }) => {
    const name = type === 'API_CLIENT' || type === 'OPERATOR' ? names.get(id) : undefined
    return { type, id, ...(name !== undefined && { name }) }
  }
}

/** Adds the names of those who asked for these approvals. */
export async function nameInitiators(
  db: Queryable,
  customerId: string,
  approvals: readonly Approval[],
  allOperators: boolean,
): Promise<Approval[]> {
  const named = await nameActors(
    db,
    customerId,
    approvals.map(({ initiator }) => initiator),
    allOperators,
  )
  return approvals.map((approval) => ({ ...approval, initiator: named(approval.initiator) }))
}

export async function operatorName(db: Queryable, id: string): Promise<string> {
  const { rows } = await forAll(db).query<{ name: string }>('select name from operators where id = $1', [id])
  return rows[0]!.name
}
