import { Refusal } from '../../contract/refusal.ts'
import { transaction, type Database } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { identitySummary, type HolderStatus } from '../../money/records/holders.ts'
import { insertIdentityEvents } from '../../money/records/summary-status.ts'
import { identityToWire, lockIdentity, requireIdentity, type Identity } from '../../money/records/identity.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'
import type { AuditAction } from '../../contract/audit-actions.ts'

/** What the platform's administrator decides about an identity, and the change that it makes. */
export const IDENTITY_DECISIONS = {
  APPROVE: { status: 'APPROVED' },
  DENY: { status: 'DENIED' },
  REOPEN: { status: 'PENDING' },
  DISABLE: { admin_disabled: true },
  ENABLE: { admin_disabled: false },
} as const

/**
 * Sets an identity's verification status or the administrator's flag, for any customer (API behaviour, Accounts).
 * Absent fields keep their value. Setting the current value changes nothing. With `seen`, throws when the identity was
 * updated after that time: its client may have changed the details since somebody looked at them. Returns the updated
 * identity; undefined if it does not exist.
 */
export async function setIdentityStatus(
  db: Database,
  id: string,
  { status, admin_disabled, seen }: { status?: Decided; admin_disabled?: boolean; seen?: string | undefined },
  origin: Origin,
  customerId?: string,
): Promise<Identity | undefined> {
  const customer_id = customerId ?? (await findCustomer(db, id))
  if (customer_id === undefined) return undefined
  return transaction(db, async (tx) => {
    const before = identitySummary(await lockIdentity(tx, customer_id, id))
    // The clock is read after the row is locked, so that updated_at never decreases.
    const now = await readClock(tx)
    const { rowCount } = await tx.query(
      `
      update identities
      set status = coalesce($3, status),
          admin_disabled = coalesce($4, admin_disabled),
          sandbox_checks = case when $3 is null then sandbox_checks end,
          updated_at = $6
      where customer_id = $1 and id = $2
        and (status, admin_disabled) is distinct from (coalesce($3, status), coalesce($4, admin_disabled))
        and ($5::timestamptz is null or updated_at <= $5)`,
      [customer_id, id, status, admin_disabled, seen, now.text],
    )
    const identity = identityToWire(await requireIdentity(tx, customer_id, id))
    if (seen !== undefined && status !== undefined && identity.status !== status)
      throw new Refusal(
        `identity ${id} was updated at ${identity.updated_at}, after ${seen}: look at it again`,
      )
    await insertIdentityEvents(tx, customer_id, now, { id, before, after: identity.summary_status })
    if (rowCount! > 0)
      recordChanges(tx, customer_id, now, [audited(origin, actionOf(status, admin_disabled), id)])
    return identity
  })
}

type Decided = keyof typeof DECISIONS

const DECISIONS = {
  APPROVED: 'identity.approve',
  DENIED: 'identity.deny',
  PENDING: 'identity.reopen',
  ERROR: 'identity.set_status',
} as const satisfies Record<Exclude<HolderStatus, 'DISABLED'>, AuditAction>

function actionOf(status: Decided | undefined, admin_disabled: boolean | undefined): AuditAction {
  if (status !== undefined) return DECISIONS[status]
  return admin_disabled ? 'identity.disable' : 'identity.enable'
}

/** The customer of an identity, for operators who give none. */
async function findCustomer(db: Database, id: string): Promise<string | undefined> {
  const { rows } = await db.query<{ customer_id: string }>(
    'select customer_id from identities where id = $1',
    [id],
  )
  return rows[0]?.customer_id
}
