import type { Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'

/**
 * Finds the owner of a transfer by the transfer's id alone, for operators: a customer or the platform. Records are found by
 * their customer, so this is one look-up for each customer, and later statements name the customer.
 */
export async function findOwner(db: Queryable, transferId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ customer_id: string }>(
    `
    select t.customer_id
    from customers c
    cross join lateral (select customer_id from transfers where customer_id = c.id and id = $1) t
    union all
    select customer_id from transfers where customer_id = $2 and id = $1`,
    [transferId, PLATFORM_ID],
  )
  return rows[0]?.customer_id
}
