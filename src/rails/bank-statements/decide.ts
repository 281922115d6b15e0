import { audited, recordNow } from '../../audit/audited.ts'
import { ownRowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'
import { Problem } from '../../contract/problems.ts'
import { Refusal } from '../../contract/refusal.ts'
import { transaction, violatedConstraint, type Database, type Queryable } from '../../db/database.ts'
import { PLATFORM_ID, readClock } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import { findBankWireOf } from '../../money/records/bank-wires.ts'
import type { RailsContext } from '../context.ts'
import type { Screening } from '../screening/screening.ts'
import { markWireSent, readTakenWire, type By } from '../wires/outgoing-wires.ts'
import { recordWireDeposit, recordWireReturn } from '../wires/record-wires.ts'
import { daysBetween, EXACT_DAYS_MAX, plainOf, proposalsFor, type Candidate, type Ranked } from './match.ts'
import { amountOf, centsIn, refuse, type BankStatement } from './statement.ts'
import { isExactOn, jsonOf, storeStatements, type ImportedStatement, type StoredLine } from './store.ts'

/** Lines of statements become transfers: a person decides, or the rule `exact`. The wires' own functions record them. */

/** What the wires' functions take, and who matches. */
type Matching = Pick<RailsContext, 'db' | 'ledger'> & By & { screening?: Screening | undefined }
type Rule = 'PERSON' | 'EXACT' | 'REFERENCE'

export interface Match {
  line_id: string
  transfer_id: string
  kind: Candidate['kind']
  /** False: it was matched before. */
  changed: boolean
}

/** A stored line, with its transfer once it is matched. */
export type ReadLine = StoredLine & {
  transfer_id?: string
  kind?: Candidate['kind']
  rule?: Rule
  matched_by?: string
}

export const LISTED_MAX = 1_000
/** Lines whose candidates are looked for together. */
const TOGETHER_MAX = 2_000

/** Which lines are read. `like`: open lines of this amount, and what came back or was reversed. */
type Wanted = { [Filter in 'id' | 'state' | 'date' | 'like']?: string | undefined }

/** Reads lines of stored statements, oldest first. Throws an Error for a statement that nobody imported. */
export async function readLines(db: Queryable, { id, state, date, like }: Wanted): Promise<ReadLine[]> {
  const { rows } = await db.query<
    Omit<ReadLine, 'amount' | 'charges'> & Seal & { amount: string; charges: string | null }
  >(
    `select l.position, l.ordinal, l.id, l.date::text as date, l.amount, l.bank_reference, l.customer_reference, l.text, l.code,
            l.is_reversal, l.is_return, l.charges, m.transfer_id, m.kind, m.rule, m.matched_by, ${sealOf('bank_statements')}
     from bank_lines l
     join bank_statements r on r.position = l.position and l.ordinal <= r.lines
     left join bank_matches m on m.line_id = l.id
     where ($1::uuid is null or l.id = $1)
       and ($2::text is null or ($2 = 'MATCHED') = (m.line_id is not null))
       and ($3::date is null or l.date = $3)
       and ($4::numeric is null or m.line_id is null and (l.amount = $4 or l.is_return or l.is_reversal))
     order by l.position, l.ordinal
     limit ${LISTED_MAX}`,
    [id, state, date, like],
  )
  const macs = await ownRowMacs()
  return rows.map(({ sealed, mac, amount, charges, ...row }) => {
    macs.requireGenuine('bank_statements', String(row.position), { sealed, mac })
    const minor = { amount: signedIn(amount), ...(charges !== null && { charges: signedIn(charges) }) }
    return { ...presentOf(row), ...minor }
  })
}

/** An amount of the database in signed cents. */
export const signedIn = (text: string): bigint =>
  text.startsWith('-') ? -centsIn(text.slice(1)) : centsIn(text)

/**
 * Stores a file's statements, marks lines that operators have recorded already, and with the rule `exact` matches exact lines of
 * camt.053. Only there does markup separate a stranger's text from the bank's: in the other formats a break of the line does.
 */
export async function importStatements(
  matching: Matching,
  statements: readonly BankStatement[],
): Promise<{ items: ImportedStatement[]; matched: Match[] }> {
  const { db } = matching
  const imported = await storeStatements(db, statements, matching)
  const matched = await markRecorded(matching)
  if (await isExactOn(db)) {
    // The lines of this file, not those of the database: whoever writes there must not credit anybody.
    for (const [index, { stored }] of imported.entries())
      if (statements[index]!.format === 'CAMT_053') matched.push(...(await matchExact(matching, stored)))
  }
  return { items: imported.map(({ stored: _, ...item }) => item), matched }
}

/** Matches each open line whose bank's reference and amount an operator has recorded: also after a crash between the two. */
async function markRecorded(matching: Matching): Promise<Match[]> {
  const { rows } = await matching.db.query<NewMatch & { amount: string }>(`
    select distinct on (w.transfer_id) l.id as line_id, l.position, l.date::text as date, l.amount, w.transfer_id, 'RECORDED' as kind
    from bank_lines l
    join bank_statements s on s.position = l.position and l.ordinal <= s.lines
    join bank_wires w on w.asset = 'USD' and w.direction = case when l.amount > 0 then 'IN' else 'OUT' end
                         and w.bank_reference = l.bank_reference and w.amount = abs(l.amount) and w.kind <> 'SENT_BACK'
    where not exists (select from bank_matches m where m.line_id = l.id)
      and not exists (select from bank_matches m where m.transfer_id = w.transfer_id)
    order by w.transfer_id, l.position, l.ordinal`)
  return insertMatches(matching, rows, 'REFERENCE')
}

type NewMatch = Omit<Match, 'changed'> & Pick<StoredLine, 'position' | 'date'> & { amount: string | bigint }

async function insertMatches(
  { db, operator, origin }: Matching,
  matches: NewMatch[],
  rule: Rule,
): Promise<Match[]> {
  if (matches.length === 0) return []
  await transaction(db, async (tx) => {
    const { text: matched_at } = await readClock(tx)
    const rows = matches.map((match) => ({ ...match, rule, matched_by: operator, matched_at }))
    await tx.query('insert into bank_matches select * from json_populate_recordset(null::bank_matches, $1)', [
      jsonOf(rows),
    ])
    const records = rows.map(({ line_id, transfer_id }) =>
      audited(origin, 'bank_line.match', line_id, { after: { transfer_id, rule } }),
    )
    await recordNow(tx, PLATFORM_ID, ...records)
  }).catch((error: unknown) => {
    if (violatedConstraint(error) === 'bank_matches_transfer')
      refuse('another line is matched with this transfer')
    if (violatedConstraint(error) === 'bank_matches_pkey') refuse('the line has just been matched')
    throw error
  })
  return matches.map(({ line_id, transfer_id, kind }) => ({ line_id, transfer_id, kind, changed: true }))
}

async function matchExact(matching: Matching, lines: readonly StoredLine[]): Promise<Match[]> {
  const { db } = matching
  const { rows } = await db.query<{ done: string[] | null; today: string }>(
    'select array_agg(line_id::text) as done, clock_timestamp()::date::text as today from bank_matches where position = $1',
    [lines[0]?.position ?? 0],
  )
  const { done, today } = rows[0]!
  const open = lines.filter(
    ({ id, date }) => !done?.includes(id) && daysBetween(date, today) <= EXACT_DAYS_MAX,
  )
  const matched: Match[] = []
  for (let start = 0; start < open.length; start += TOGETHER_MAX) {
    const part = open.slice(start, start + TOGETHER_MAX)
    const proposals = await proposalsFor(db, part)
    for (const [index, line] of part.entries()) {
      const candidate = onlyOf(proposals[index]!)
      if (candidate?.isExact !== true) continue
      try {
        matched.push(await matchLine(matching, line, candidate, 'EXACT'))
      } catch (error) {
        // Screening, a policy or another operator has stopped it: it waits for a person.
        if (!(error instanceof Refusal || error instanceof Problem)) throw error
      }
    }
  }
  return matched
}

/** The candidate of a line that has one, which no other line has. */
export const onlyOf = ([first, ...others]: Ranked[]) =>
  others.length === 0 && first?.isShared !== true ? first : undefined

/** What a person asks for: the proposal, a memo, or a transfer. */
export interface Asked {
  memo?: string | undefined
  transfer_id?: string | undefined
}

/** Matches a line as a person decides. Throws a Refusal for an unknown line, for one without a single proposal, and as the wires do. */
export async function decideLine(matching: Matching, id: string, asked: Asked): Promise<Match> {
  const { db } = matching
  await markRecorded(matching)
  const [line] = await readLines(db, { id })
  if (line === undefined) return refuse(`no line of a bank statement has the id ${id}`)
  const { transfer_id, kind } = line
  if (transfer_id !== undefined) {
    const wire = await findBankWireOf(db, transfer_id)
    const isOther = (named: string | undefined, ...own: unknown[]) =>
      named !== undefined && !own.includes(named)
    if (
      isOther(asked.memo && plainOf(asked.memo), wire?.memo_id) ||
      isOther(asked.transfer_id, transfer_id, wire?.returned_transfer_id)
    )
      refuse(`the line is matched with transfer ${transfer_id}`)
    return { line_id: id, transfer_id, kind: kind!, changed: false }
  }
  return matchLine(matching, line, await candidateOf(db, line, asked), 'PERSON')
}

async function candidateOf(db: Database, line: StoredLine, { memo, transfer_id }: Asked): Promise<Candidate> {
  if (memo !== undefined && transfer_id !== undefined) refuse('name a memo or a transfer, not both')
  if (memo !== undefined) return { kind: 'DEPOSIT', memo }
  if (transfer_id !== undefined) {
    const wire = await findBankWireOf(db, transfer_id)
    if (wire !== undefined && (wire.kind === 'SENT') === line.amount < 0n)
      return { kind: 'RECORDED', transfer_id }
    return { kind: line.amount < 0n ? 'SENT' : 'RETURN', transfer_id }
  }
  const others = await readLines(db, { like: amountOf(line.amount) })
  const [proposals] = await proposalsFor(db, [line, ...others.filter(({ id }) => id !== line.id)])
  const why = proposals!.length === 0 ? 'has no proposal' : 'is ambiguous'
  return onlyOf(proposals!) ?? refuse(`the line ${why}: name the memo or the transfer`)
}

async function matchLine(
  matching: Matching,
  line: StoredLine,
  candidate: Candidate,
  rule: Rule,
): Promise<Match> {
  const transfer_id = await recordLine(matching, line, candidate)
  const { id: line_id, position, date, amount } = line
  const match = { line_id, position, date, amount, transfer_id, kind: candidate.kind }
  const [made] = await insertMatches(matching, [match], rule)
  return made!
}

/** Records what a line is, unless it is recorded already. Returns the transfer. */
async function recordLine(
  matching: Matching,
  line: StoredLine,
  { kind, memo, transfer_id: id }: Candidate,
): Promise<string> {
  const { db, operator, origin } = matching
  const { amount, bank_reference } = line
  const said = { operator, origin, amount: amountOf(amount < 0n ? -amount : amount), bank_reference }
  if ((kind === 'DEPOSIT' || kind === 'RETURN') && amount < 0n)
    refuse('the line left the account: it credits nobody')
  if (kind === 'DEPOSIT') return (await recordWireDeposit(matching, { ...said, memo: memo! })).transfer.id
  if (kind === 'RETURN') return (await recordWireReturn(matching, { ...said, transfer_id: id! })).transfer.id
  if (kind === 'RECORDED') {
    const wire = await findBankWireOf(db, id!)
    return wire?.kind === 'SENT_BACK'
      ? refuse(`wire ${id} was sent back: the ledger has no entry of it`)
      : id!
  }
  const order = await readTakenWire(db, id!)
  if (signedIn(order.amount) !== -amount)
    refuse(`wire ${id} is of ${order.amount}, the line of ${said.amount}`)
  return (await markWireSent(db, id!, bank_reference, matching)).transfer_id
}
