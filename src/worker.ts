import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from './db/database.ts'
import type { Networks } from './networks/networks.ts'
import { settleCryptoWithdrawals } from './transfers/settle-crypto-withdrawals.ts'

const FAILURE_PAUSE_MS = 1_000

export interface Worker {
  /** Finishes the step under way and stops. */
  stop(): Promise<void>
}

/** Starts the settlement worker: round after round while there is work, then a pause. */
export function startWorker(options: {
  db: Database
  networks: Networks
  intervalMs: number
  log: Logger
}): Worker {
  const { db, networks, intervalMs, log } = options
  const stopping = new AbortController()

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const moved = await settleCryptoWithdrawals(db, networks).catch((error: unknown) => {
        log.error({ err: error }, 'settlement failed; trying again')
        return undefined
      })
      const restMs = moved === undefined ? FAILURE_PAUSE_MS : moved > 0 ? 0 : intervalMs
      await pause(restMs, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  const running = run()
  return {
    stop() {
      stopping.abort()
      return running
    },
  }
}
