import { Type, type Static } from 'typebox'
import { audited, recordNow } from '../../audit/audited.ts'
import { Problem } from '../../contract/problems.ts'
import { Refusal } from '../../contract/refusal.ts'
import { transaction, violatedConstraint, type Database, type Queryable } from '../../db/database.ts'
import { PLATFORM_ID, UUID } from '../../db/ids.ts'
import { grouped } from '../../db/rows.ts'
import { findBankWireOf } from '../../money/records/bank-wires.ts'
import { listOpenWires, markWireSent, readTakenWire, type By } from '../wires/outgoing-wires.ts'
import { pendingAmong } from '../wires/pending-wires.ts'
import { memosAmong, recordWireDeposit, recordWireReturn } from '../wires/record-wires.ts'
import { refuse, type BankStatement } from './statement.ts'
import { isWithinDays, Kind, LINES, readLines, storeStatement, type StoredLine } from './store.ts'

/**
 * Which transfer a line of a bank statement is. Strangers write its text, so that it only proposes; what is a return says the bank's
 * code; what was recorded, the bank's reference. A person decides, or the rule `exact`, and the wires' own functions record it.
 */

export const Candidate = Type.Object({ kind: Kind, is: Type.String() })
/** `is`: a memo, or a transfer. `isExact`: the line names what credits or sends it. */
export type Candidate = Static<typeof Candidate> & { isExact?: boolean }

/** Most lines that are matched together, candidates in an answer, names and characters of a text: one with more names nothing. */
const [TOGETHER_MAX, CANDIDATES_MAX, NAMES_MAX, TEXT_LENGTH_MAX] = [2_000, 20, 500, 4_000]
/** Whole words that together have so many letters and digits: banks break and space what they are given. */
const joinedWords = (length: number) =>
  new RegExp(`(?<![A-Z0-9])(?=((?:[A-Z0-9][^A-Z0-9]*){${length - 1}}[A-Z0-9])(?![A-Z0-9]))`, 'g')
const MEMO_LENGTH = 16
const [MEMO, TRANSFER_ID] = [joinedWords(MEMO_LENGTH), joinedWords(32)]

const isOut = ({ amount }: { amount?: string | null }) => amount?.[0] === '-'
/** Letters and digits alone: a memo as it is kept, however banks print it. */
const plainOf = (text: string): string => text.toUpperCase().replace(/[^A-Z0-9]+/g, '')

/** What the text of a line may name: a memo, a transfer or a bank's reference. */
function namesIn({ text, customer_reference = '' }: StoredLine): Set<string> {
  const all = `${text} ${customer_reference}`.toUpperCase()
  if (all.length > TEXT_LENGTH_MAX) return new Set()
  const joined = [...all.matchAll(MEMO), ...all.matchAll(TRANSFER_ID)].map(([, words]) => plainOf(words!))
  const names = new Set([...joined, ...all.split(/\s+/), ...all.split(/[^A-Z0-9]+/)])
  return names.size > NAMES_MAX ? new Set() : names
}

/** `name`: what a line may name besides what it is. Memo and payee of a wire that left are the customer's words, and no name. */
type Target = Candidate & Partial<Record<'amount' | 'bank_reference' | 'name', string | null>>
type Wire = Target & Record<'is_sent_back' | 'is_done' | 'is_returnable', boolean>
type Known = Awaited<ReturnType<typeof readKnown>>

/** What lines may be, and the wires that have their references. `is_done`: it is a line. */
async function readKnown(db: Queryable, lines: readonly StoredLine[]) {
  const names = lines.flatMap((line) => [...namesIn(line)])
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
  const words = names.filter(({ length }) => length === MEMO_LENGTH)
  const memos = await memosAmong(db, words)
  const pending = await pendingAmong(db, memos)
  const taken = open.filter(({ state }) => state === 'TAKEN')
  const targets: Target[] = [
    ...memos.map((is) => ({ kind: 'DEPOSIT', is, isExact: true }) as const),
    ...taken.map(({ transfer_id: is, amount }) => ({ kind: 'SENT', is, amount: `-${amount}` }) as const),
    ...pending.map(({ transfer_id: is, memo_id: name }) => ({ kind: 'RECORDED', is, name }) as const),
    ...wires.filter(({ is_done }) => !is_done),
    ...wires.flatMap((wire) => (wire.is_returnable ? [{ ...wire, kind: 'RETURN' } as const] : [])),
  ]
  return { wires, targets }
}

