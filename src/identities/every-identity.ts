import type { Queryable } from '../db/database.ts'
import type { Status } from '../records/holders.ts'
import { IDENTITY_COLUMNS, identityToWire, type Identity, type IdentityRow } from './identity.ts'

/** Most identities that one call gives. */
export const IDENTITIES_MAX = 1_000

/**
 * The identities of all customers or of one, oldest first, for whoever operates this: those with this summary_status, or
 * all. The first `IDENTITIES_MAX` after `after`, an identity's id.
 */
export async function everyIdentity(
  db: Queryable,
  {
    customerId,
    summaryStatus,
    after,
  }: {
    customerId?: string | undefined
    summaryStatus?: Status | undefined
    after?: string | undefined
  },
): Promise<Identity[]> {
  // As `identitySummary` has it.
  const { rows } = await db.query<IdentityRow>(
    `
    select ${IDENTITY_COLUMNS}
    from identities
    where ($1::uuid is null or customer_id = $1)
      and ($2::text is null or $2 = case when user_disabled or admin_disabled then 'DISABLED' else status end)
      and ($3::uuid is null or id > $3)
    order by id
    limit $4`,
    [customerId, summaryStatus, after, IDENTITIES_MAX],
  )
  return rows.map(identityToWire)
}
