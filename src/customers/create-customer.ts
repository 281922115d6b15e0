import { transaction, type Database } from '../db/database.ts'
import { newId, readClock } from '../db/ids.ts'
import { insertProfile } from '../profiles/create-profile.ts'

/** Makes a customer (a tenant) with its DEFAULT profile. */
export async function createCustomer(
  db: Database,
  name: string,
): Promise<{ customer_id: string; profile_id: string }> {
  return transaction(db, async (tx) => {
    const now = await readClock(tx)
    const customer_id = newId(now)
    await tx.query('insert into customers (id, name, created_at) values ($1, $2, $3)', [
      customer_id,
      name,
      now.text,
    ])
    const profile = await insertProfile(tx, customer_id, { type: 'DEFAULT', nickname: 'Default' })
    return { customer_id, profile_id: profile.id }
  })
}
