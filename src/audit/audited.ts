import { isDeepStrictEqual } from 'node:util'
import { subjectOfAction, type AuditAction } from '../contract/audit-actions.ts'
import type { Origin } from '../contract/actor.ts'
import { transaction, type Database, type Transaction } from '../db/database.ts'
import { PLATFORM_ID, readClock } from '../db/ids.ts'
import { recordChanges, type AuditRecord } from './audit.ts'

/** Returns the audit record of a change (API behaviour, Audit log). `changes` holds configuration only, and no secret. */
export const audited = (
  origin: Origin,
  action: AuditAction,
  subjectId: string,
  changes?: AuditRecord['changes'],
): AuditRecord => ({
  origin,
  action,
  subject: { type: subjectOfAction(action), id: subjectId },
  ...(changes && { changes }),
})

/** Records changes as `recordChanges` does, at the database's time. */
export async function recordNow(
  tx: Transaction,
  customerId: string,
  ...records: readonly AuditRecord[]
): Promise<void> {
  recordChanges(tx, customerId, await readClock(tx), records)
}

/** Returns the members of a record that a change made different; with `members`, of these only. Undefined if there is none. */
export function changedMembers<T extends object>(
  before: T,
  after: T,
  members?: readonly (keyof T)[],
): AuditRecord['changes'] {
  const names = members ?? (Object.keys(after) as unknown as (keyof T)[])
  const changed = names.filter((name) => !isDeepStrictEqual(before[name], after[name]))
  if (changed.length === 0) return undefined
  const only = (record: T) => Object.fromEntries(changed.map((name) => [name, record[name] ?? null]))
  return { before: only(before), after: only(after) }
}

/** Records the migrations that have run, in a transaction of its own: the migrations ran as the schema's owner. */
export async function recordMigrations(db: Database, origin: Origin, applied: string[]): Promise<void> {
  if (applied.length === 0) return
  const record = audited(origin, 'deployment.migrate', 'schema', { after: { applied } })
  await transaction(db, (tx) => recordNow(tx, PLATFORM_ID, record))
}
