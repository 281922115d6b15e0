import { audited, recordNow } from '../../audit/audited.ts'
import { ownRowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'
import { Problem } from '../../contract/problems.ts'
import { Refusal } from '../../contract/refusal.ts'
import { transaction, violatedConstraint, type Database, type Queryable } from '../../db/database.ts'
import { PLATFORM_ID, UUID } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import { findBankWireOf } from '../../money/records/bank-wires.ts'
import { markWireSent, readTakenWire, type By } from '../wires/outgoing-wires.ts'
import { recordWireDeposit, recordWireReturn } from '../wires/record-wires.ts'
import { isOut, plainOf, withProposals, type Candidate, type ReadLine, type Rule } from './match.ts'
import { refuse, type BankStatement } from './statement.ts'
import { isWithinDays, storeStatements, type StoredLine } from './store.ts'

/** Lines of statements become transfers: a person decides, or the rule `exact`. The wires' own functions record them. */

/** What the wires' functions take, and who matches. */
type Matching = Parameters<typeof recordWireDeposit>[0] & By
type Wanted = Partial<Record<'id' | 'state' | 'date', string>>
type NewMatch = Pick<Candidate, 'kind'> & Record<'line_id' | 'transfer_id', string>

/** Lines, or breaks, that an answer names. */
export const LISTED_MAX = 1_000
/** Lines that the rule matches together. */
const TOGETHER_MAX = 2_000

/** Reads lines of stored statements, newest first. Throws an Error for a statement that nobody imported. */
export async function readLines(db: Queryable, { id, state, date }: Wanted): Promise<ReadLine[]> {
  const { rows } = await db.query<ReadLine & Seal>(
    `select l.position, l.ordinal, l.id, l.date::text as date, l.amount, l.bank_reference, l.customer_reference, l.text, l.code,
            l.is_reversal, l.is_return, m.transfer_id, m.kind, m.rule, m.matched_by, ${sealOf('bank_statements')}
     from bank_lines l
     join bank_statements r on r.position = l.position and l.ordinal <= r.lines
     left join bank_matches m on m.line_id = l.id
     where ($1::uuid is null or l.id = $1)
       and ($2::text is null or ($2 = 'MATCHED') = (m.line_id is not null))
       and ($3::date is null or l.date = $3)
     order by l.position desc, l.ordinal desc
     limit ${LISTED_MAX}`,
    [id, state, date],
  )
  const macs = await ownRowMacs()
  return rows.map(({ sealed, mac, ...line }) => {
    macs.requireGenuine('bank_statements', String(line.position), { sealed, mac })
    return presentOf(line)
  })
}

/**
 * Stores a file's statements and marks lines that operators have recorded already. With the rule `exact`, also matches the file's new
 * and recent lines that are a deposit with one memo, or a taken wire whose id they have.
 */
export async function importStatements(matching: Matching, statements: BankStatement[], exact = false) {
  const { db } = matching
  const stored = await storeStatements(db, statements, matching)
  const matched = await markRecorded(matching)
  // The lines of this file, not those of the database: whoever writes there must not credit anybody.
  // None of a file in which the bank takes back lines of its own: they may be of these.
  const isReversed = statements.some(({ lines }) => lines.some(({ is_reversal }) => is_reversal))
  const lines = exact && !isReversed ? stored.flatMap(({ recent }) => recent) : []
  for (let start = 0; start < lines.length; start += TOGETHER_MAX) {
    const together = await withProposals(db, lines.slice(start, start + TOGETHER_MAX))
    for (const line of together.filter((proposed) => proposed.exact !== undefined)) {
      // Again: a person may have recorded it meanwhile.
      const [again] = await withProposals(db, [line])
      if (again?.exact === undefined) continue
      try {
        matched.push(await matchLine(matching, line, again.exact, 'EXACT'))
      } catch (error) {
        // Screening, a policy or another operator has stopped it: it waits for a person.
        if (!(error instanceof Refusal || error instanceof Problem)) throw error
      }
    }
  }
  const items = stored.map(({ item }) => item)
  const changed = matched.length > 0 || items.some(({ is_new }) => is_new)
  return { account: statements[0]!.account, items, matched, changed }
}

/** Matches each open line whose bank's reference and amount an operator has recorded: also after a crash between the two. */
async function markRecorded(matching: Matching) {
  const { rows } = await matching.db.query<NewMatch>(`
    select distinct on (w.transfer_id) l.id as line_id, w.transfer_id, 'RECORDED' as kind
    from bank_lines l
    join bank_statements s on s.position = l.position and l.ordinal <= s.lines
    join bank_wires w on w.asset = 'USD' and w.direction = case when l.amount > 0 then 'IN' else 'OUT' end
                         and w.bank_reference = l.bank_reference and w.amount = abs(l.amount) and w.kind <> 'SENT_BACK'
    where not exists (select from bank_matches m where m.line_id = l.id)
      and not exists (select from bank_matches m where m.transfer_id = w.transfer_id)
    order by w.transfer_id, l.position, l.ordinal`)
  return insertMatches(matching, rows, 'REFERENCE')
}

async function insertMatches({ db, operator, origin }: Matching, matches: NewMatch[], rule: Rule) {
  if (matches.length === 0) return []
  await transaction(db, async (tx) => {
    await tx.query(
      `insert into bank_matches (line_id, transfer_id, kind, rule, matched_by, matched_at)
       select line_id, transfer_id, kind, $2, $3, clock_timestamp()
       from json_populate_recordset(null::bank_matches, $1)`,
      [JSON.stringify(matches), rule, operator],
    )
    const records = matches.map(({ line_id, transfer_id }) =>
      audited(origin, 'bank_line.match', line_id, { after: { transfer_id, rule } }),
    )
    await recordNow(tx, PLATFORM_ID, ...records)
  }).catch((error: unknown) => {
    if (violatedConstraint(error) === undefined) throw error
    refuse('another line is matched with this transfer, or the line has just been matched')
  })
  return matches.map((match) => ({ ...match, changed: true }))
}

/**
 * Matches a line with what a person says that it is, a memo or a transfer, or else with what is proposed. Throws a Refusal for an
 * unknown line, for one without a single proposal, and as the wires do.
 */
export async function decideLine(matching: Matching, line_id: string, said?: string) {
  const { db } = matching
  await markRecorded(matching)
  const [line] = await readLines(db, { id: line_id })
  if (line === undefined) return refuse(`no line of a bank statement has the id ${line_id}`)
  if (line.transfer_id === undefined)
    return matchLine(matching, line, said ?? (await proposedFor(db, line)), 'PERSON')
  const { transfer_id, kind } = line
  const wire = await findBankWireOf(db, transfer_id)
  const own = [transfer_id, wire?.returned_transfer_id, wire?.memo_id].map((text) => plainOf(text ?? ''))
  if (said !== undefined && !own.includes(plainOf(said)))
    refuse(`the line is matched with transfer ${transfer_id}`)
  return { line_id, transfer_id, kind: kind!, changed: false }
}

async function proposedFor(db: Database, line: ReadLine): Promise<string> {
  const others = (await readLines(db, { state: 'OPEN' })).filter(({ id }) => id !== line.id)
  const [proposed] = await withProposals(db, [line, ...others])
  if (proposed!.state === 'PROPOSED') return proposed!.candidates[0]!.is
  const why = proposed!.state === 'OPEN' ? 'has no proposal' : 'is ambiguous'
  return refuse(`the line ${why}: name the memo or the transfer`)
}

/** Records what a line is, unless it is recorded already, and matches the line with it. */
async function matchLine(matching: Matching, line: StoredLine, is: string, rule: Rule) {
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
