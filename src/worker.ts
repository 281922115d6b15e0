import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { CryptoNetwork } from './assets/catalogue.ts'
import type { Database } from './db/database.ts'
import { deleteExpiredQuotes } from './records/fee-quotes.ts'
import type { Ledger } from './movements/queue.ts'
import type { Loop, WorkerMeter } from './metrics/metrics.ts'
import type { Network, NetworkAdapter, Networks } from './networks/network.ts'
import { runOrchestrations } from './orchestrations/run-orchestrations.ts'
import type { Settings } from './settings.ts'
import { generateLastStatements } from './statements/generate-statements.ts'
import { auditSweeps } from './settlement/audit-sweeps.ts'
import { creditDepositsOn, readable } from './settlement/credit-deposits.ts'
import { settleWithdrawals, type EndedWithdrawal } from './settlement/settle-withdrawals.ts'
import { sweepDepositAddresses } from './settlement/sweep-deposit-addresses.ts'
import { watchNetworkFees } from './settlement/watch-network-fees.ts'
import { watchCustody, type Suspicions } from './settlement/watch-custody.ts'

const FAILURE_PAUSE_MS = 1_000
/** How often it reads the networks for deposits. */
const DEPOSITS_EVERY_MS = 1_000
/** How often it sweeps deposit addresses. A step waits for blocks, and each look costs the node some requests. */
const SWEEPS_EVERY_MS = 10_000
/** How often it asks real networks whether they still have what was made. */
const REBROADCASTS_EVERY_MS = 10_000
/** How often it holds what real networks have against what the ledgers have in custody there. */
const CUSTODY_EVERY_MS = 60_000
/** How often it holds what a real network's transactions cost against the fees taken, at most. */
const NETWORK_FEES_EVERY_MS = 60_000
/** How often it looks whether a month has ended. */
const STATEMENTS_EVERY_MS = 60_000

/** How often it deletes fee quotes that expired unused. */
const QUOTES_EVERY_MS = 60_000

export interface Worker {
  /** Finishes the step under way and stops. */
  stop(): Promise<void>
}

const canSweep = (networks: Networks) => [...networks.values()].some((adapter) => adapter.sweep !== undefined)

/** The networks of each loop: those that are simulated in the database together, and each real one alone. */
function loopsOf(networks: Networks): [inDatabase: Networks, real: Networks[]] {
  const all: [Network, NetworkAdapter][] = [...networks]
  const real = all.filter(([, adapter]) => adapter.asksNode)
  return [
    new Map(all.filter(([, adapter]) => !adapter.asksNode)),
    real.map(([network, adapter]) => new Map([[network, adapter]])),
  ]
}

/**
 * Starts the worker: round after round of orchestrations and settlement while there is work, then a pause; beside that
 * the deposits, the sweeping of deposit addresses, and at the start of each month the statements of the last. Each real network
 * has loops of its own for settlement, deposits and sweeping, so that one whose node hangs, or that has a long queue,
 * delays no other (measured with a node that hangs, in one loop: a deposit on another network took 16 s instead of 0.6).
 */
