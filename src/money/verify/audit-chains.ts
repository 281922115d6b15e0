import type { AuditHead } from '../../audit/audit.ts'
import { ChainCheck, nothingFound, type ChainVerification, type Fault } from './chain-check.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'

interface VerifyChainsOptions {
  /** Heads that were exported before: the chains must still contain them. */
  anchors?: readonly AuditHead[]
  customerId?: string | undefined
  onChain?: () => void
}

/** The chains of all customers and of the platform, including chains whose head is gone. */
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
  const found = nothingFound()
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

/** Recomputes one link of a customer's chain, in the caller's snapshot. Returns its fault, or undefined. */
export const faultOfLink = (
  tx: Queryable,
  customerId: string,
  position: number,
): Promise<string | undefined> => new ChainCheck(tx, customerId, [], nothingFound()).faultOfLink(position)

/**
 * Recomputes the next links of a customer's chain, at most as many as a request may wait for, in the caller's snapshot:
 * those after a link whose hash is known, or from the first one on. `checked` is the last link that is right.
 */
export async function verifyNextLinks(
  tx: Queryable,
  customerId: string,
  after: Omit<AuditHead, 'customer_id'> | undefined,
): Promise<{
  links: number
  records: number
  checked: Omit<AuditHead, 'customer_id'>
  head?: AuditHead
  fault?: Fault
}> {
  const found = nothingFound()
  const check = new ChainCheck(
    tx,
    customerId,
    after === undefined ? [] : [{ customer_id: customerId, ...after }],
    found,
  )
  const { head, place, fault } = await check.faultOfNext(
    after && { position: after.position, hash: Buffer.from(after.hash, 'hex') },
  )
  return {
    links: found.links,
    records: found.records,
    checked: { position: place.position, hash: place.hash.toString('hex') },
    ...(head !== undefined && {
      head: { customer_id: customerId, position: Number(head.position), hash: head.hash.toString('hex') },
    }),
    ...(fault !== undefined && { fault }),
  }
}
