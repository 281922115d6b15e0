import {
  DIGEST_BYTES,
  firstHash,
  linkHash,
  recordDigest,
  type AuditHead,
  type AuditRow,
} from '../ledger/audit.ts'
import { momentAt } from '../db/ids.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../db/database.ts'

/** The first place of a chain that is not as it was written. */
export interface ChainFault {
  customer_id: string
  /** The link; absent where the fault is outside of the chain. */
  position?: number
  /** The record of the audit log, where the fault is in one record. */
  record_id?: string
  /** The moment of the record or link. */
  created_at?: string
  action?: string
  /** The subjects of the record: where it moved money, the entries of one of them may be what was changed. */
  subject_ids?: string[]
  fault: string
}

export interface ChainVerification {
  chains: number
  links: number
  records: number
  /** The number of anchored heads that were compared. */
  anchors: number
  /** At most one for each chain: its first. */
  faults: ChainFault[]
  /** The earliest moment from which all entries of all chains are covered. Null without chains. */
  covered_from: string | null
}

interface VerifyChainsOptions {
  /** Heads that were exported before: the chains must still contain them. */
  anchors?: readonly AuditHead[]
  /** Only the chain of this customer. */
  customerId?: string | undefined
  /** Called after each chain. */
  onChain?: () => void
}

/** Links that one statement reads, with their records and entries. */
const PAGE = 100

interface Head {
  position: string
  hash: Buffer
  covered_from: string
}

interface Link {
  position: string
  created_at: string
  digests: Buffer
  hash: Buffer
}

type StoredRow = Omit<AuditRow, 'created_at'> & {
  position: string
  created_at: string
  /** The columns of its entries; null where it has no ledger event. */
  entries: string[] | null
  /** Whether its entries have its time. */
  at_its_time: boolean | null
}

/** The chains of all customers and of the platform, also of records whose head is gone. */
const OWNERS = `
  select id
  from (
    select id from customers
    union select customer_id from audit_heads
    union select distinct customer_id from audit_links
    union select distinct customer_id from audit_log
  ) all_of
  where $1::uuid is null or id = $1
  order by id`

/**
 * Recomputes the chains of the audit log from its records and the entries that they cover
 * (docs/reference/audit-chain.md), each in one snapshot, in pages: the memory that it takes does not grow with the log.
 * Reports the first fault of each chain. Without anchors, a chain whose end was cut off with its head, or that was
 * written anew as a whole, has no fault.
 */
export async function verifyAuditChains(
  db: Database,
  { anchors = [], customerId, onChain = () => undefined }: VerifyChainsOptions = {},
): Promise<ChainVerification> {
  const found: ChainVerification = {
    chains: 0,
    links: 0,
    records: 0,
    anchors: 0,
    faults: [],
    covered_from: null,
  }
  const ids = await inSnapshot(db, async (tx) => {
    const { rows } = await tx.query<{ id: string }>(OWNERS, [customerId])
    return rows.map(({ id }) => id)
  })
  for (const id of ids) {
    const own = anchors.filter((anchor) => anchor.customer_id === id)
    const fault = await inSnapshot(db, (tx) => new ChainCheck(tx, id, own, found).firstFault())
    found.chains += 1
    if (fault !== undefined) found.faults.push({ customer_id: id, ...fault })
    onChain()
  }
  for (const anchor of anchors)
    if (!ids.includes(anchor.customer_id) && (customerId ?? anchor.customer_id) === anchor.customer_id)
      found.faults.push({ customer_id: anchor.customer_id, fault: 'the chain of the anchored head is gone' })
  return found
}

const inSnapshot = <T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> =>
  transaction(
    db,
    async (tx) => {
      await tx.query('set local enable_seqscan = on')
      return work(tx)
    },
    'isolation level repeatable read read only',
  )

type Fault = Omit<ChainFault, 'customer_id'>

/** The check of one chain. */
class ChainCheck {
  #tx: Queryable
  #customerId: string
  #anchors: ReadonlyMap<number, AuditHead>
  #found: ChainVerification

  constructor(tx: Queryable, customerId: string, anchors: readonly AuditHead[], found: ChainVerification) {
    this.#tx = tx
    this.#customerId = customerId
    this.#anchors = new Map(anchors.map((anchor) => [anchor.position, anchor]))
    this.#found = found
  }