/** What a line may be: the bank's reference decides, then the bank's code, then the text. */
function candidatesOf(line: StoredLine, { wires, targets }: Known): Candidate[] {
  if (line.kind !== undefined) return [{ kind: line.kind, is: line.transfer_id! }]
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
  // A person may have recorded it with another of its references, also as what came back: to credit it again needs a person.
  return [...deposits, ...recorded.filter((target) => isEqual(target) || isNamed(target))]
}

/** The lines with what each is or may be. What two of them may be is ambiguous. */
export async function withProposals<Line extends StoredLine>(db: Database, lines: readonly Line[]) {
  const open = lines.filter(({ kind }) => kind === undefined)
  const known = await readKnown(db, open)
  const found = new Map(lines.map((line) => [line.id, candidatesOf(line, known)]))
  const uses = grouped([...found.values()].flat(), ({ kind, is }) => `${kind} ${is}`)
  return lines.map((line) => {
    const all = found.get(line.id)!
    const isShared = all.some(({ kind, is }) => kind !== 'DEPOSIT' && uses.get(`${kind} ${is}`)!.length > 1)
    const proposal = all.length === 0 ? 'OPEN' : all.length > 1 || isShared ? 'AMBIGUOUS' : 'PROPOSED'
    const state = line.kind === undefined ? proposal : 'MATCHED'
    const candidates = all.slice(0, CANDIDATES_MAX).map(({ kind, is, isExact }) => ({ kind, is, isExact }))
    return { ...line, candidates, state } as const
  })
}

/** What the wires' functions take, and who matches. */
type Matching = Parameters<typeof recordWireDeposit>[0] & By
type Match = Pick<Candidate, 'kind'> & Record<'line_id' | 'transfer_id', string>

/** Stores a file's statements, marks lines that are recorded already, and with `exact` matches its new lines that are exact. */
export async function importStatements(matching: Matching, statements: BankStatement[], exact = false) {
  const stored: Awaited<ReturnType<typeof storeStatement>>[] = []
  await transaction(matching.db, async (tx) => {
    for (const statement of statements) stored.push(await storeStatement(tx, statement, matching))
  }).catch(refusing('somebody else has just imported a statement: import it again'))
  const matched = await markRecorded(matching)
  // The lines of this file, not those of the database: whoever writes there must not credit anybody.
  // None of a file in which the bank takes back lines of its own: they may be of these.
  const isReversed = statements.some(({ lines }) => lines.some(({ is_reversal }) => is_reversal))
  const lines = exact && !isReversed ? stored.flatMap(({ recent }) => recent) : []
  for (let start = 0; start < lines.length; start += TOGETHER_MAX) {
    const together = await withProposals(matching.db, lines.slice(start, start + TOGETHER_MAX))
    for (const line of together.filter(({ state }) => state === 'PROPOSED'))
      try {
        matched.push(await matchProposed(matching, line, 'EXACT'))
      } catch (error) {
        // It is not exact, or screening, a policy or another operator has stopped it: it waits for a person.
        if (!(error instanceof Refusal || error instanceof Problem)) throw error
      }
  }
  const items = stored.map(({ item }) => item)
  const changed = matched.length > 0 || items.some(({ is_new }) => is_new)
  return { account: statements[0]!.account, items, matched, changed }
}

/** Matches a line with the memo or transfer that a person says, or its only proposal. Throws a Refusal also as the wires do. */
export async function decideLine(matching: Matching, line_id: string, said?: string) {
  const { db } = matching
  await markRecorded(matching)
  const [line] = await readLines(db, { id: line_id })
  if (line === undefined) return refuse(`no line of a bank statement has the id ${line_id}`)
  const { transfer_id, kind } = line
  if (transfer_id === undefined && said !== undefined) return matchLine(matching, line, said, 'PERSON')
  if (transfer_id === undefined)
    return matchProposed(matching, line, 'PERSON', await readLines(db, { state: 'OPEN' }))
  const wire = await findBankWireOf(db, transfer_id)
  const own = [transfer_id, wire?.returned_transfer_id, wire?.memo_id].map((text) => plainOf(text ?? ''))
  if (said !== undefined && !own.includes(plainOf(said)))
    refuse(`the line is matched with transfer ${transfer_id}`)
  return { line_id, transfer_id, kind: kind!, changed: false }
}

