import { createHash } from 'node:crypto'
import { Temporal } from 'temporal-polyfill'
import { audited, recordNow } from '../../audit/audited.ts'
import { ownRowMacs } from '../../audit/sealed-rows.ts'
import {
  transaction,
  violatedConstraint,
  type Database,
  type Queryable,
  type Transaction,
} from '../../db/database.ts'
import { PLATFORM_ID, readClock } from '../../db/ids.ts'
import { bankReference } from '../../money/records/bank-wires.ts'
import type { By } from '../wires/outgoing-wires.ts'
import { amountOf, refuse, shown, type BankLine, type BankStatement } from './statement.ts'

/** Bank statements in the database: each follows the one before, and is stored once with all its lines or not at all. */

/** Lines that one statement inserts. */
const INSERT_MAX = 5_000

/** A line with its place and its identity. */
export type StoredLine = BankLine & { id: string; position: number; ordinal: number; bank_reference: string }

export interface ImportedStatement {
  position: number
  statement_id: string
  date: string
  lines: number
  /** False: it was imported before. */
  is_new: boolean
}

/** Rows as JSON, with amounts as decimal strings. */
export const jsonOf = (rows: unknown): string =>
  JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? amountOf(value) : value))

const hashOf = (...parts: unknown[]) => createHash('sha256').update(jsonOf(parts)).digest('hex')

/** The id of a line: a UUID of version 8 (RFC 9562), made from what identifies it. */
const idOf = (hash: string) =>
  `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-a${hash.slice(17, 20)}-${hash.slice(20, 32)}`

/**
 * The lines of a statement with their identities: the bank's reference, direction and kind, or else the content. Equal lines are
 * counted. Throws a Refusal for lines with one reference but different content.
 */
function identified(
  { account, id: statementId, date, lines }: BankStatement,
  position: number,
): StoredLine[] {
  const seen = new Map<string, { content: string; count: number }>()
  return lines.map((line, index) => {
    const content = hashOf(line)
    const key = line.reference === undefined ? content : hashOf(line.reference, line.amount < 0n, line.code)
    const { content: first, count } = seen.get(key) ?? { content, count: 0 }
    if (first !== content) refuse(`two lines have the bank reference ${shown(line.reference)} and differ`)
    seen.set(key, { content, count: count + 1 })
    const id = idOf(hashOf(account, statementId, date, key, count))
    const own = count === 0 ? bankReference(line.reference ?? '') : undefined
    return { ...line, id, position, ordinal: index + 1, bank_reference: own ?? `LINE-${id.toUpperCase()}` }
  })
}

type Last = Pick<BankStatement, 'account' | 'number' | 'date'> & { position: number; closing: string }

/** Throws a Refusal where a statement does not follow the last one: another account, a gap, or an overlap. */
function requireNext(last: Last, { account, number, date, from, opening, id }: BankStatement): void {
  const which = `statement ${shown(id)} of ${date}`
  if (account !== last.account)
    refuse(
      `${which} is of account ${shown(account)}: earlier statements are of account ${shown(last.account)}`,
    )
  const isNumbered = number !== undefined && (last.number ?? null) !== null
  const isSameDay = date === last.date && isNumbered && number > last.number!
  if ((date <= last.date && !isSameDay) || (from !== undefined && from < last.date))
    refuse(`${which} overlaps the last one, which ends on ${last.date}`)
  if (amountOf(opening) !== last.closing)
    refuse(
      `${which} opens with ${amountOf(opening)}, but the last one, of ${last.date}, closed with ${last.closing}: a statement between them is missing`,
    )
  // Some banks number statements by the day of the year.
  const isByDay =
    isNumbered && number % 1_000 === dayOfYear(date) && last.number! % 1_000 === dayOfYear(last.date)
  const isNewYear = date.slice(0, 4) !== last.date.slice(0, 4) && number === 1
  if (isNumbered && !isByDay && !isNewYear && number !== last.number! + 1)
    refuse(
      `${which} has the number ${number}, but the last one has ${last.number}: a statement between them is missing`,
    )
}

