import type { Queryable } from '../../db/database.ts'
import { problem } from '../../contract/problems.ts'

export const MEMBERS_MAX = 100

/** Requires that each identity is a member only once. Throws bad-request, naming `field`. */
export function requireDistinctMembers(members: readonly { identity_id: string }[], field: string): void {
  const ids = members.map(({ identity_id }) => identity_id)
  const again = ids.findIndex((id, index) => ids.indexOf(id) < index)
  if (again < 0) return
  throw problem.badRequest(
    `${field}.${again}.identity_id is that of ${field}.${ids.indexOf(ids[again]!)}; an identity is a member once`,
    `${field}.${again}.identity_id`,
  )
}

/** Requires that the customer has these identities. Throws not-found for the first that is missing. */
export async function requireIdentities(
  db: Queryable,
  customerId: string,
  ids: readonly string[],
): Promise<void> {
  const { rows } = await db.query<{ id: string }>(
    'select id from identities where customer_id = $1 and id = any ($2::uuid[])',
    [customerId, ids],
  )
  const found = new Set(rows.map(({ id }) => id))
  const missing = ids.find((id) => !found.has(id))
  if (missing !== undefined) throw problem.notFound('identity', missing)
}

/**
 * Requires that no identity is a member already, and that the limit of members is kept. Throws already-exists with
 * the existing member, or bad-request.
 */
export function requireNewMembers(
  present: readonly { identity_id: string }[],
  members: readonly { identity_id: string }[],
): void {
  for (const [index, { identity_id }] of members.entries()) {
    const existing = present.find((member) => member.identity_id === identity_id)
    if (existing !== undefined) throw problem.alreadyExists(`members.${index}.identity_id`, existing)
  }
  if (present.length + members.length > MEMBERS_MAX)
    throw problem.badRequest(
      `members: there may be ${MEMBERS_MAX} in all, and ${present.length} are there`,
      'members',
    )
}
