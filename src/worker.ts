import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from './db/database.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { Networks } from './networks/networks.ts'
import { runOrchestrations } from './orchestrations/run-orchestrations.ts'
import type { Settings } from './settings.ts'
import { generateLastStatements } from './statements/generate-statements.ts'
import { creditDeposits } from './transfers/credit-deposits.ts'
import { settleWithdrawals } from './transfers/settle-withdrawals.ts'

const FAILURE_PAUSE_MS = 1_000
/** How often it reads the networks for deposits. */
const DEPOSITS_EVERY_MS = 1_000
/** How often it looks whether a month has ended. */
const STATEMENTS_EVERY_MS = 60_000

export interface Worker {
  /** Finishes the step under way and stops. */
  stop(): Promise<void>
}

/**
 * Starts the worker: round after round of orchestrations and settlement while there is work, then a pause; beside that
 * the deposits on real networks, and at the start of each month the statements of the last.
 */
export function startWorker(options: {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  log: Logger
}): Worker {
  const { db, ledger, networks, settings, log } = options
  const stopping = new AbortController()
  const failed = (error: unknown) => {
    log.error({ err: error }, 'a round of the worker failed; trying again')
    return undefined
  }

  /** The month whose statements this worker has seen to. */
  let done: string | undefined
  async function statements(): Promise<void> {
    while (!stopping.signal.aborted) {
      const made = await generateLastStatements(db, done).catch(failed)
      done = made?.period ?? done
      if (made !== undefined && made.generated.length > 0)
        log.info({ period: made.period, statements: made.generated.length }, 'generated statements')
      await rest(STATEMENTS_EVERY_MS)
    }
  }

  async function deposits(): Promise<void> {
    while (!stopping.signal.aborted) {
      await creditDeposits({ db, ledger, networks, settings }).catch(failed)
      await rest(DEPOSITS_EVERY_MS)
    }
  }

  const rest = (ms: number) => pause(ms, undefined, { signal: stopping.signal }).catch(() => undefined)

  async function payouts(): Promise<void> {
    while (!stopping.signal.aborted) {
      const started = await runOrchestrations(db, { networks, settings }).catch(failed)
      const settled = await settleWithdrawals(db, networks).catch(failed)
      const { workerIntervalMs } = settings
      const restMs =
        started === undefined || settled === undefined
          ? FAILURE_PAUSE_MS
          : started + settled > 0
            ? 0
            : workerIntervalMs
      await rest(restMs)
    }
  }

  const running = Promise.all([payouts(), deposits(), statements()])
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
