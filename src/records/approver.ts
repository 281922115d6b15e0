import { isDeepStrictEqual } from 'node:util'
import type { Actor } from '../contract/actor.ts'
import type { Queryable } from '../db/database.ts'
import type { ApproverKey } from './approval-statement.ts'

/** The roles that a requirement can name. An ADMIN may approve wherever an APPROVER may. */
export const APPROVER_ROLES = ['APPROVER', 'ADMIN'] as const
export type ApproverRole = (typeof APPROVER_ROLES)[number]

/** Who may approve, and with which key. Only the schema's owner writes it (migration 049). */
export interface Approver {
  id: string
  created_at: string
  name: string
  /** The same person as an operator, and as an API client. */
  operator_id: string | null
  client_id: string | null
  role: string
  key: ApproverKey
  status: 'ACTIVE' | 'REVOKED'
  revoked_at: string | null
}

/** Reads the customer's approvers, the revoked ones, too. There are few: each was added by hand. */
export async function selectApprovers(db: Queryable, customerId: string): Promise<Approver[]> {
  const { rows } = await db.query<Approver>(
    `
    select id, created_at, name, operator_id, client_id, role, key, status, revoked_at
    from approvers
    where customer_id = $1
    order by id`,
    [customerId],
  )
  return rows
}

/** Whether an approver of one role may decide where another is required. */
export const hasRole = (role: string, required: string): boolean => role === required || role === 'ADMIN'

/** Whether two entries are one person: the same operator, API client, name or key. */
const isSamePerson = (one: Approver, other: Approver): boolean =>
  (one.operator_id !== null && one.operator_id === other.operator_id) ||
  (one.client_id !== null && one.client_id === other.client_id) ||
  nameOf(one.name) === nameOf(other.name) ||
  isDeepStrictEqual([one.key.x, one.key.y], [other.key.x, other.key.y])

const nameOf = (name: string) => name.normalize('NFKC').trim().toLowerCase()

/** Whether an entry is the actor: the same operator or API client, or the name of an operating system's user. */
const isActor = ({ name, operator_id, client_id }: Approver, { type, id }: Actor): boolean =>
  (type === 'OPERATOR' && operator_id === id) ||
  (type === 'API_CLIENT' && client_id === id) ||
  (type === 'COMMAND_LINE' && nameOf(name) === nameOf(id))

/**
 * Groups entries by person. An entry that shares its operator with a second one and its name with a third makes all three
 * one person. Entries of the same person may be revoked: a person does not become two by a new key.
 */
export function personsOf(approvers: readonly Approver[]): Map<string, number> {
  const personOf = new Map<string, number>()
  let persons = 0
  const visit = (approver: Approver, person: number) => {
    if (personOf.has(approver.id)) return
    personOf.set(approver.id, person)
    for (const other of approvers) if (isSamePerson(approver, other)) visit(other, person)
  }
  for (const approver of approvers) if (!personOf.has(approver.id)) visit(approver, persons++)
  return personOf
}

/** The persons who are one of these actors. */
export function personsWhoAre(
  approvers: readonly Approver[],
  personOf: ReadonlyMap<string, number>,
  actors: readonly Actor[],
): Set<number> {
  const are = approvers.filter((approver) => actors.some((actor) => isActor(approver, actor)))
  return new Set(are.map(({ id }) => personOf.get(id)!))
}