  async firstFault(): Promise<Fault | undefined> {
    const { rows } = await this.#tx.query<Head>(
      'select position, hash, covered_from from audit_heads where customer_id = $1',
      [this.#customerId],
    )
    const [head] = rows
    if (head === undefined)
      return { fault: 'the chain has no head: it was deleted, or the customer was inserted by hand' }
    const from = this.#found.covered_from
    if (from === null || head.covered_from > from) this.#found.covered_from = head.covered_from
    return (await this.#faultOfLinks(head)) ?? (await this.#faultOutside(head))
  }

  async #faultOfLinks(head: Head): Promise<Fault | undefined> {
    let position = 0
    let hash = firstHash(this.#customerId, momentAt(head.covered_from))
    for (;;) {
      const links = await this.#links(position)
      const records = await this.#records(position, links)
      for (const link of links) {
        const place = { position: position + 1, created_at: link.created_at }
        if (Number(link.position) !== position + 1)
          return { position: position + 1, fault: `link ${position + 1} is missing` }
        const own = records.get(link.position) ?? []
        const fault = this.#faultOfRecords(link, own)
        if (fault !== undefined) return { ...place, ...fault }
        hash = linkHash(hash, link.digests)
        if (!hash.equals(link.hash)) {
          const what = position === 0 ? ', or from when on entries are covered was changed' : ''
          return { ...place, fault: `link ${position + 1} does not follow from the link before it${what}` }
        }
        position += 1
        const anchored = this.#faultOfAnchor(position, hash)
        if (anchored !== undefined) return { ...place, fault: anchored }
        this.#found.links += 1
        this.#found.records += own.length
      }
      if (links.length < PAGE) return this.#faultOfEnd(head, position, hash)
    }
  }

  /** Recomputes one link from its records and entries, and from the link before it. */
  async faultOfLink(position: number): Promise<string | undefined> {
    const around = (await this.#links(Math.max(0, position - 2))).filter(
      (link) => Number(link.position) <= position,
    )
    const link = around.find((one) => Number(one.position) === position)
    if (link === undefined) return `link ${position} is missing`
    const records = await this.#records(position - 1, [link])
    const fault = this.#faultOfRecords(link, records.get(link.position) ?? [])
    if (fault !== undefined) return fault.fault
    const before =
      around.find((one) => Number(one.position) === position - 1)?.hash ?? (await this.#firstHash())
    return linkHash(before, link.digests).equals(link.hash)
      ? undefined
      : `link ${position} does not follow from the link before it`
  }

  async #firstHash(): Promise<Buffer> {
    const { rows } = await this.#tx.query<Pick<Head, 'covered_from'>>(
      'select covered_from from audit_heads where customer_id = $1',
      [this.#customerId],
    )
    return firstHash(this.#customerId, momentAt(rows[0]!.covered_from))
  }

  #faultOfEnd(head: Head, position: number, hash: Buffer): Fault | undefined {
    const last = Number(head.position)
    if (last > position)
      return {
        position: position + 1,
        fault: `the chain is truncated: links ${position + 1} to ${last} are missing`,
      }
    if (last < position || !hash.equals(head.hash))
      return { position, fault: `the head says link ${last}, and is not the last link, ${position}` }
    const cutOff = [...this.#anchors.keys()].filter((one) => one > position).sort((a, b) => a - b)
    if (cutOff.length > 0)
      return {
        position: position + 1,
        fault: `the chain is cut off: it ends with link ${position}, and an anchored head is link ${cutOff.at(-1)!}`,
      }
    return undefined
  }

  #faultOfAnchor(position: number, hash: Buffer): string | undefined {
    const anchor = this.#anchors.get(position)
    if (anchor === undefined) return undefined
    this.#found.anchors += 1
    if (anchor.hash === hash.toString('hex')) return undefined
    return `link ${position} is not the anchored head: the chain was written anew, here or before`
  }

  /** Compares the records of a link with its digests. */
  #faultOfRecords({ position, created_at, digests }: Link, records: readonly StoredRow[]): Fault | undefined {
    const count = digests.length / DIGEST_BYTES
    for (const [index, row] of records.entries()) {
      const digest = recordDigest(
        this.#customerId,
        { ...row, created_at: momentAt(row.created_at) },
        row.entries ?? [],
      )
      const expected = digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES)
      if (digest.equals(expected) && row.at_its_time !== false) continue
      if (index >= count || records.length > count)
        return { ...placeOf(row), fault: `record ${row.id} was inserted into link ${position}` }
      if (records.length < count) break
      const entries =
        row.ledger_event === null ? '' : `, or one of the ${row.ledger_event} entries of its transfers`
      return {
        ...placeOf(row),
        fault: `record ${row.id}${entries} was changed, or moved to link ${position}`,
      }
    }
    if (records.length < count)
      return {
        fault: `link ${position} has ${count} records, and ${count - records.length} of them are missing`,
      }
    if (records[0]!.created_at !== created_at) return { fault: `the time of link ${position} was changed` }
    return undefined
  }

  async #links(after: number): Promise<Link[]> {
    const { rows } = await this.#tx.query<Link>(
      `
      select position, created_at, digests, hash
      from audit_links
      where customer_id = $1 and position > $2
      order by position
      limit ${PAGE}`,
      [this.#customerId, after],
    )
    return rows
  }

  /** Reads the records of some links, by position. */
  async #records(after: number, links: readonly Link[]): Promise<Map<string, StoredRow[]>> {
    const last = links.at(-1)
    if (last === undefined) return new Map()
    const { rows } = await this.#tx.query<StoredRow>(RECORDS, [this.#customerId, after, last.position])
    const byPosition = new Map<string, StoredRow[]>()
    for (const row of rows) byPosition.set(row.position, [...(byPosition.get(row.position) ?? []), row])
    return byPosition
  }

  /** Finds records that no link has, and entries that no record covers. */
  async #faultOutside(head: Head): Promise<Fault | undefined> {
    const { rows: strays } = await this.#tx.query<Pick<StoredRow, 'id' | 'created_at' | 'action'>>(
      `
      select id, created_at, action
      from audit_log
      where customer_id = $1 and (position > $2 or position < 1)
      order by created_at, id
      limit 1`,
      [this.#customerId, head.position],
    )
    const [stray] = strays
    if (stray !== undefined)
      return {
        record_id: stray.id,
        created_at: stray.created_at,
        action: stray.action,
        fault: `record ${stray.id} was inserted: no link has it`,
      }
    const { rows } = await this.#tx.query<{ transfer_id: string; event: string; created_at: string }>(
      `
      select e.transfer_id, e.event, e.created_at
      from entries e
      where e.customer_id = $1 and e.created_at >= $2
        and not exists (
          select 1 from (
            select unnest(subject_ids) as id, ledger_event
            from audit_log
            where customer_id = $1 and ledger_event is not null
          ) covered
          where covered.id = e.transfer_id and covered.ledger_event = e.event
        )
      order by e.created_at, e.transfer_id
      limit 1`,
      [this.#customerId, head.covered_from],
    )
    const [entry] = rows
    if (entry === undefined) return undefined
    const { transfer_id, event, created_at } = entry
    return {
      created_at,
      subject_ids: [transfer_id],
      fault: `the ${event} entries of transfer ${transfer_id} were inserted: no record covers them`,
    }
  }
}

