import { strict as assert } from 'node:assert'
import { hash } from 'node:crypto'
import type { Actor, Origin } from '../contract/actor.ts'
import { subjectOfAction, type AuditAction } from '../contract/audit-actions.ts'
import { inOrder, type LastWrite, type Queryable, type Transaction } from '../db/database.ts'
import { arrayLiteral } from '../db/array-literal.ts'
import { newId, type Moment } from '../db/ids.ts'
import { bind, columnsOf, sendTogether, type StatementPart } from '../db/together.ts'

/**
 * The event of a transfer. SWEPT: a transaction that moves money from deposit addresses has ended. Each event is
 * posted once: it is part of the entries' primary key. SETTLED is also the event of a transaction that an operator
 * has acknowledged.
 */
export type LedgerEvent = 'CREATED' | 'SETTLED' | 'REFUNDED' | 'SWEPT'

/** The outcome of a change: it was made, or refused for lack of authority or by policy. */
export const AUDIT_OUTCOMES = ['DONE', 'REFUSED'] as const
type AuditOutcome = (typeof AUDIT_OUTCOMES)[number]

/** A change, or a refused change, of one record (API behaviour, Audit log). */
export interface AuditRecord {
  origin: Origin
  action: AuditAction
  subject: { type: string; id: string }
  /** DONE by default. */
  outcome?: AuditOutcome
  /** The values that changed, of configuration only. Never secrets, bodies of requests or personal values. */
  changes?: { before?: object; after?: object }
}

/**
 * Records changes in the audit log. The records are written with the commit of the transaction that makes the changes. `now` is
 * the moment of the changes, read in this transaction. For orchestrations it must be the `created_at` or the `updated_at` that
 * the change gives them: their audit records are found by that time. `customerId` is PLATFORM_ID for what belongs to no customer.
 */
export function recordChanges(
  tx: Transaction,
  customerId: string,
  now: Moment,
  records: readonly AuditRecord[],
): void {
  if (records.length === 0) return
  const trail = trailOf(tx)
  for (const { origin, action, subject, outcome = 'DONE', changes } of records)
    trail.add(customerId, now, origin, {
      action,
      subject,
      outcome,
      changes: changes === undefined ? null : JSON.stringify(changes),
    })
}

/** Changes of one actor and one action that move money. */
export interface MoneyMoved {
  actor: Actor
  action: AuditAction
  event: LedgerEvent
  transferIds: string[]
  requestIds: (string | undefined)[]
  ips: (string | undefined)[]
}

/** Records changes that move money, with their entries. These records are found by the moment of the entries. */
export function recordMoneyMoved(
  tx: Transaction,
  customerId: string,
  now: Moment,
  moved: MoneyMoved,
  columns: readonly string[],
): void {
  trailOf(tx).addMoneyMoved(customerId, now, moved, columns)
}

/** Begins the chain of a customer. Its entries are covered from `coveredFrom` on. */
export async function beginChain(tx: Queryable, customerId: string, coveredFrom: Moment): Promise<void> {
  await tx.query(
    'insert into audit_heads (customer_id, position, hash, covered_from) values ($1, 0, $2, $3) on conflict do nothing',
    [customerId, firstHash(customerId, coveredFrom), coveredFrom.text],
  )
}

/** The end of a chain, as `bursar audit head` exports it. The hash is hexadecimal. */
export interface AuditHead {
  customer_id: string
  position: number
  hash: string
}

/** Reads the heads of all chains, with the moments from which they cover entries. The platform's is the first. */
export async function readAuditHeads(db: Queryable): Promise<(AuditHead & { covered_from: string })[]> {
  const { rows } = await db.query<{
    customer_id: string
    position: string
    hash: string
    covered_from: string
  }>(
    `select customer_id, position, encode(hash, 'hex') as hash, covered_from from audit_heads order by customer_id`,
  )
  return rows.map((row) => ({ ...row, position: Number(row.position) }))
}

/** Returns the hash before the first link of a chain. No other chain has the same. */
export const firstHash = (customerId: string, coveredFrom: Moment): Buffer =>
  sha256(`bursar audit chain ${customerId} ${coveredFrom.micros}`)

export const linkHash = (previous: Buffer, digests: Buffer): Buffer =>
  sha256(Buffer.concat([previous, digests]))

const sha256 = (bytes: string | Buffer): Buffer => hash('sha256', bytes, 'buffer')

export const DIGEST_BYTES = 32

