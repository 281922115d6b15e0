import { transaction, type Database } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import type { Flags } from '../../money/records/holders.ts'
import { insertAccountEvent } from '../../money/records/summary-status.ts'
import { accountToWire, lockAccount, requireAccount, type Account } from '../../money/records/account.ts'
import { audited, changedMembers } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'

/**
 * Sets an account's flags (API behaviour, Accounts), for any customer. Absent flags keep their value. Setting the
 * current value changes nothing. Returns the updated account; undefined if it does not exist.
 */
export async function setAccountDisabled(
  db: Database,
  id: string,
  { admin_disabled, user_disabled }: Partial<Flags>,
  origin: Origin,
  customerId?: string,
): Promise<Account | undefined> {
  const customer_id = customerId ?? (await findCustomer(db, id))
  if (customer_id === undefined) return undefined
  return transaction(db, async (tx) => {
    const before = accountToWire(await lockAccount(tx, customer_id, id))
    // The clock is read after the row is locked, so that updated_at never decreases.
    const now = await readClock(tx)
    const { rowCount } = await tx.query(
      `
      update accounts
      set admin_disabled = coalesce($3, admin_disabled),
          user_disabled = coalesce($4, user_disabled),
          updated_at = $5
      where customer_id = $1 and id = $2
        and (admin_disabled, user_disabled)
          is distinct from (coalesce($3, admin_disabled), coalesce($4, user_disabled))`,
      [customer_id, id, admin_disabled, user_disabled, now.text],
    )
    const account = accountToWire(await requireAccount(tx, customer_id, id))
    const { summary_status: after } = account
    await insertAccountEvent(tx, customer_id, now, { id, before: before.summary_status, after })
    if (rowCount! > 0) {
      const action = (admin_disabled ?? user_disabled) ? 'account.disable' : 'account.enable'
      const changes = changedMembers(before, account, ['admin_disabled', 'user_disabled'])
      recordChanges(tx, customer_id, now, [audited(origin, action, id, changes)])
    }
    return account
  })
}

/** The customer of an account, for operators who give none. */
async function findCustomer(db: Database, id: string): Promise<string | undefined> {
  const { rows } = await db.query<{ customer_id: string }>('select customer_id from accounts where id = $1', [
    id,
  ])
  return rows[0]?.customer_id
}
