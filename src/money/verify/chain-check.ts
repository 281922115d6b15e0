import {
  DIGEST_BYTES,
  firstHash,
  linkHash,
  recordDigest,
  type AuditHead,
  type AuditRow,
} from '../../audit/audit.ts'
import { momentAt } from '../../db/ids.ts'
import type { Queryable } from '../../db/database.ts'
import { grouped } from '../../db/rows.ts'

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
  anchors: number
  /** At most one for each chain: its first. */
  faults: ChainFault[]
  /** The earliest moment from which all entries of all chains are covered. Null without chains. */
  covered_from: string | null
}

/** Links that one statement reads, with their records and entries. */
const CHAINS_PAGE = 100
/**
 * The same for a request that waits for them, and the links and subjects at which such a request stops. A link may have a batch
 * of 512 payments, each with some four entries. Measured: a request that stops there takes 0.2 s.
 */
const PAGE_OF_REQUEST = 10
const LINKS_OF_REQUEST = 200
const SUBJECTS_OF_REQUEST = 2_000

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

/** A place in a chain: the last link that was checked, with its hash. */
interface ChainPlace {
  position: number
  hash: Buffer
}

type StoredRow = Omit<AuditRow, 'created_at'> & {
  position: string
  created_at: string
  /** The columns of its entries; null where it has no ledger event. */
  entries: string[] | null
  /** Whether the entries have the time of the record. */
  at_its_time: boolean | null
}

export type Fault = Omit<ChainFault, 'customer_id'>

const NO_HEAD: Fault = {
  fault: 'the chain has no head: it was deleted, or the customer was inserted by hand',
}

/** Recomputes one chain, in the caller's snapshot. */
export class ChainCheck {
  #tx: Queryable
  #customerId: string
  #anchors: ReadonlyMap<number, AuditHead>
  #found: ChainVerification
  /** The number of subjects of the checked records: a measure of how much of the log was read. */
  #subjects = 0

  constructor(tx: Queryable, customerId: string, anchors: readonly AuditHead[], found: ChainVerification) {
    this.#tx = tx
    this.#customerId = customerId
    this.#anchors = new Map(anchors.map((anchor) => [anchor.position, anchor]))
    this.#found = found
  }

