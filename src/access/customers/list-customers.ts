import type { Queryable } from '../../db/database.ts'

export interface CustomerSummary {
  customer_id: string
  name: string
  created_at: string
  /** Null unless the customer is disabled (`bursar customer disable`). */
  disabled_at: string | null
  /** API clients that are not disabled. */
  clients: number
  profiles: number
}

/** Lists every customer, oldest first, for operators. No API client can see this list. */
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