const dayOfYear = (date: string) => Temporal.PlainDate.from(date).dayOfYear

/**
 * Stores the statements of a file that are not stored yet, all or none. The first one fixes the account. Returns them with their
 * lines. Throws a Refusal where one does not follow the one before.
 */
export async function storeStatements(
  db: Database,
  statements: readonly BankStatement[],
  { operator, origin }: By,
): Promise<(ImportedStatement & { stored: StoredLine[] })[]> {
  const store = async (tx: Transaction) => {
    const stored = []
    const newest = await tx.query<Last>(
      `select position, account, number, date::text as date, closing from bank_statements order by position desc limit 1`,
    )
    let [last] = newest.rows
    for (const statement of statements) {
      const { account, number, date, id: statement_id, lines, closing } = statement
      const content_hash = hashOf(statement)
      const known = await tx.query<{ position: number }>(
        'select position from bank_statements where content_hash = $1',
        [content_hash],
      )
      const position = known.rows[0]?.position ?? (last?.position ?? 0) + 1
      const [is_new, own] = [known.rows[0] === undefined, identified(statement, position)]
      stored.push({ position, statement_id, date, lines: lines.length, is_new, stored: own })
      if (!is_new) continue
      if (last !== undefined) requireNext(last, statement)
      const made = { position, statement_id, lines: lines.length, content_hash, imported_by: operator }
      await insertStatement(tx, { ...statement, ...made }, own)
      await recordNow(
        tx,
        PLATFORM_ID,
        audited(origin, 'bank_statement.import', String(position), { after: { content_hash } }),
      )
      last = { position, account, date, closing: amountOf(closing), ...(number !== undefined && { number }) }
    }
    return stored
  }
  return transaction(db, store).catch((error: unknown) => {
    if (violatedConstraint(error) === undefined) throw error
    return refuse('somebody else has just imported a statement: import it again')
  })
}

async function insertStatement(
  tx: Transaction,
  statement: { position: number },
  lines: StoredLine[],
): Promise<void> {
  const { text: imported_at } = await readClock(tx)
  await tx.query(
    'insert into bank_statements select * from json_populate_record(null::bank_statements, $1)',
    [jsonOf({ ...statement, imported_at })],
  )
  await (await ownRowMacs()).seal(tx, 'bank_statements', String(statement.position))
  for (let start = 0; start < lines.length; start += INSERT_MAX)
    await tx.query('insert into bank_lines select * from json_populate_recordset(null::bank_lines, $1)', [
      jsonOf(lines.slice(start, start + INSERT_MAX)),
    ])
}

/** Whether lines that are exact are matched at import, without a person. Off until somebody turns it on. */
export async function isExactOn(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ exact: boolean }>(
    'select exact from bank_rules order by set_at desc limit 1',
  )
  return rows[0]?.exact ?? false
}

/** Turns the rule `exact` on or off, with its record in the audit log. Returns whether it was changed. */
export async function setExact(db: Database, exact: boolean, { operator, origin }: By): Promise<boolean> {
  return transaction(db, async (tx) => {
    if ((await isExactOn(tx)) === exact) return false
    await tx.query('insert into bank_rules (set_at, exact, set_by) values (clock_timestamp(), $1, $2)', [
      exact,
      operator,
    ])
    await recordNow(tx, PLATFORM_ID, audited(origin, 'bank_rule.set', 'exact', { after: { exact } }))
    return true
  })
}

/** The newest statements, at most a thousand. */
export async function listStatements(db: Queryable) {
  type Texts = Record<
    'format' | 'account' | 'statement_id' | 'date' | 'opening' | 'closing' | 'imported_by' | 'imported_at',
    string
  >
  const { rows } = await db.query<Texts & Record<'position' | 'lines', number>>(
    `select position, format, account, statement_id, date::text as date, opening, closing, lines, imported_by, imported_at
     from bank_statements order by position desc limit 1000`,
  )
  return rows
}