/** A row of audit_log, with arrays as PostgreSQL writes them. */
export interface AuditRow {
  id: string
  created_at: Moment
  actor_type: string
  actor_id: string
  action: string
  subject_type: string
  subject_id: string | null
  subject_ids: string | null
  request_ids: string | null
  ips: string | null
  outcome: string
  ledger_event: string | null
  changes: string | null
}

/**
 * Returns the digest of a row of the audit log (docs/reference/audit-chain.md). `entries` are the columns of its entries,
 * where it has a ledger event.
 */
export function recordDigest(customerId: string, row: AuditRow, entries: readonly string[]): Buffer {
  const { id, created_at, ...fields } = row
  let bytes = `${field('bursar audit record 1')}${field(customerId)}${field(id)}${field(String(created_at.micros))}`
  for (const name of HASHED_FIELDS) bytes += field(fields[name])
  for (const column of entries) bytes += field(column)
  return sha256(bytes)
}

const HASHED_FIELDS = [
  'actor_type',
  'actor_id',
  'action',
  'subject_type',
  'subject_id',
  'subject_ids',
  'request_ids',
  'ips',
  'outcome',
  'ledger_event',
  'changes',
] as const

/** Writes a value with its length, so that no two lists of values have the same bytes. */
const field = (value: string | null) => (value === null ? '-,' : `${Buffer.byteLength(value)}:${value},`)

/** Most subjects of a row: the last four digits of a record's id number them. */
const SUBJECTS_MAX = 0xffff

/** Returns the id of a row. Its last four digits are zero, and number the subjects in the ids of records. */
const rowId = (now: Moment, sequence: number) => `${newId(now, sequence).slice(0, -4)}0000`

type Pending = AuditRow & { subjects?: Subjects; entries: readonly string[] }

/** The subjects of a row to which more may be added. */
interface Subjects {
  ids: string[]
  requestIds: (string | undefined)[]
  ips: (string | undefined)[]
}

/** The types of records that change in batches. Their rows need no index: the moment of a change finds them. */
const UNINDEXED_SUBJECTS = new Set(['orchestration'])

/** The rows of the audit log that a transaction will write, by customer. */
class AuditTrail implements LastWrite {
  #rows = new Map<string, Pending[]>()

  add(
    customerId: string,
    now: Moment,
    { actor, request_id, ip }: Origin,
    {
      action,
      subject,
      outcome,
      changes,
    }: Required<Pick<AuditRecord, 'action' | 'subject' | 'outcome'>> & {
      changes: string | null
    },
  ): void {
    const rows = this.#rowsOf(customerId)
    const isOfBatch = UNINDEXED_SUBJECTS.has(subject.type) && changes === null
    const alike = isOfBatch
      ? rows.find(
          (row) =>
            row.subjects !== undefined &&
            row.action === action &&
            row.actor_id === actor.id &&
            row.actor_type === actor.type &&
            row.outcome === outcome &&
            row.created_at.micros === now.micros &&
            row.subjects.ids.length < SUBJECTS_MAX,
        )
      : undefined
    if (alike?.subjects !== undefined) {
      alike.subjects.ids.push(subject.id)
      alike.subjects.requestIds.push(request_id)
      alike.subjects.ips.push(ip)
      return
    }
    const subjects = { ids: [subject.id], requestIds: [request_id], ips: [ip] }
    rows.push({
      id: rowId(now, rows.length),
      created_at: now,
      actor_type: actor.type,
      actor_id: actor.id,
      action,
      subject_type: subject.type,
      subject_id: isOfBatch ? null : subject.id,
      subject_ids: null,
      request_ids: oneOrEach(subjects.requestIds),
      ips: oneOrEach(subjects.ips),
      outcome,
      ledger_event: null,
      changes,
      entries: [],
      ...(isOfBatch && { subjects }),
    })
  }

  addMoneyMoved(customerId: string, now: Moment, moved: MoneyMoved, entries: readonly string[]): void {
    const { actor, action, event, transferIds, requestIds, ips } = moved
    assert(transferIds.length <= SUBJECTS_MAX, 'a ledger transaction has too many transfers')
    const rows = this.#rowsOf(customerId)
    rows.push({
      id: rowId(now, rows.length),
      created_at: now,
      actor_type: actor.type,
      actor_id: actor.id,
      action,
      subject_type: subjectOfAction(action),
      subject_id: null,
      subject_ids: `{${transferIds.join()}}`,
      request_ids: oneOrEach(requestIds),
      ips: oneOrEach(ips),
      outcome: 'DONE',
      ledger_event: event,
      changes: null,
      entries,
    })
  }