/** Recomputes one link of a customer's chain, in the caller's snapshot. Returns its fault, or undefined. */
export const faultOfLink = (
  tx: Queryable,
  customerId: string,
  position: number,
): Promise<string | undefined> =>
  new ChainCheck(tx, customerId, [], {
    chains: 0,
    links: 0,
    records: 0,
    anchors: 0,
    faults: [],
    covered_from: null,
  }).faultOfLink(position)

const placeOf = ({ id, created_at, action, subject_id, subject_ids }: StoredRow) => ({
  record_id: id,
  created_at,
  action,
  subject_ids: subject_id === null ? (subject_ids ?? '').slice(1, -1).split(',') : [subject_id],
})

/** The columns of entries that a record's digest covers, in its order. */
const ENTRY_COLUMNS = [
  'transfer_id',
  'position',
  'account',
  'profile_id',
  'asset',
  'amount',
  'balance_after',
  'version',
]

const RECORDS = `
  select r.position, r.id, r.created_at, r.actor_type, r.actor_id, r.action, r.subject_type, r.subject_id,
         r.subject_ids::text as subject_ids, r.request_ids::text as request_ids, r.ips::text as ips, r.outcome,
         r.ledger_event, r.changes::text as changes, e.entries, e.at_its_time
  from audit_log r
  left join lateral (
    select array[${ENTRY_COLUMNS.map((name) => `coalesce(array_agg(e.${name} order by s.n, e.position)::text, '{}')`).join(', ')}]
             as entries,
           bool_and(e.created_at = r.created_at) as at_its_time
    from unnest(r.subject_ids) with ordinality as s (id, n)
    join entries e on e.customer_id = $1 and e.transfer_id = s.id and e.event = r.ledger_event
  ) e on r.ledger_event is not null
  where r.customer_id = $1 and r.position > $2 and r.position <= $3
  order by r.position, r.id`
