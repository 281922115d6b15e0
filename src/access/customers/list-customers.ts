import { Type, type Static } from 'typebox'
import { TextOrNull, Timestamp, Uuid } from '../../contract/fields.ts'
import type { Queryable } from '../../db/database.ts'

export const CustomerSummary = Type.Object({
  customer_id: Uuid('Customer.'),
  name: Type.String({ description: 'Its name.' }),
  created_at: Timestamp('Creation time.'),
  disabled_at: TextOrNull('When it was disabled; null unless it is.'),
  clients: Type.Integer({ description: 'API clients that are not disabled.' }),
  profiles: Type.Integer({ description: 'Profiles.' }),
})
type CustomerSummary = Static<typeof CustomerSummary>

/** Lists every customer, oldest first, for operators alone. */
export async function listCustomers(db: Queryable): Promise<CustomerSummary[]> {
  const { rows } = await db.query<CustomerSummary>(`
    select c.id as customer_id, c.name, c.created_at,
           (select f.created_at from customer_freezes f
            where f.customer_id = c.id and f.subject = c.id and f.reason = 'DISABLED' and f.lifted_at is null) as disabled_at,
           (select count(*)::integer from api_clients a where a.customer_id = c.id and a.disabled_at is null) as clients,
           (select count(*)::integer from profiles p where p.customer_id = c.id) as profiles
    from customers c
    order by c.id`)
  return rows
}
