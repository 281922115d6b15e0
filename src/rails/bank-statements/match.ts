import type { Database, Queryable } from '../../db/database.ts'
import { grouped } from '../../db/rows.ts'
import { listOpenWires } from '../wires/outgoing-wires.ts'
import { pendingAmong } from '../wires/pending-wires.ts'
import { memosAmong } from '../wires/record-wires.ts'
import type { StoredLine } from './store.ts'

/**
 * Which transfer a line of a bank statement is. The text of a line is written by strangers. So it only proposes; what is a return
 * says the bank's code; what was recorded, the bank's reference; and the commands' own functions check everything again.
 */

/**
 * DEPOSIT, SENT, RETURN: what would be recorded. RECORDED: an operator has recorded it already. `is`: the memo of a deposit, or a
 * transfer. `isExact`: the line names what credits or sends it.
 */
export type Candidate = { kind: 'DEPOSIT' | 'SENT' | 'RETURN' | 'RECORDED'; is: string; isExact?: boolean }

/** A stored line, with what it is once it is matched. */
export type ReadLine = StoredLine &
  Partial<Record<'transfer_id' | 'matched_by', string> & { kind: Candidate['kind']; rule: Rule }>
export type Rule = 'PERSON' | 'EXACT' | 'REFERENCE'

/** Most names that a text may have, and its longest. One with more names nothing. */
const [NAMES_MAX, TEXT_LENGTH_MAX] = [500, 4_000]
/** Most candidates of a line that an answer has. */
const CANDIDATES_MAX = 20
/** Whole words that together have so many letters and digits: banks break and space what they are given. */
const joinedWords = (length: number) =>
  new RegExp(`(?<![A-Z0-9])(?=((?:[A-Z0-9][^A-Z0-9]*){${length - 1}}[A-Z0-9])(?![A-Z0-9]))`, 'g')
const MEMO_LENGTH = 16
const [MEMO, TRANSFER_ID] = [joinedWords(MEMO_LENGTH), joinedWords(32)]

export const isOut = ({ amount = '' }: { amount?: string }): boolean => amount.startsWith('-')
/** Letters and digits alone: a memo as it is kept, however banks print it. */
export const plainOf = (text: string): string => text.toUpperCase().replace(/[^A-Z0-9]+/g, '')

/** What the text of a line may name: a memo, a transfer or a bank's reference. */
function namesIn({ text, customer_reference = '' }: StoredLine): Set<string> {
  const all = `${text} ${customer_reference}`.toUpperCase()
  if (all.length > TEXT_LENGTH_MAX) return new Set()
  const joined = [...all.matchAll(MEMO), ...all.matchAll(TRANSFER_ID)].map(([, words]) => plainOf(words!))
  const names = new Set([...joined, ...all.split(/\s+/), ...all.split(/[^A-Z0-9]+/)])
  return names.size > NAMES_MAX ? new Set() : names
}

/** `name`: what a line may name besides what it is. Memo and payee of a wire that left are the customer's words, and no name. */
type Target = Candidate & { amount?: string; name?: string | null }
type Wire = Target &
  Record<'bank_reference', string> &
  Record<'is_sent_back' | 'is_done' | 'is_returnable', boolean>

