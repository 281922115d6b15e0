import { createHash } from 'node:crypto'
import { Temporal } from 'temporal-polyfill'
import { Type, type Static } from 'typebox'
import { audited, recordNow } from '../../audit/audited.ts'
import { ownRowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'
import { OneOf, Uuid } from '../../contract/fields.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { PLATFORM_ID, readClock } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import { bankReference } from '../../money/records/bank-wires.ts'
import type { By } from '../wires/outgoing-wires.ts'
import { amountOf, refuse, shown, type BankLine, type BankStatement } from './statement.ts'

/** Bank statements in the database: each follows the one before, and is stored once with all its lines, or not at all. */

export const Day = Type.String({ format: 'date', maxLength: 10, pattern: '^[12]', description: 'A date.' })
const Signed = Type.String({ description: 'An amount in USD; negative: it left, or is missing.' })
const Word = Type.String({ description: 'As the bank or an operator wrote it.' })
export const Transfer = Uuid('The transfer.')
export const Kind = OneOf(['DEPOSIT', 'SENT', 'RETURN', 'RECORDED'], 'RECORDED: by an operator, before.')
/** A line as it is stored: its reference has the form of `bank_wires`. The last members are those of a line that is matched. */
export const Line = Type.Object({
  ...{ id: Uuid('The line.'), date: Day, amount: Signed, bank_reference: Word, text: Word, code: Word },
  ...{ is_return: Type.Boolean(), is_reversal: Type.Boolean(), customer_reference: Type.Optional(Word) },
  ...{ transfer_id: Type.Optional(Transfer), kind: Type.Optional(Kind) },
  ...{ rule: Type.Optional(Word), matched_by: Type.Optional(Word) },
})
export type StoredLine = Static<typeof Line> &
  Pick<BankLine, 'is_single'> & { position: number; ordinal: number }
type Last = { account: string; number: number | null; date: string; closing: string }

/** Lines, or breaks, that an answer names. */
export const LISTED_MAX = 1_000
/** Lines that their statement's MAC counts, with their matches. */
export const LINES = `bank_lines l
     join bank_statements r on r.position = l.position and l.ordinal <= r.lines
     left join bank_matches m on m.line_id = l.id`

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

/** Stores a statement once. Returns the new lines that `exact` may match, too. Throws a Refusal where it does not follow the last. */
export async function storeStatement(tx: Transaction, statement: BankStatement, { operator, origin }: By) {
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

/** Reads lines of stored statements, newest first. Throws an Error for a statement that nobody imported. */
export async function readLines(db: Database, wanted: Partial<Record<'id' | 'state' | 'date', string>>) {
  const { rows } = await db.query<StoredLine & Seal>(
    `select l.position, l.ordinal, l.id, l.date::text as date, l.amount, l.bank_reference, l.customer_reference, l.text, l.code,
            l.is_reversal, l.is_return, m.transfer_id, m.kind, m.rule, m.matched_by, ${sealOf('bank_statements')}
     from ${LINES}
     where ($1::uuid is null or l.id = $1)
       and ($2::text is null or ($2 = 'MATCHED') = (m.line_id is not null))
       and ($3::date is null or l.date = $3)
     order by l.position desc, l.ordinal desc
     limit ${LISTED_MAX}`,
    [wanted.id, wanted.state, wanted.date],
  )
  const macs = await ownRowMacs()
  return rows.map(({ sealed, mac, ...line }) => {
    macs.requireGenuine('bank_statements', String(line.position), { sealed, mac })
    return presentOf(line)
  })
}

const Break = Type.Object({
  kind: OneOf(['ONLY_BANK', 'ONLY_LEDGER', 'DIFFERS'], 'Which of the two has it, until the date.'),
  ...{ amount: Signed, date: Day, age_days: Type.Integer(), text: Type.Optional(Word) },
  ...{ line_id: Type.Optional(Uuid('The line.')), transfer_id: Type.Optional(Transfer) },
})
export const Reconciliation = Type.Object({
  ...{ date: Day, statement_date: Day, bank: Signed, ledger: Signed, difference: Signed, opening: Signed },
  items: Type.Array(Break),
  left_off: Type.Integer({ description: 'How many more there are; the sums have them.' }),
  remainder: Signed,
  explained: Type.Boolean({ description: 'Whether the remainder is 0.' }),
})
type Sums = Omit<Static<typeof Reconciliation>, 'date' | 'items' | 'left_off' | 'explained'>

/** Entries of the ledger's account until the end of a date. Their sign is the ledger's: negative is what the bank has. */
const OF_BANK = "account = 'bank' and asset = 'USD' and created_at < $1::date + 1"

/**
 * Compares the last statement until a date (default: today) with the ledger's account `bank` at the end of the date in UTC: a line
 * and its transfer's entry are one, and what is left of them is a break. Reads every entry. Throws a Refusal without a statement.
 */
export async function reconcile(db: Database, asked?: string) {
  const read = async (tx: Transaction) => {
    // No index has the entries of an account in the order of time.
    await tx.query('set local enable_seqscan = on')
    const date = asked ?? (await readClock(tx)).text.slice(0, 10)
    const { rows: sums } = await tx.query<Sums>(
      `select s.date::text as statement_date, s.closing as bank, first.opening, trim_scale(ledger) as ledger,
              trim_scale(s.closing - ledger) as difference, trim_scale(s.closing - ledger - first.opening) as remainder
       from bank_statements s
       join bank_statements first on first.position = 1
       cross join (select coalesce(-sum(amount), 0) as ledger from entries where ${OF_BANK}) of_bank
       where s.date <= $1::date
       order by s.position desc limit 1`,
      [date],
    )
    if (sums[0] === undefined) return refuse(`no bank statement of ${date} or before was imported`)
    const { rows } = await tx.query<Static<typeof Break> & { remainder: string; count: number }>(
      `select case when count(line_id) = 0 then 'ONLY_LEDGER' when count(line_id) = count(*) then 'ONLY_BANK' else 'DIFFERS' end as kind,
              trim_scale(sum(amount)) as amount, max(date)::text as date, $1::date - max(date) as age_days,
              max(line_id::text) as line_id, transfer_id, max(text) as text,
              trim_scale($2 - sum(sum(amount)) over ()) as remainder, (count(*) over ())::integer as count
       from (
         select l.id as line_id, m.transfer_id, l.date, l.amount, l.text
         from ${LINES} where r.date <= $1::date
         union all
         select null, transfer_id, created_at::date, amount, null from entries where ${OF_BANK}
       ) both_sides
       group by transfer_id, case when transfer_id is null then line_id end
       having sum(amount) <> 0
       order by max(date), line_id, transfer_id
       limit ${LISTED_MAX}`,
      [date, sums[0].remainder],
    )
    const { remainder, count } = rows[0] ?? { ...sums[0], count: 0 }
    const items = rows.map(({ remainder: _, count: __, ...row }) => presentOf(row))
    const left_off = count - items.length
    return { date, ...sums[0], items, left_off, remainder, explained: remainder === '0' }
  }
  return transaction(db, read, 'isolation level repeatable read read only')
}
