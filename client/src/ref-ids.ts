import type { PathOf } from './operations.ts'

/**
 * How to treat a POST whose answer was lost. REF_ID: send it again, because the service refuses a second request and names
 * the record of the first. HARMLESS: send it again, because a second request has no effect that matters. ONCE: never send
 * it again. REF_IDS: as REF_ID, for each item of its list.
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
  // A repeat returns the record of the first request.
  '/v2/transfer/transfers/{id}/cancel': 'HARMLESS',
  // A quote binds nobody.
  '/v2/transfer/fees/crypto-withdrawal': 'HARMLESS',
  // The client adds no ref_id to sandbox deposits, because magic amounts refuse one. A profile has no ref_id, so a repeat
  // could not tell which request took the nickname.
  '/v2/sandbox/fiat-deposits': 'ONCE',
  '/v2/sandbox/profiles/{id}/deposit': 'ONCE',
  '/v2/sandbox/customers': 'ONCE',
  '/v2/sandbox/clock': 'ONCE',
  '/v2/sandbox/reset': 'HARMLESS',
  '/v2/profiles': 'ONCE',
  // The refusal of a repeat names one member only, but the first request may have added several.
  '/v2/identity/account-members': 'ONCE',
  '/v2/identity/institution-members': 'ONCE',
  // A second rotation would retire the secret that the first one kept valid.
  '/v2/api-creds/credentials/{client_id}/rotate': 'ONCE',
  '/v2/webhooks/{id}/rotate-secret': 'ONCE',
  // Only the answer to the first request has the secret.
  '/v2/webhooks': 'ONCE',
  // A repeat sends another test event, or finds what the first request started.
  '/v2/webhooks/{id}/test': 'HARMLESS',
  '/v2/webhooks/{id}/recover': 'HARMLESS',
  '/v2/events/{id}/resend': 'HARMLESS',
  // A repeat is refused, which would look like a failure of the first request.
  '/v2/approvals/{id}/approve': 'ONCE',
  '/v2/approvals/{id}/reject': 'ONCE',
}

type Fields = Record<string, unknown>

/** A request as it is sent: with a ref_id, where its operation takes one. */
export interface Prepared {
  body: unknown
  refId: string | undefined
  /** Whether the request may be sent again when its outcome is unknown. */
  repeatable: boolean
  /**
   * For a request that was sent again: makes the reply of the earlier attempt from the existing record that the refusal
   * names. Undefined where that record is of another request.
   */
  replyOf: (existing: unknown) => unknown
  /** For a bulk request that was sent again: replaces the refusals in its reply by the records that an earlier attempt made. */
  withMade: (reply: unknown) => unknown
}

/**
 * Makes a request repeatable if possible, by adding a ref_id: its Idempotency-Key, or else a new UUID. All methods but POST
 * are idempotent anyway.
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

  // Create Account takes the account in a member of the body, and Create Orchestration Rule returns the rule in one.
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
      // A ref_id that was made here belongs to no other request. The caller's own may belong to an older request.
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
    // The second of two items with one ref_id is refused at the first attempt, too.
    const isFirst = !seen.has(one.ref_id)
    seen.add(one.ref_id)
    const made = item.problem?.type.endsWith('/already-exists') ? item.problem.meta?.existing : undefined
    return made !== undefined && isFirst && agree(one, made) ? { transfer: made } : item
  })
  return { ...reply, items }
}

/** Whether a record agrees with a request in every member that is text in both. */
function agree(asked: Fields, found: Fields): boolean {
  return Object.entries(asked).every(([name, value]) => {
    const answered = found[name]
    return typeof value !== 'string' || typeof answered !== 'string' || plain(value) === plain(answered)
  })
}

const DECIMAL = /^\d*\.?\d+$/
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Brings amounts and ids into one form: the service returns them in its own, however the request wrote them. */
function plain(text: string): string {
  if (UUID.test(text)) return text.toLowerCase()
  if (!DECIMAL.test(text)) return text
  const [whole = '', fraction = ''] = text.split('.')
  return `${whole.replace(/^0+/, '')}.${fraction.replace(/0+$/, '')}`
}