/** What lines may be, and the wires that have their references. `is_done`: it is a line. */
async function readKnown(db: Queryable, lines: readonly StoredLine[]) {
  const names = lines.flatMap((line) => [...namesIn(line)])
  const words = names.filter(({ length }) => length === MEMO_LENGTH)
  const { rows: wires } = await db.query<Wire>(
    `select 'RECORDED' as kind, w.transfer_id as is, w.bank_reference,
            trim_scale(case w.direction when 'OUT' then -w.amount else w.amount end) as amount,
            case w.direction when 'OUT' then w.bank_reference else w.memo_id end as name,
            w.kind = 'SENT_BACK' as is_sent_back, exists (select from bank_matches m where m.transfer_id = w.transfer_id) as is_done,
            w.kind = 'SENT' and not exists (select from bank_wires r where r.returned_transfer_id = w.transfer_id) as is_returnable
     from bank_wires w
     where w.asset = 'USD'
       and (w.bank_reference = any ($1) or w.memo_id = any ($1)
            or case w.direction when 'OUT' then -w.amount else w.amount end = any ($2::numeric[]))
     order by w.recorded_at`,
    [[...names, ...lines.map(({ bank_reference }) => bank_reference)], lines.map(({ amount }) => amount)],
  )
  const open = lines.some(isOut) ? await listOpenWires(db) : []
  const taken = open.filter(({ state }) => state === 'TAKEN')
  const memos = await memosAmong(db, words)
  const pending = await pendingAmong(db, memos)
  const targets: Target[] = [
    ...memos.map((is) => ({ kind: 'DEPOSIT', is, isExact: true }) as const),
    ...taken.map((wire) => ({ kind: 'SENT', is: wire.transfer_id, amount: `-${wire.amount}` }) as const),
    ...wires.filter(({ is_done }) => !is_done),
    ...pending.map((wire) => ({ kind: 'RECORDED', is: wire.transfer_id, name: wire.memo_id }) as const),
    ...wires.filter((wire) => wire.is_returnable).map((wire) => ({ ...wire, kind: 'RETURN' }) as const),
  ]
  return { wires, targets }
}

/** The bank's reference decides, then the bank's code, then the text. */
function candidatesOf(
  line: StoredLine,
  { wires, targets }: Awaited<ReturnType<typeof readKnown>>,
): Candidate[] {
  const own = wires.find((wire) => wire.bank_reference === line.bank_reference && isOut(wire) === isOut(line))
  if (own !== undefined) return own.is_done || own.is_sent_back ? [] : [own]
  const names = namesIn(line)
  const isNamed = ({ is, name }: Target) => names.has(plainOf(is)) || (name != null && names.has(name))
  const isEqual = ({ amount }: Target) => amount === line.amount
  const of = (...kinds: Candidate['kind'][]) => targets.filter(({ kind }) => kinds.includes(kind))
  if (line.is_return || line.is_reversal) return isOut(line) ? [] : of('RETURN').filter(isNamed)
  if (isOut(line)) {
    const equal = of('SENT', 'RECORDED').filter(isEqual)
    const named = equal.filter(isNamed)
    // A wire's memo is its customer's word, and may have the id of another wire.
    const isExact = equal.length === 1 && equal[0]!.kind === 'SENT'
    return named.length === 0 ? equal : named.map((target) => ({ ...target, isExact }))
  }
  const deposits = of('DEPOSIT').filter(isNamed)
  const recorded = of('RECORDED').filter((target) => !isOut(target))
  if (deposits.length === 0) return recorded.filter((target) => isEqual(target) && isNamed(target))
  // A person may have recorded what arrived with another of its references, also as what came back: to credit it again needs
  // a person.
  return [...deposits, ...recorded.filter((target) => isEqual(target) || isNamed(target))]
}

/** The lines with what each is or may be, and what it is exactly. A transfer for which two of them are candidates is ambiguous. */
export async function withProposals<Line extends ReadLine>(db: Database, lines: readonly Line[]) {
  const open = lines.filter(({ kind }) => kind === undefined)
  const known = await readKnown(db, open)
  const found = new Map(open.map((line) => [line.id, candidatesOf(line, known)]))
  const uses = grouped([...found.values()].flat(), ({ is }) => is)
  return lines.map((line) => {
    const { id, kind, transfer_id: is = '' } = line
    const candidates = kind === undefined ? found.get(id)! : [{ kind, is }]
    const [first, ...others] = candidates
    const isShared = first !== undefined && first.kind !== 'DEPOSIT' && (uses.get(first.is) ?? []).length > 1
    const proposal = first === undefined ? 'OPEN' : others.length > 0 || isShared ? 'AMBIGUOUS' : 'PROPOSED'
    const state = kind === undefined ? proposal : 'MATCHED'
    const exact = state === 'PROPOSED' && first?.isExact ? first.is : undefined
    return { ...line, candidates: candidates.slice(0, CANDIDATES_MAX), state, exact } as const
  })
}
