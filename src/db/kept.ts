import { poolOf } from './customer-pool.ts'
import { forAll, type Queryable } from './database.ts'

/**
 * Keeps what `read` returns of records that belong to no customer, and reads again after `ms`. After a failure, the next
 * caller reads again.
 */
export function keptFor<T>(
  ms: number,
  read: (db: Queryable) => Promise<T>,
): (asked: Queryable) => Promise<T> {
  const kept = new WeakMap<Queryable, { readAt: number; value: Promise<T> }>()
  return (asked) => {
    const db = forAll(poolOf(asked))
    const known = kept.get(db)
    const now = performance.now()
    if (known !== undefined && now - known.readAt < ms) return known.value
    const value = read(db)
    kept.set(db, { readAt: now, value })
    value.catch(() => kept.delete(db))
    return value
  }
}