  async firstFault(): Promise<Fault | undefined> {
    const head = await this.#head()
    if (head === undefined) return NO_HEAD
    const from = this.#found.covered_from
    if (from === null || head.covered_from > from) this.#found.covered_from = head.covered_from
    return (await this.#faultOfLinks(head)) ?? (await this.#faultOutside(head))
  }

  async #faultOfLinks(head: Head): Promise<Fault | undefined> {
    const place = { position: 0, hash: firstHash(this.#customerId, momentAt(head.covered_from)) }
    for (;;) {
      const links = await this.#links(place.position, CHAINS_PAGE)
      const fault = await this.#faultOfPage(place, links)
      if (fault !== undefined) return fault
      if (links.length < CHAINS_PAGE) return this.#faultOfEnd(head, place.position, place.hash)
    }
  }

  /** Recomputes the links after a place from their records and entries, and moves the place on to the last right link. */
  async #faultOfPage(place: ChainPlace, links: readonly Link[]): Promise<Fault | undefined> {
    const records = await this.#records(place.position, links)
    for (const link of links) {
      const position = place.position + 1
      const faulty = { position, created_at: link.created_at }
      if (Number(link.position) !== position) return { position, fault: `link ${position} is missing` }
      const own = records.get(link.position) ?? []
      const fault = this.#faultOfRecords(link, own)
      if (fault !== undefined) return { ...faulty, ...fault }
      const hash = linkHash(place.hash, link.digests)
      if (!hash.equals(link.hash)) {
        const what = position === 1 ? ', or from when on entries are covered was changed' : ''
        return { ...faulty, fault: `link ${position} does not follow from the link before it${what}` }
      }
      const anchored = this.#faultOfAnchor(position, hash)
      if (anchored !== undefined) return { ...faulty, fault: anchored }
      place.position = position
      place.hash = hash
      this.#found.links += 1
      this.#found.records += own.length
      this.#subjects += own.reduce((sum, { subject_ids }) => sum + (subject_ids?.split(',').length ?? 1), 0)
    }
    return undefined
  }

  /** Recomputes some links after a place, or from the first one on. */
  async faultOfNext(
    after: ChainPlace | undefined,
  ): Promise<{ head?: Head; place: ChainPlace; fault?: Fault | undefined }> {
    const head = await this.#head()
    if (head === undefined) return { place: after ?? { position: 0, hash: Buffer.alloc(0) }, fault: NO_HEAD }
    const place = after ?? { position: 0, hash: firstHash(this.#customerId, momentAt(head.covered_from)) }
    if (after !== undefined) {
      const [kept] = await this.#links(after.position - 1, 1)
      if (kept === undefined || Number(kept.position) !== after.position)
        return {
          head,
          place,
          fault: { position: after.position, fault: `link ${after.position} is missing` },
        }
      const anchored = this.#faultOfAnchor(after.position, kept.hash)
      if (anchored !== undefined) return { head, place, fault: { position: after.position, fault: anchored } }
    }
    for (;;) {
      const links = await this.#links(place.position, PAGE_OF_REQUEST)
      const fault = await this.#faultOfPage(place, links)
      if (fault !== undefined) return { head, place, fault }
      if (links.length < PAGE_OF_REQUEST) {
        return { head, place, fault: this.#faultOfEnd(head, place.position, place.hash) }
      }
      if (this.#found.links >= LINKS_OF_REQUEST || this.#subjects >= SUBJECTS_OF_REQUEST)
        return { head, place }
    }
  }

  /** Recomputes one link from its records and entries, and from the link before it. */
  async faultOfLink(position: number): Promise<string | undefined> {
    const around = (await this.#links(Math.max(0, position - 2), 2)).filter(
      (link) => Number(link.position) <= position,
    )
    const link = around.find((near) => Number(near.position) === position)
    if (link === undefined) return `link ${position} is missing`
    const records = await this.#records(position - 1, [link])
    const fault = this.#faultOfRecords(link, records.get(link.position) ?? [])
    if (fault !== undefined) return fault.fault
    const before =
      around.find((near) => Number(near.position) === position - 1)?.hash ?? (await this.#firstHash())
    return linkHash(before, link.digests).equals(link.hash)
      ? undefined
      : `link ${position} does not follow from the link before it`
  }

  async #head(): Promise<Head | undefined> {
    const { rows } = await this.#tx.query<Head>(
      'select position, hash, covered_from from audit_heads where customer_id = $1',
      [this.#customerId],
    )
    return rows[0]
  }

  async #firstHash(): Promise<Buffer> {
    return firstHash(this.#customerId, momentAt((await this.#head())!.covered_from))
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
    const cutOff = [...this.#anchors.keys()].filter((known) => known > position).sort((a, b) => a - b)
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
        return { ...namesOfRow(row), fault: `record ${row.id} was inserted into link ${position}` }
      if (records.length < count) break
      const entries =
        row.ledger_event === null ? '' : `, or one of the ${row.ledger_event} entries of its transfers`
      return {
        ...namesOfRow(row),
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

  async #links(after: number, limit: number): Promise<Link[]> {
    const { rows } = await this.#tx.query<Link>(
      `
      select position, created_at, digests, hash
      from audit_links
      where customer_id = $1 and position > $2
      order by position
      limit $3`,
      [this.#customerId, after, limit],
    )
    return rows
  }

  async #records(after: number, links: readonly Link[]): Promise<Map<string, StoredRow[]>> {
    const last = links.at(-1)
    if (last === undefined) return new Map()
    const { rows } = await this.#tx.query<StoredRow>(RECORDS, [this.#customerId, after, last.position])
    return grouped(rows, ({ position }) => position)
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

export const nothingFound = (): ChainVerification => ({
  chains: 0,
  links: 0,
  records: 0,
  anchors: 0,
  faults: [],
  covered_from: null,
})

const namesOfRow = ({ id, created_at, action, subject_id, subject_ids }: StoredRow) => ({
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
