import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from './db/database.ts'
import { deleteExpiredQuotes } from './ledger/fee-quotes.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { Loop, WorkerMeter } from './metrics/metrics.ts'
import type { Networks } from './networks/networks.ts'
import { runOrchestrations } from './orchestrations/run-orchestrations.ts'
import type { Settings } from './settings.ts'
import { generateLastStatements } from './statements/generate-statements.ts'
import { creditDeposits } from './transfers/credit-deposits.ts'
import { settleWithdrawals, type EndedWithdrawal } from './transfers/settle-withdrawals.ts'
import { sweepDepositAddresses } from './transfers/sweep-deposit-addresses.ts'

const FAILURE_PAUSE_MS = 1_000
/** How often it reads the networks for deposits. */
const DEPOSITS_EVERY_MS = 1_000
/** How often it sweeps deposit addresses. A step waits for blocks, and each look costs the node some requests. */
const SWEEPS_EVERY_MS = 10_000
/** How often it looks whether a month has ended. */
const STATEMENTS_EVERY_MS = 60_000

/** How often it deletes fee quotes that expired unused. */
const QUOTES_EVERY_MS = 60_000

export interface Worker {
  /** Finishes the step under way and stops. */
  stop(): Promise<void>
}

/**
 * Starts the worker: round after round of orchestrations and settlement while there is work, then a pause; beside that
 * the deposits on real networks, the sweeping of their addresses, and at the start of each month the statements of the last.
 */
export function startWorker(options: {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  log: Logger
  meter?: WorkerMeter
}): Worker {
  const { db, ledger, networks, settings, log, meter } = options
  const stopping = new AbortController()
  /** A round of a loop: what it gives, or undefined when it failed. */
  async function round<T>(loop: Loop, work: Promise<T>): Promise<T | undefined> {
    try {
      const result = await work
      meter?.round(loop, true)
      return result
    } catch (error) {
      meter?.round(loop, false)
      log.error({ err: error, loop }, 'a round of the worker failed; trying again')
      return undefined
    }
  }

  function ended({ network, status, ...ids }: EndedWithdrawal): void {
    meter?.withdrawalEnded(network, status)
    log.info({ ...ids, network, status }, 'withdrawal ended')
  }

  /** The month whose statements this worker has seen to. */
  let done: string | undefined
  async function statements(): Promise<void> {
    while (!stopping.signal.aborted) {
      const made = await round('statements', generateLastStatements(db, done))
      done = made?.period ?? done
      if (made !== undefined && made.generated.length > 0)
        log.info({ period: made.period, statements: made.generated.length }, 'generated statements')
      await rest(STATEMENTS_EVERY_MS)
    }
  }

  async function deposits(): Promise<void> {
    while (!stopping.signal.aborted) {
      await round('deposits', creditDeposits({ db, ledger, networks, settings }))
      await rest(DEPOSITS_EVERY_MS)
    }
  }

  // Beside the deposits, so that a node that hangs while it sweeps does not keep them waiting.
  async function sweeps(): Promise<void> {
    while (!stopping.signal.aborted) {
      await round('sweeps', sweepDepositAddresses({ db, networks, settings }))
      await rest(SWEEPS_EVERY_MS)
    }
  }

  async function quotes(): Promise<void> {
    while (!stopping.signal.aborted) {
      await round('quotes', deleteExpiredQuotes(db))
      await rest(QUOTES_EVERY_MS)
    }
  }

  const rest = (ms: number) => pause(ms, undefined, { signal: stopping.signal }).catch(() => undefined)

  async function payouts(): Promise<void> {
    while (!stopping.signal.aborted) {
      const started = await round(
        'orchestrations',
        runOrchestrations(db, { networks, settings, macs: ledger.macs }),
      )
      const settled = await round('settlement', settleWithdrawals(db, networks, ended))
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

  const running = Promise.all([payouts(), deposits(), sweeps(), statements(), quotes()])
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