export function startWorker(options: {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  log: Logger
  meter?: WorkerMeter
  /** Rest between two looks at the custody of real networks. */
  custodyEveryMs?: number
}): Worker {
  const { db, ledger, networks, settings, log, meter, custodyEveryMs = CUSTODY_EVERY_MS } = options
  const stopping = new AbortController()
  // Each loop listens while it rests, and each real network has loops of its own.
  setMaxListeners(0, stopping.signal)
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

  // Each network by itself, so that a node that hangs delays no other; without rest while there is more to read.
  async function deposits(network: CryptoNetwork, adapter: NetworkAdapter): Promise<void> {
    while (!stopping.signal.aborted) {
      const result = await round('deposits', creditDepositsOn({ db, ledger, settings }, network, adapter))
      for (const [reason, count] of result?.waiting ?? [])
        log.warn({ network, reason, count }, 'deposits wait: bursar deposits list')
      if (result?.isBehind !== true) await rest(DEPOSITS_EVERY_MS)
    }
  }

  // Beside the deposits, so that a node that hangs while it sweeps does not keep them waiting.
  async function sweeps(some: Networks): Promise<void> {
    while (!stopping.signal.aborted) {
      await round('sweeps', sweepDepositAddresses({ db, networks: some, settings }))
      for (const [network, adapter] of some) {
        if (network === 'WIRE' || adapter.sweep === undefined) continue
        const unattributed = (await round('sweeps', auditSweeps(db, network))) ?? []
        for (const { customer_id, asset, crypto_tx_hash } of unattributed)
          log.error(
            { customer_id, network, asset, crypto_tx_hash },
            'what was swept is in no deposit: bursar deposits list --unattributed',
          )
      }
      await rest(SWEEPS_EVERY_MS)
    }
  }

  /** Beside all else, and on a frozen network too: it signs nothing. */
  async function rebroadcasts(network: Network, adapter: NetworkAdapter): Promise<void> {
    let before = new Set<number>()
    let told = ''
    while (!stopping.signal.aborted) {
      const lost = await round('rebroadcasts', adapter.rebroadcastTakenBack!())
      if (lost !== undefined) {
        // A backend that lags seems to have lost some: told is what two looks in a row say.
        const still = lost.filter(({ nonce }) => before.has(nonce))
        before = new Set(lost.map(({ nonce }) => nonce))
        meter?.takenBack(network, still.length)
        const nonces = still.map(({ nonce }) => nonce).join()
        if (still.length > 0 && nonces !== told)
          log.error({ network, transactions: still }, 'the chain has taken back transactions that had ended')
        told = nonces
      }
      await rest(REBROADCASTS_EVERY_MS)
    }
  }

  async function quotes(): Promise<void> {
    while (!stopping.signal.aborted) {
      await round('quotes', deleteExpiredQuotes(db))
      await rest(QUOTES_EVERY_MS)
    }
  }

  async function custody(): Promise<void> {
    const suspicions: Suspicions = new Map()
    // A sandbox credits what never came over a chain.
    while (settings.mode === 'live' && !stopping.signal.aborted) {
      await round('custody', watchCustody(db, networks, suspicions))
      await rest(custodyEveryMs)
    }
  }

  const rest = (ms: number) => pause(ms, undefined, { signal: stopping.signal }).catch(() => undefined)

  /** Before anything is signed, once a minute. */
  async function networkFees(some: Networks): Promise<void> {
    for (const [network, adapter] of some) {
      if (network === 'WIRE') continue
      const simulatedPrices = settings.mode === 'sandbox'
      const found = await round('network_fees', watchNetworkFees(db, network, adapter, { simulatedPrices }))
      if (found === undefined) continue
      const { frozen, unpriced } = found
      if (unpriced.length > 0)
        log.warn({ network, assets: unpriced }, 'network fees: fees without a price count for nothing')
      for (const { target, detail } of frozen)
        if (target.kind === 'CUSTOMER')
          log.error(
            { network, customer_id: target.customer_id, detail },
            'network fees: the customer is frozen, whose withdrawals the network reverted',
          )
        else log.error({ network, detail }, 'network fees: payouts over the network are frozen')
    }
  }

  async function payouts(some: Networks, startsOrchestrations: boolean): Promise<void> {
    let feesDueAt = 0
    while (!stopping.signal.aborted) {
      if (performance.now() >= feesDueAt) {
        await networkFees(some)
        feesDueAt = performance.now() + NETWORK_FEES_EVERY_MS
      }
      const started = startsOrchestrations
        ? await round('orchestrations', runOrchestrations(db, { networks, settings, macs: ledger.macs }))
        : 0
      const settled = await round('settlement', settleWithdrawals(db, some, ended))
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

  const [inDatabase, real] = loopsOf(networks)
  const running = Promise.all([
    payouts(inDatabase, true),
    ...real.map((network) => payouts(network, false)),
    ...[...networks]
      .filter(([, adapter]) => adapter.rebroadcastTakenBack !== undefined)
      .map(([network, adapter]) => rebroadcasts(network, adapter)),
    ...readable(networks).map(([network, adapter]) => deposits(network, adapter)),
    ...[inDatabase, ...real].filter(canSweep).map(sweeps),
    statements(),
    quotes(),
    custody(),
  ])
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
