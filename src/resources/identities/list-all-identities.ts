import type { Queryable } from '../../db/database.ts'
import type { HolderStatus } from '../../money/records/holders.ts'
import {
  IDENTITY_COLUMNS_SHOWN,
  IDENTITY_SUMMARY,
  identityToWire,
  type Identity,
  type IdentityRow,
} from '../../money/records/identity.ts'

export const IDENTITIES_MAX = 1_000

/**
 * Lists the identities of all customers or of one, oldest first, for operators, optionally with one summary_status.
 * Returns the first `IDENTITIES_MAX` after the identity id `after`.
 */
export async function listAllIdentities(
  db: Queryable,
  {
    customerId,
    summaryStatus,
    after,
  }: {
    customerId?: string | undefined
    summaryStatus?: HolderStatus | undefined
    after?: string | undefined
  },
): Promise<Identity[]> {
  const { rows } = await db.query<IdentityRow>(
    `
    select ${IDENTITY_COLUMNS_SHOWN}
    from identities
    where ($1::uuid is null or customer_id = $1)
      and ($2::text is null or $2 = ${IDENTITY_SUMMARY})
      and ($3::uuid is null or id > $3)
    order by id
    limit $4`,
    [customerId, summaryStatus, after, IDENTITIES_MAX],
  )
  return rows.map((row) => identityToWire(row))
}
