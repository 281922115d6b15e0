import { transaction, type Database, type Queryable } from '../db/database.ts'
import { momentAt, PLATFORM_ID } from '../db/ids.ts'
import { beginChain, readAuditHeads, type AuditHead } from '../ledger/audit.ts'

/** Most heads that one read returns: the others follow with the next. */
const HEADS_MAX = 1_000

/** The heads of the audit log's chains that moved since they were read last. */
export class MovedHeads {
  /** In the order in which they were returned. */
  #returned = new Map<string, number>()

  /** Returns heads that moved, those first that were not returned for longest. A chain without a link has none. */
  async read(db: Queryable): Promise<AuditHead[]> {
    const order = new Map([...this.#returned.keys()].map((id, index) => [id, index]))
    const moved = (await readAuditHeads(db))
      .filter(({ customer_id, position }) => position > (this.#returned.get(customer_id) ?? 0))
      .sort((a, b) => (order.get(a.customer_id) ?? -1) - (order.get(b.customer_id) ?? -1))
      .slice(0, HEADS_MAX)
    for (const { customer_id, position } of moved) {
      this.#returned.delete(customer_id)
      this.#returned.set(customer_id, position)
    }
    return moved.map(({ customer_id, position, hash }) => ({ customer_id, position, hash }))
  }
}

/** Most chains that one call begins. */
const BEGUN_MAX = 100

/**
 * Begins the chains of customers that a process of the version before the audit log created during the upgrade. A chain
 * that is missing for another reason stays missing: `bursar audit verify` reports it. Returns the number of chains.
 */
export async function beginMissingChains(db: Database): Promise<number> {
  const { rows: platform } = await db.query<{ covered_from: string }>(
    'select covered_from from audit_heads where customer_id = $1',
    [PLATFORM_ID],
  )
  if (platform[0] === undefined) return 0
  const { covered_from } = platform[0]
  const { rows } = await db.query<{ id: string }>(
    `
    select c.id
    from customers c
    where c.created_at < $1
      and not exists (select 1 from audit_heads h where h.customer_id = c.id)
      and not exists (select 1 from audit_links l where l.customer_id = c.id)
    limit ${BEGUN_MAX}`,
    [covered_from],
  )
  for (const { id } of rows) await transaction(db, (tx) => beginChain(tx, id, momentAt(covered_from)))
  return rows.length
}
