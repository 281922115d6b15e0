import { createHash } from 'node:crypto'
import { Temporal } from 'temporal-polyfill'
import { audited, recordNow } from '../../audit/audited.ts'
import { ownRowMacs } from '../../audit/sealed-rows.ts'
import { transaction, violatedConstraint, type Database, type Transaction } from '../../db/database.ts'
import { PLATFORM_ID, readClock } from '../../db/ids.ts'
import { bankReference } from '../../money/records/bank-wires.ts'
import type { By } from '../wires/outgoing-wires.ts'
import { amountOf, refuse, shown, type BankLine, type BankStatement } from './statement.ts'

/** Bank statements in the database: each follows the one before, and is stored once with all its lines or not at all. */

/** A line with its place. Amounts are decimal strings, and the reference is in the form of `bank_wires`. */
export type StoredLine = Omit<BankLine, 'amount' | 'reference'> &
  Record<'position' | 'ordinal', number> &
  Record<'id' | 'amount' | 'bank_reference', string>
type Last = { account: string; number: number | null; date: string; closing: string }

/** Days between an exact line and its import, or the taking of its wire. */
const EXACT_DAYS_MAX = 5
export const isWithinDays = (date: string, time: string): boolean =>
  Math.abs(Temporal.PlainDate.from(date).until(time.slice(0, 10)).total('days')) <= EXACT_DAYS_MAX

/** Of a UUID of version 8 (RFC 9562). */
const HEX_OF_UUID = /^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** JSON with amounts as decimal strings. */
const jsonOf = (value: object) =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? amountOf(part) : part))

/** The lines as they are stored. A reference counts once for each kind of line: the others of it are named by their ids. */
function storedLines({ lines }: BankStatement, position: number, contentHash: string): StoredLine[] {
  const seen = new Set<string>()
  return lines.map(({ reference = '', amount, ...line }, index) => {
    const id = sha256(`${contentHash} ${index}`).replace(HEX_OF_UUID, '$1-$2-8$3-a$4-$5')
    const own = bankReference(reference)
    const key = [own, line.code, amount < 0n].join(' ')
    const bank_reference = own === undefined || seen.has(key) ? `LINE-${id.toUpperCase()}` : own
    seen.add(key)
    return { ...line, amount: amountOf(amount), id, position, ordinal: index + 1, bank_reference }
  })
}

/** Throws a Refusal where a statement does not follow the last one: another account, an overlap, or a gap. */
function requireNext(last: Last, { account, number = NaN, date, from = date, opening, id }: BankStatement) {
  const it = `statement ${shown(id)} of ${date}`
  const missing = (what: string) => refuse(`${it} ${what}: a statement between them is missing`)
  if (account !== last.account)
    refuse(`${it} is of account ${shown(account)}: earlier statements are of account ${shown(last.account)}`)
  const step = number - (last.number ?? NaN)
  if (from < last.date || date < last.date || (date === last.date && !(step > 0)))
    refuse(`${it} overlaps the last one, which ends on ${last.date}`)
  if (amountOf(opening) !== last.closing)
    missing(`opens with ${amountOf(opening)}, but the last one, of ${last.date}, closed with ${last.closing}`)
  // Other steps are those of banks that number days, years, or statements with lines: there, balances alone show a gap.
  const isByDay = number % 1_000 === Temporal.PlainDate.from(date).dayOfYear
  if (step > 1 && step < 50 && !isByDay)
    missing(`has the number ${number}, but the last one has ${last.number}`)
}

/**
 * Stores the statements of a file that are not stored yet, all or none. The first one fixes the account. Returns all of them, with
 * the new lines that the rule `exact` may match. Throws a Refusal where one does not follow the one before.
 */
export const storeStatements = (db: Database, statements: readonly BankStatement[], by: By) =>
  transaction(db, async (tx) => {
    const stored = []
    for (const statement of statements) stored.push(await storeStatement(tx, statement, by))
    return stored
  }).catch((error: unknown) => {
    if (violatedConstraint(error) === undefined) throw error
    return refuse('somebody else has just imported a statement: import it again')
  })

async function storeStatement(tx: Transaction, statement: BankStatement, { operator, origin }: By) {
  const content_hash = sha256(jsonOf(statement))
  const { rows } = await tx.query<Last & { position: number; is_known: boolean }>(
    `select position, account, number, date::text as date, closing,
            exists (select from bank_statements where content_hash = $1) as is_known
     from bank_statements order by position desc limit 1`,
    [content_hash],
  )
  const [last] = rows
  const item = { date: statement.date, lines: statement.lines.length, is_new: !last?.is_known }
  if (last?.is_known) return { item, recent: [] }
  if (last !== undefined) requireNext(last, statement)
  const position = (last?.position ?? 0) + 1
  const lines = storedLines(statement, position, content_hash)
  const { text: imported_at } = await readClock(tx)
  if (statement.date > imported_at && !isWithinDays(statement.date, imported_at))
    refuse(`statement ${shown(statement.id)} is of ${statement.date}, which is to come`)
  const made = { position, statement_id: statement.id, content_hash, imported_by: operator, imported_at }
  await tx.query(
    'insert into bank_statements select * from json_populate_record(null::bank_statements, $1)',
    [jsonOf({ ...statement, ...item, ...made })],
  )
  await (await ownRowMacs()).seal(tx, 'bank_statements', String(position))
  await tx.query('insert into bank_lines select * from json_populate_recordset(null::bank_lines, $1)', [
    jsonOf(lines),
  ])
  const record = audited(origin, 'bank_statement.import', String(position), { after: { content_hash } })
  await recordNow(tx, PLATFORM_ID, record)
  return { item, recent: lines.filter(({ date, is_single }) => is_single && isWithinDays(date, imported_at)) }
}
