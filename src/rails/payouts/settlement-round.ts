import { connectionLost, type Database } from '../../db/database.ts'
import { RecordFailure } from '../../db/each-alone.ts'
import type { Step } from './next-step.ts'
import { TakenMeanwhile } from '../../networks/outgoing-transfers.ts'

/** What one round of settlement has done so far. */
export class SettlementRound {
  readonly db: Database
  readonly #taken: (steps: readonly Step[]) => void
  readonly failures: unknown[] = []
  moved = 0

  constructor(db: Database, taken: (steps: readonly Step[]) => void) {
    this.db = db
    this.#taken = taken
  }

  /** Counts steps that are committed, and tells of them. */
  report(steps: readonly Step[]): void {
    this.moved += steps.length
    this.#taken(steps)
  }

  /**
   * Returns the result of some work, or undefined where it failed: the failure is thrown at the end of the round, as one of
   * the record if that is given, so that it delays nobody else. Throws when the connection to the database is lost.
   */
  async attempt<T>(work: () => Promise<T>, record?: string): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      this.addFailure(error, record)
      return undefined
    }
  }

  addFailure(error: unknown, record?: string): void {
    if (connectionLost(error)) throw error
    // The worker or operator who was faster has done the work.
    if (error instanceof TakenMeanwhile) return
    this.failures.push(record === undefined ? error : new RecordFailure(record, error))
  }
}
