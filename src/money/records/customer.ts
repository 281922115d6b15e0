import type { Origin } from '../../contract/actor.ts'
import { inTransaction, transaction, type Database, type Transaction } from '../../db/database.ts'
import { newId, readClock, type Moment } from '../../db/ids.ts'
import { beginChain } from '../../audit/audit.ts'
import { audited, recordNow } from '../../audit/audited.ts'

/** Creates a customer (a tenant) with its DEFAULT profile, both or neither, now or backdated. */
export async function createCustomer(
  db: Database | Transaction,
  name: string,
  createdAt?: Moment,
): Promise<{ customer_id: string; profile_id: string }> {
  return inTransaction(db, async (tx) => {
    const now = createdAt ?? (await readClock(tx))
    const customer_id = newId(now)
    const profile_id = newId(now)
    await tx.query('insert into customers (id, name, created_at) values ($1, $2, $3)', [
      customer_id,
      name,
      now.text,
    ])
    await tx.query(
      `
      insert into profiles (customer_id, id, created_at, type, nickname)
      values ($1, $2, $3, 'DEFAULT', 'Default')`,
      [customer_id, profile_id, now.text],
    )
    await beginChain(tx, customer_id, now)
    return { customer_id, profile_id }
  })
}

export const registerCustomer = (
  db: Database,
  name: string,
  origin: Origin,
): Promise<{ customer_id: string; profile_id: string }> =>
  transaction(db, async (tx) => {
    const created = await createCustomer(tx, name)
    await recordNow(tx, created.customer_id, audited(origin, 'customer.create', created.customer_id))
    return created
  })
