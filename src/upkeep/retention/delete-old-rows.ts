import type { Database } from '../../db/database.ts'
import { eachAlone } from '../../db/each-alone.ts'
import { deleteOldTransactions } from '../../networks/simulated/delete-old-transactions.ts'
import { deleteExpiredQuotes, deleteUsedQuotes } from '../../money/records/fee-quotes.ts'
import { deleteEndedWindows } from '../../governance/policy/policy-windows.ts'
import { deleteOldTraces } from '../../money/records/traces.ts'
import { deleteEndedSights } from '../../rails/deposits/see-deposits.ts'

/** Rows of one statement. Each statement deletes by an index: 1,000 rows take about 10 ms. */
const BATCH = 1_000
/** Most statements of one kind in a round; the next round continues. */
const BATCHES_MAX = 10

/** Rows that are deleted by age. How long each kind is kept, and what is kept for ever: docs/guides/retention.md. */
const KINDS: readonly ((db: Database, max: number) => Promise<number>)[] = [
  deleteExpiredQuotes,
  deleteUsedQuotes,
  deleteEndedSights,
  deleteEndedWindows,
  deleteOldTraces,
]

/**
 * Deletes some of the rows that are too old. Returns their number, and whether there are more. Where a kind fails, the other
 * kinds are deleted first, and then the failure is thrown.
 */
export async function deleteOldRows(db: Database): Promise<{ deleted: number; more: boolean }> {
  let deleted = 0
  let more = false
  await eachAlone(
    KINDS,
    ({ name }) => name,
    async (deleteSome) => {
      let batch = BATCH
      for (let batches = 0; batches < BATCHES_MAX && batch === BATCH; batches++) {
        batch = await deleteSome(db, BATCH)
        deleted += batch
      }
      more ||= batch === BATCH
    },
  )
  return { deleted, more }
}

/** Deletes some of the sandbox's simulated transactions that are too old, and returns their number. */
export const deleteOldSimulation = (db: Database): Promise<number> => deleteOldTransactions(db, BATCH)