  #rowsOf(customerId: string): Pending[] {
    const rows = this.#rows.get(customerId)
    if (rows !== undefined) return rows
    const none: Pending[] = []
    this.#rows.set(customerId, none)
    return none
  }

  /** Heads of several customers are locked in the order of their ids. */
  send(tx: Transaction): Promise<unknown> {
    const trails = [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1))
    return inOrder(trails.map(([customerId, rows]) => writeLink(tx, customerId, rows)))
  }
}

function trailOf({ atCommit }: Transaction): AuditTrail {
  assert(atCommit !== undefined, 'only transactions that `begin` began write an audit trail')
  const known = atCommit.find((write) => write instanceof AuditTrail)
  if (known !== undefined) return known
  const made = new AuditTrail()
  atCommit.push(made)
  return made
}

/** Formats one value per subject as an array: one element where all are equal, null where there is none. */
function oneOrEach(values: readonly (string | undefined)[]): string | null {
  const [first] = values
  if (values.some((value) => value !== first)) return arrayLiteral(values)
  return first === undefined ? null : arrayLiteral([first])
}

/** Writes the rows of a customer and their link: the lock of the head orders the links. Fails where the customer has no chain. */
async function writeLink(tx: Transaction, customerId: string, pending: Pending[]): Promise<void> {
  for (const row of pending)
    if (row.subjects !== undefined) {
      row.subject_ids = arrayLiteral(row.subjects.ids)
      row.request_ids = oneOrEach(row.subjects.requestIds)
      row.ips = oneOrEach(row.subjects.ips)
    }
  const rows = [...pending].sort((a, b) => (a.id < b.id ? -1 : 1))
  const owner = customerId.toLowerCase()
  const digests = `\\x${rows.map((row) => recordDigest(owner, row, row.entries).toString('hex')).join('')}`
  await sendTogether(
    tx,
    customerId,
    [bind(INSERT_LINK, [{ created_at: rows[0]!.created_at.text, digests }]), bind(INSERT_RECORDS, rows)],
    { table: 'audit_heads', bound: bind(MOVE_HEAD, [{ digests }]) },
  )
}

/** The columns of audit_log that the statement reads from arrays. Arrays of different lengths are sent as text. */
const ROW_COLUMNS = [
  { name: 'id', type: 'uuid' },
  { name: 'actor_type', type: 'text' },
  { name: 'actor_id', type: 'text' },
  { name: 'action', type: 'text' },
  { name: 'subject_type', type: 'text' },
  { name: 'subject_id', type: 'text' },
  { name: 'subject_ids', type: 'text', cast: 'uuid[]' },
  { name: 'request_ids', type: 'text', cast: 'uuid[]' },
  { name: 'ips', type: 'text', cast: 'text[]' },
  { name: 'outcome', type: 'text' },
  { name: 'ledger_event', type: 'text' },
  { name: 'changes', type: 'text', cast: 'json' },
] as const satisfies { name: keyof AuditRow; type: string; cast?: string }[]

const ROW_NAMES = ROW_COLUMNS.map(({ name }) => name).join(', ')

const MOVE_HEAD: StatementPart<{ digests: string }> = {
  name: 'move head',
  inserts: false,
  columns: columnsOf<{ digests: string }>({ digests: 'bytea' }),
  text: ({ customer, value, from }) => `
    update audit_heads set position = position + 1, hash = sha256(hash || ${value('digests')}::bytea)
    ${from}
    where customer_id = ${customer}`,
}
const INSERT_LINK: StatementPart<{ created_at: string; digests: string }> = {
  name: 'insert link',
  inserts: true,
  columns: columnsOf<{ created_at: string; digests: string }>({
    created_at: 'timestamptz',
    digests: 'bytea',
  }),
  text: ({ fromChanged }) => `
    insert into audit_links (customer_id, position, created_at, digests, hash)
    select changed.customer_id, changed.position, r.created_at, r.digests, changed.hash
    ${fromChanged(['customer_id', 'position', 'hash'])}`,
}
const INSERT_RECORDS: StatementPart<AuditRow> = {
  name: 'insert records',
  inserts: true,
  columns: [
    { name: 'created_at', type: 'timestamptz', of: ({ created_at }) => created_at.text },
    ...ROW_COLUMNS.map(({ name, type }) => ({ name, type, of: (row: AuditRow) => row[name] })),
  ],
  text: ({ fromChanged }) => {
    const columns = ROW_COLUMNS.map(
      (column) => `r.${column.name}${'cast' in column ? `::${column.cast}` : ''}`,
    )
    return `
    insert into audit_log (customer_id, position, created_at, ${ROW_NAMES})
    select changed.customer_id, changed.position, r.created_at, ${columns.join(', ')}
    ${fromChanged(['customer_id', 'position'])}`
  },
}
