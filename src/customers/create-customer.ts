import type { Queryable } from '../db/database.ts'
import { newId, readClock, type Moment } from '../db/ids.ts'

/**
 * Creates a customer (a tenant) with its DEFAULT profile, now or backdated. Pass a transaction to create both or
 * neither.
 */
export async function createCustomer(
  db: Queryable,
  name: string,
  createdAt?: Moment,
): Promise<{ customer_id: string; profile_id: string }> {
  const now = createdAt ?? (await readClock(db))
  const customer_id = newId(now)
  const profile_id = newId(now)
  await db.query('insert into customers (id, name, created_at) values ($1, $2, $3)', [
    customer_id,
    name,
    now.text,
  ])
  await db.query(
    `
    insert into profiles (customer_id, id, created_at, type, nickname)
    values ($1, $2, $3, 'DEFAULT', 'Default')`,
    [customer_id, profile_id, now.text],
  )
  return { customer_id, profile_id }
}
