import { canonicalJson } from '../../src/contract/canonical-json.ts'
import { groupDigits, inWords, short } from './format.ts'
import type { Policy, Transfer } from './records.ts'

/** Policies and their differences in plain words. */

/** What a policy says, without its number and time. */
export type PolicyDocument = Omit<Policy, 'version' | 'created_at'>
type Rule = Policy['rules'][number]

export const EMPTY: PolicyDocument = { rules: [] }

export function documentOf({ version: _, created_at: _at, ...document }: Policy): PolicyDocument {
  return document
}

export const textOf = (document: PolicyDocument): string => JSON.stringify(document, null, 2)

/** The document with its members in one order, so that a difference of order is none. */
export const comparable = (document: object): string =>
  JSON.stringify(JSON.parse(canonicalJson(document)), null, 2)

export const isSame = (before: object, after: object): boolean => comparable(before) === comparable(after)

const TYPES: Record<string, string> = {
  CRYPTO_WITHDRAWAL: 'crypto withdrawals',
  WIRE_WITHDRAWAL: 'wires',
  INTERNAL_TRANSFER_DEBIT: 'internal transfers',
  PAXOS_TRANSFER_DEBIT: 'transfers to other customers',
}
const COUNTED: Record<string, string> = {
  CUSTOMER: 'for all payments together',
  PROFILE: 'for each profile',
  IDENTITY: 'for each identity',
  DESTINATION: 'for each destination',
}

const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

/** The payments that a rule fits: `crypto withdrawals of USDP over Ethereum to the address book`. */
function paymentsOf({ match = {} }: Rule): string {
  const { transfer_types, assets, networks, client_ids, profile_ids, identity_ids, destination } = match
  const part = (before: string, values: readonly string[] | undefined, say = short) =>
    values === undefined ? '' : ` ${before} ${listed(values.map(say))}`
  const to = Array.isArray(destination)
    ? part('to', destination)
    : destination === 'ADDRESS_BOOK'
      ? ' to approved addresses of the address book'
      : ''
  return [
    transfer_types === undefined ? 'payments' : listed(transfer_types.map((type) => TYPES[type] ?? type)),
    part('of', assets),
    part('over', networks, inWords),
    part('by', client_ids),
    part('from profile', profile_ids),
    part('of identity', identity_ids),
    to,
  ].join('')
}

/** A length of time in whole units: 86,400 seconds are `24 hours`. */
function lengthOf(seconds: number): string {
  if (seconds > 86_400 && seconds % 86_400 === 0) return `${seconds / 86_400} days`
  if (seconds % 3_600 === 0) return `${seconds / 3_600} hours`
  return seconds % 60 === 0 ? `${seconds / 60} minutes` : `${seconds} seconds`
}

function limitOf({ limit, action }: Rule): string {
  if (limit === undefined) return ''
  const { amount, asset, period_seconds, per = 'CUSTOMER' } = limit
  const most = `${groupDigits(amount)} ${asset}`
  const bound = action === 'ALLOW' ? 'up to' : 'beyond'
  if (period_seconds === 0) return ` ${bound} ${most} each`
  return ` ${bound} ${most} in any ${lengthOf(period_seconds)}, counted ${COUNTED[per]}`
}

const approversOf = (approvals: number | undefined, role = 'APPROVER'): string =>
  `${approvals === 1 ? '1 approver' : `${approvals} approvers`} of the role ${role}`

export function ruleInWords(rule: Rule): string {
  const what = paymentsOf(rule) + limitOf(rule)
  if (rule.action === 'ALLOW') return `Allows ${what}.`
  if (rule.action === 'BLOCK') return `Blocks ${what}.`
  return `Asks ${approversOf(rule.approvals, rule.role)} about ${what}.`
}

/** Whether a payment is beyond a limit in USD for want of a price. A value by an older price may be recorded. */
export function isUnpriced(
  { limit }: Rule,
  { asset, notional_value }: Pick<Transfer, 'asset' | 'notional_value'>,
): boolean {
  if (limit?.asset !== 'USD' || asset === 'USD') return false
  const isBelow = limit.period_seconds === 0 && Number(notional_value) < Number(limit.amount)
  return notional_value === undefined || isBelow
}

export function termsInWords({ approvals, address_book, changes }: PolicyDocument): string[] {
  const terms = [`Approvers have ${lengthOf(approvals?.deadline_seconds ?? 86_400)} to decide.`]
  if (address_book !== undefined)
    terms.push(`A new address waits ${lengthOf(address_book.cooling_seconds)} before it counts as known.`)
  if (changes !== undefined)
    terms.push(
      `Changes of ${listed(changes.subjects.map((subject) => inWords(subject).toLowerCase()))} need ${approversOf(changes.approvals, changes.role)}.`,
    )
  return terms
}

/** What differs between two policies, a sentence for each rule and term. */
export function changesInWords(before: PolicyDocument, after: PolicyDocument): string[] {
  const idsOf = ({ rules }: PolicyDocument) => rules.map(({ id }, index) => id ?? `number ${index + 1}`)
  const byId = (document: PolicyDocument) =>
    new Map(idsOf(document).map((id, index) => [id, document.rules[index]!]))
  const [old, now] = [byId(before), byId(after)]
  const removed = [...old].filter(([id]) => !now.has(id))
  const told = [...now].flatMap(([id, rule]) => {
    const former = old.get(id)
    if (former === undefined) return [`New rule ${id}: ${ruleInWords(rule)}`]
    if (isSame(former, rule)) return []
    const [was, is] = [ruleInWords(former), ruleInWords(rule)]
    return [was === is ? `Rule ${id} changes, as the lines show.` : `Rule ${id}: ${is} Before: ${was}`]
  })
  const kept = (ids: readonly string[]) => ids.filter((id) => old.has(id) && now.has(id)).join(' ')
  const terms = [termsInWords(before), termsInWords(after)] as const
  return [
    ...removed.map(([id, rule]) => `Rule ${id} ends: ${ruleInWords(rule)}`),
    ...told,
    ...(kept(idsOf(before)) === kept(idsOf(after)) ? [] : ['The order of the rules changes.']),
    ...terms[0].filter((term) => !terms[1].includes(term)).map((term) => `No longer: ${term}`),
    ...terms[1].filter((term) => !terms[0].includes(term)).map((term) => `New: ${term}`),
  ]
}
