import type { PathOf } from './operations.ts'

/**
 * How to treat a POST whose answer was lost. REF_ID: send it again, because the service refuses a second request with the
 * record of the first. HARMLESS: send it again, because a second request has no effect that matters. ONCE: never.
 * REF_IDS: as REF_ID, for each item of its list.
 */
const POSTS: Record<PathOf<'post'>, 'REF_ID' | 'REF_IDS' | 'HARMLESS' | 'ONCE'> = {
  '/v2/transfer/crypto-withdrawals': 'REF_ID',
  '/v2/transfer/crypto-withdrawals/bulk': 'REF_IDS',
  '/v2/transfer/internal': 'REF_ID',
  '/v2/transfer/paxos': 'REF_ID',
  '/v2/conversion/stablecoins': 'REF_ID',
  '/v2/transfer/fiat-withdrawals': 'REF_ID',
  '/v2/transfer/deposit-addresses': 'REF_ID',
  '/v2/transfer/fiat-deposit-instructions': 'REF_ID',
  '/v2/transfer/fiat-accounts': 'REF_ID',
  '/v2/identity/identities': 'REF_ID',
  '/v2/identity/accounts': 'REF_ID',
  '/v2/orchestration/rules': 'REF_ID',
  '/v2/orchestration/orchestrations': 'REF_ID',
  // A repeat answers the record of the first.
  '/v2/transfer/transfers/{id}/cancel': 'HARMLESS',
  // A quote binds nobody.
  '/v2/transfer/fees/crypto-withdrawal': 'HARMLESS',
  // The client adds no ref_id: magic amounts refuse it. A profile has none: a repeat could not tell whose the nickname is.
  '/v2/sandbox/fiat-deposits': 'ONCE',
  '/v2/sandbox/profiles/{id}/deposit': 'ONCE',
  '/v2/profiles': 'ONCE',
  // A repeat is refused with one member, of all that the first may have added.
  '/v2/identity/account-members': 'ONCE',
  '/v2/identity/institution-members': 'ONCE',
  // A second rotation would retire the secret that the first one left.
  '/v2/api-creds/credentials/{client_id}/rotate': 'ONCE',
  '/v2/webhooks/{id}/rotate-secret': 'ONCE',
  // The answer of the first had the secret, which no other answer shows.
  '/v2/webhooks': 'ONCE',
  // A repeat sends another test, or finds what the first one started.
  '/v2/webhooks/{id}/test': 'HARMLESS',
  '/v2/webhooks/{id}/recover': 'HARMLESS',
  '/v2/events/{id}/resend': 'HARMLESS',
  // A repeat is refused, which would look like a failure of the first.
  '/v2/approvals/{id}/approve': 'ONCE',
  '/v2/approvals/{id}/reject': 'ONCE',
}

type Fields = Record<string, unknown>

/** A request as it is sent: with a ref_id, where its operation takes one. */
export interface Prepared {
  body: unknown
  refId: string | undefined
  /** Whether it may be sent again when its outcome is unknown. */
  repeatable: boolean
  /**
   * Of a request that was sent again: the reply of the attempt that did it, made of the record that the service refers
   * to. Undefined where that is the record of another request.
   */
  replyOf: (existing: unknown) => unknown
  /** Of a request for many that was sent again: its reply, with what an earlier attempt made in place of the refusals. */
  withMade: (reply: unknown) => unknown
}

/**
 * Makes a request repeatable if possible, by adding a ref_id: its Idempotency-Key, or a new one. All methods but POST are
 * idempotent anyway.
 */
export function prepare(method: string, path: string, body: unknown, key?: string): Prepared {
  const plain = { body, refId: undefined, replyOf: () => undefined, withMade: (reply: unknown) => reply }
  if (method !== 'post') return { ...plain, repeatable: true }
  const kind = POSTS[path as PathOf<'post'>]
  if (kind === 'REF_IDS') {
    const { withdrawals } = body as { withdrawals: Fields[] }
    return { ...plain, repeatable: true, withMade: (reply) => manyWithMade(withdrawals, reply as Many) }
  }
  if (kind !== 'REF_ID') return { ...plain, repeatable: kind === 'HARMLESS' }

  // An account stands in a member of its own, and so does the rule that is answered.
  const inMember = path === '/v2/identity/accounts' ? 'account' : undefined
  const given = (inMember === undefined ? body : (body as Fields)[inMember]) as Fields
  const own = typeof given.ref_id === 'string' ? given.ref_id : key
  const known = own !== undefined
  const refId = own ?? crypto.randomUUID()
  const record = { ...given, ref_id: refId }
  return {
    ...plain,
    body: inMember === undefined ? record : { ...(body as Fields), [inMember]: record },
    refId,
    repeatable: true,
    replyOf(existing) {
      const found = (existing ?? {}) as Fields
      // A ref_id that was made here is of no other request. The caller's own may be that of an older, other one.
      if (found.ref_id !== refId || (known && !agree(record, found))) return undefined
      return path === '/v2/orchestration/rules' ? { rule: found } : found
    },
  }
}

interface Many {
  items: { transfer?: unknown; problem?: { type: string; meta?: { existing?: Fields } } }[]
}

function manyWithMade(asked: Fields[], reply: Many): Many {
  const seen = new Set<unknown>()
  const items = reply.items.map((item, index) => {
    const one = asked[index]!
    // A second item with one ref_id is refused at the first attempt, too.
    const isFirst = !seen.has(one.ref_id)
    seen.add(one.ref_id)
    const made = item.problem?.type.endsWith('/already-exists') ? item.problem.meta?.existing : undefined
    return made !== undefined && isFirst && agree(one, made) ? { transfer: made } : item
  })
  return { ...reply, items }
}

/** Whether a record agrees with a request in every member that both have. */
function agree(asked: Fields, found: Fields): boolean {
  return Object.entries(asked).every(([name, value]) => {
    const answered = found[name]
    return typeof value !== 'string' || typeof answered !== 'string' || plain(value) === plain(answered)
  })
}

const DECIMAL = /^\d*\.?\d+$/
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Amounts and ids are answered in one form, however they were written. */
function plain(text: string): string {
  if (UUID.test(text)) return text.toLowerCase()
  if (!DECIMAL.test(text)) return text
  const [whole = '', fraction = ''] = text.split('.')
  return `${whole.replace(/^0+/, '')}.${fraction.replace(/0+$/, '')}`
}
