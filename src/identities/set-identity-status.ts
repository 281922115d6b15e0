import type { Queryable } from '../db/database.ts'
import type { Status } from '../records/holders.ts'
import { identityToWire, requireIdentity, type Identity } from './identity.ts'

/**
 * Sets what an identity's verification came to, or the administrator's flag, whosever it is (API behaviour, Accounts);
 * what is not given stays. Setting what is set already changes nothing. Gives the identity as it is now, or undefined
 * when there is none.
 */
export async function setIdentityStatus(
  db: Queryable,
  id: string,
  { status, admin_disabled }: { status?: Exclude<Status, 'DISABLED'>; admin_disabled?: boolean },
): Promise<Identity | undefined> {
  const { rows } = await db.query<{ customer_id: string }>(
    'select customer_id from identities where id = $1',
    [id],
  )
  if (rows[0] === undefined) return undefined
  const { customer_id } = rows[0]
  // The clock is read behind the row's lock, so that updated_at never goes back.
  await db.query(
    `
    update identities
    set status = coalesce($3, status),
        admin_disabled = coalesce($4, admin_disabled),
        updated_at = clock_timestamp()
    where customer_id = $1 and id = $2
      and (status, admin_disabled) is distinct from (coalesce($3, status), coalesce($4, admin_disabled))`,
    [customer_id, id, status, admin_disabled],
  )
  return identityToWire(await requireIdentity(db, customer_id, id))
}
