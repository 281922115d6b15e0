import { limitLockWaits } from '../../db/lock-rows.ts'
import { tookTooLong, transaction, type Database, type Transaction } from '../../db/database.ts'
import type { Settings } from '../../settings.ts'

/** The tables with weekly partitions, and for how many days each keeps its rows. */
const keptDays = (settings: Pick<Settings, 'eventsKeptDays' | 'webhookAttemptsKeptDays'>) => ({
  events: settings.eventsKeptDays,
  webhook_deliveries: settings.eventsKeptDays,
  webhook_attempts: settings.webhookAttemptsKeptDays,
})

/** Most steps for one table in one round; the next round continues. */
const STEPS_MAX = 100
/**
 * A step that takes longer is cancelled: readers wait for its locks. A step moves at most 10,000 rows to a new partition,
 * which took 50 ms.
 */
const STEP_MS_MAX = 5_000
/** How long a step waits for a lock. `keep_partitions` limits the waits on its own node to this time, and on no other. */
const LOCK_MS_MAX = 100

export interface KeptPartitions {
  /** `made events_20261116`, `dropped ...`, `deleted old rows of ...`, in order; work of several steps is listed once. */
  done: string[]
  /** The tables whose locks were not free: the next round tries again. */
  postponed: string[]
}

/**
 * Makes the weekly partitions of events, deliveries and attempts for the weeks to come, and drops the weeks that are older
 * than the settings allow. Each step is a transaction of its own and waits 100 ms for its locks, so that no writer waits
 * longer for it.
 */
export async function keepPartitions(
  db: Database,
  settings: Pick<Settings, 'eventsKeptDays' | 'webhookAttemptsKeptDays'>,
): Promise<KeptPartitions> {
  const kept: KeptPartitions = { done: [], postponed: [] }
  for (const [table, days] of Object.entries(keptDays(settings))) {
    try {
      for (let steps = 0; steps < STEPS_MAX; steps++) {
        const step = await makeStep(db, table, days)
        if (step === null) break
        if (!kept.done.includes(step)) kept.done.push(step)
      }
    } catch (error) {
      if (!tookTooLong(error)) throw error
      kept.postponed.push(table)
    }
  }
  return kept
}

/** Makes the next step for a table, in its own transaction. Returns what it did, null when nothing is left to do. */
const makeStep = (db: Database, table: string, days: number): Promise<string | null> =>
  transaction(db, async (tx) => {
    await tx.query(`set local statement_timeout = ${STEP_MS_MAX}`)
    await limitLockWaits(tx, LOCK_MS_MAX)
    return withReason(tx, async () => {
      const { rows } = await tx.query<{ step: string | null }>('select keep_partitions($1, $2) as step', [
        table,
        days,
      ])
      return rows[0]!.step
    })
  })

/** A distributed database says in a warning why a step failed, and not in its error. Throws what the warning says. */
async function withReason<T>(tx: Transaction, step: () => Promise<T>): Promise<T> {
  let reason: Error | undefined
  const keep = ({ message, code }: { message?: string | undefined; code?: string | undefined }) => {
    reason = Object.assign(new Error(message), { code })
  }
  tx.on('notice', keep)
  try {
    return await step()
  } catch (error) {
    throw reason !== undefined && tookTooLong(reason) ? reason : error
  } finally {
    tx.off('notice', keep)
  }
}
