import type { Queryable } from '../db/database.ts'
import { readAuditHeads, type AuditHead } from '../audit/audit.ts'

/** Most heads that one read returns: the others follow with the next. */
const HEADS_MAX = 1_000

/** The heads of the audit log's chains that moved since they were read last. */
export class MovedHeads {
  /** The last position returned for each customer's chain, in the order in which they were returned. */
  #returned = new Map<string, number>()

  /** Returns heads that moved. Those that were not returned for longest come first. A chain without a link has no head. */
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
