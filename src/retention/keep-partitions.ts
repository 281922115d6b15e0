import { tookTooLong, transaction, type Database } from '../db/database.ts'
import type { Settings } from '../settings.ts'

/** The tables with weekly partitions, and for how many days each keeps its rows. */
const keptDays = (settings: Pick<Settings, 'eventsKeptDays' | 'webhookAttemptsKeptDays'>) => ({
  events: settings.eventsKeptDays,
  webhook_deliveries: settings.eventsKeptDays,
  webhook_attempts: settings.webhookAttemptsKeptDays,
})

/** Most steps for one table in one round; the next round continues. */
const STEPS_MAX = 100
/**
 * A step that takes longer is cancelled: readers wait for its locks. Measured with 10,000 rows that move to a new
 * partition, the most that may: 50 ms.
 */
const STEP_MS_MAX = 5_000

/** What a round did with the partitions. */
export interface KeptPartitions {
  /** `made events_20261116`, `dropped ...`, `deleted old rows of ...`, in order. */
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
        kept.done.push(step)
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
    const { rows } = await tx.query<{ step: string | null }>('select keep_partitions($1, $2) as step', [
      table,
      days,
    ])
    return rows[0]!.step
  })
