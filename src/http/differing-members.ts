import { isDeepStrictEqual } from 'node:util'
import { isAmount } from '../contract/fields.ts'

/**
 * Names the members of a request that differ from the existing record with the same unique value (API behaviour, Retries
 * and ref_id). A client that repeats a request with the same ref_id and other terms learns which terms differ.
 */

interface Shape {
  properties?: Record<string, Shape>
  items?: Shape
  pattern?: string
  additionalProperties?: unknown
}

/** The members of an operation's body that the record keeps. */
export interface Comparable {
  /** The member of the body that contains the record's members, if they are not at the top level. */
  inMember: string | undefined
  /** Each kept member: its schema in the body, and its name in the record. */
  members: readonly { name: string; kept: string; shape: Shape }[]
}

/** Members of requests that have another name in the record. */
const ANSWERED_AS: Record<string, string> = {
  from_profile_id: 'profile_id',
  from_identity_id: 'identity_id',
  from_account_id: 'account_id',
}
/** Two names of one member inside a destination. */
const OTHER_NAME: Record<string, string> = {
  fiat_account_id: 'bank_account_id',
  bank_account_id: 'fiat_account_id',
  crypto_address_id: 'address_id',
}

/** Finds the comparable members of an operation, once. A record may be nested in a member of the body or reply. */
export function comparableOf(body: Shape | undefined, reply: Shape): Comparable {
  const bodyMembers = body?.properties ?? {}
  const replyMembers = reply.properties ?? {}
  const inMember = 'ref_id' in bodyMembers ? undefined : memberWithRefId(bodyMembers)
  const asked = inMember === undefined ? bodyMembers : bodyMembers[inMember]!.properties!
  const record = 'id' in replyMembers ? replyMembers : (Object.values(replyMembers)[0]?.properties ?? {})
  return {
    inMember,
    members: Object.entries(asked).flatMap(([name, shape]) => {
      const kept = name in record ? name : (ANSWERED_AS[name] ?? name)
      return kept in record ? { name, kept, shape } : []
    }),
  }
}

/** The member of a body that has the `ref_id` of the record, if one has. */
export const memberWithRefId = (members: Record<string, Shape>) =>
  Object.keys(members).find((name) => 'ref_id' in (members[name]!.properties ?? {}))

export function differingMembers(
  body: unknown,
  record: unknown,
  { inMember, members }: Comparable,
): string[] {
  const asked = fieldsOf(inMember === undefined ? body : fieldsOf(body)[inMember])
  const known = fieldsOf(record)
  return members.flatMap(({ name, kept, shape }) =>
    asked[name] === undefined || isSame(asked[name], known[kept], shape) ? [] : name,
  )
}

type Fields = Record<string, unknown>
const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {}

/**
 * Whether a record has a request's value. In objects whose members are all declared, the record may have more members
 * than the request, because the service adds some. Different spellings of an amount are equal.
 */
function isSame(asked: unknown, kept: unknown, shape: Shape): boolean {
  if (typeof asked === 'string' && typeof kept === 'string' && isAmount(shape))
    return plainAmount(asked) === plainAmount(kept)
  if (Array.isArray(asked) && Array.isArray(kept) && shape.items !== undefined) {
    const { items } = shape
    return asked.length === kept.length && asked.every((item, index) => isSame(item, kept[index], items))
  }
  const { properties } = shape
  if (properties === undefined || shape.additionalProperties !== false) return isDeepStrictEqual(asked, kept)
  const known = fieldsOf(kept)
  return Object.entries(fieldsOf(asked)).every(([name, value]) =>
    isSame(value, known[name] ?? known[OTHER_NAME[name] ?? name], properties[name] ?? {}),
  )
}

function plainAmount(text: string): string {
  const [whole = '', fraction = ''] = text.split('.')
  return `${whole.replace(/^0+/, '')}.${fraction.replace(/0+$/, '')}`
}