/** Matches a line with its proposal, which is read again: a person may have recorded it meanwhile. */
async function matchProposed(matching: Matching, line: StoredLine, rule: string, others: StoredLine[] = []) {
  const [proposed] = await withProposals(matching.db, [line, ...others])
  const [first] = proposed!.candidates
  if (first === undefined) return refuse('the line has no proposal: name the memo or the transfer')
  if (proposed!.state !== 'PROPOSED' || (rule === 'EXACT' && !first.isExact))
    return refuse('the line is ambiguous: name the memo or the transfer')
  return matchLine(matching, line, first.is, rule)
}

/** Records what a line is, unless it is recorded already, and matches the line with it. */
async function matchLine(matching: Matching, line: StoredLine, is: string, rule: string) {
  const { db, operator, origin } = matching
  const { id: line_id, date, bank_reference } = line
  const said = { operator, origin, amount: line.amount.replace('-', ''), bank_reference }
  const match = async (kind: Candidate['kind'], transfer_id: string) =>
    (await insertMatches(matching, [{ line_id, transfer_id, kind }], rule))[0]!
  if (!UUID.test(is)) {
    if (isOut(line)) refuse('the line left the account: it credits nobody')
    return match('DEPOSIT', (await recordWireDeposit(matching, { ...said, memo: is })).transfer.id)
  }
  const wire = await findBankWireOf(db, is)
  if (wire !== undefined && wire.kind !== 'SENT_BACK' && (wire.kind === 'SENT') === isOut(line))
    return match('RECORDED', is)
  if (!isOut(line))
    return match('RETURN', (await recordWireReturn(matching, { ...said, transfer_id: is })).transfer.id)
  const { amount, taken_at } = await readTakenWire(db, is)
  if (amount !== said.amount) refuse(`wire ${is} is of ${amount}, the line of ${said.amount}`)
  if (rule === 'EXACT' && !isWithinDays(date, taken_at)) refuse(`wire ${is} was taken at ${taken_at}`)
  await markWireSent(db, is, bank_reference, matching)
  return match('SENT', is)
}

/** Matches each open line whose bank's reference and amount an operator has recorded: also after a crash between the two. */
async function markRecorded(matching: Matching) {
  const { rows } = await matching.db.query<Match>(`
    select distinct on (w.transfer_id) l.id as line_id, w.transfer_id, 'RECORDED' as kind
    from ${LINES}
    join bank_wires w on w.asset = 'USD' and w.direction = case when l.amount > 0 then 'IN' else 'OUT' end
                         and w.bank_reference = l.bank_reference and w.amount = abs(l.amount) and w.kind <> 'SENT_BACK'
    where m.line_id is null and not exists (select from bank_matches t where t.transfer_id = w.transfer_id)
    order by w.transfer_id, l.position, l.ordinal`)
  return insertMatches(matching, rows, 'REFERENCE')
}

async function insertMatches({ db, operator, origin }: Matching, matches: Match[], rule: string) {
  if (matches.length === 0) return []
  const records = matches.map(({ line_id, transfer_id }) =>
    audited(origin, 'bank_line.match', line_id, { after: { transfer_id, rule } }),
  )
  await transaction(db, async (tx) => {
    await tx.query(
      `insert into bank_matches
       select line_id, transfer_id, kind, $2, $3, clock_timestamp() from json_populate_recordset(null::bank_matches, $1)`,
      [JSON.stringify(matches), rule, operator],
    )
    await recordNow(tx, PLATFORM_ID, ...records)
  }).catch(refusing('another line is matched with this transfer, or the line has just been matched'))
  return matches.map((match) => ({ ...match, changed: true }))
}

/** Refuses what another process has done first, as a constraint says. */
const refusing = (why: string) => (error: unknown) => {
  if (violatedConstraint(error) === undefined) throw error
  refuse(why)
}
