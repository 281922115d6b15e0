import { setMaxListeners } from 'node:events'
import type { Logger } from 'pino'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import { usualMs, type Changes } from '../db/changes.ts'
import type { Tracing } from '../contract/tracing.ts'
import type { Database } from '../db/database.ts'
import { ownCustomers, partsOf, type Part } from '../db/parts.ts'
import { approveCooledAddresses } from '../resources/destination-addresses/approve-cooled-addresses.ts'
import type { Deliverer } from '../deliveries/deliver.ts'
import type { Ledger } from '../money/movements/queue.ts'
import type { WorkerMeter } from '../upkeep/metrics/metrics.ts'
import type { PayoutNetwork, NetworkAdapter, Networks } from '../networks/network.ts'
import { withdrawalDueIn } from '../rails/payouts/lease.ts'
import { runOrchestrations } from '../resources/orchestrations/run-orchestrations.ts'
import { expireApprovals } from '../governance/approvals/approved-change.ts'
import { deleteOldRows, deleteOldSimulation } from '../upkeep/retention/delete-old-rows.ts'
import { keepPartitions } from '../upkeep/retention/keep-partitions.ts'
import { MovedHeads } from './audit-heads.ts'
import { recordWaitingFreezes } from '../money/records/freezes.ts'
import type { Settings } from '../settings.ts'
import { generateEndedMonths } from '../resources/statements/generate-statements.ts'
import { auditSweeps } from '../rails/treasury/audit-sweeps.ts'
import { creditDepositsOn, readable } from '../rails/deposits/credit-deposits.ts'
import { depositDueIn, networksWithDeposits } from '../rails/deposits/incoming-transfers.ts'
import type { Screening } from '../rails/screening/screening.ts'
import { Screener } from '../rails/screening/screen-payments.ts'
import { endSimulatedWires } from '../rails/wires/pending-wires.ts'
import { seeDepositsOn } from '../rails/deposits/see-deposits.ts'
import type { Step } from '../rails/payouts/next-step.ts'
import { settleWithdrawals } from '../rails/payouts/settle-withdrawals.ts'
import { traceSteps } from '../rails/payouts/trace-steps.ts'
import { attempts, backingOff, every, repeatUntil, resting, type Attempts, type Round } from './repeat.ts'
import { closingOf } from '../money/books/closing.ts'
import { sweepDepositAddresses } from '../rails/treasury/sweep-deposit-addresses.ts'
import { postRefills } from '../rails/treasury/refills.ts'
import { watchNetworkFees } from '../rails/treasury/watch-network-fees.ts'
import { watchCustody, watchWallets, type Seen, type Suspicions } from '../rails/treasury/watch-custody.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/** Simulated networks without deposits are read this often, so that the age of their last reading shows that they are read. */
const ALL_DEPOSITS_EVERY_MS = 300_000
/** Real networks without a new block are read this often: an operator may have made a waiting deposit due. */
const SAME_BLOCK_MS_MAX = 30_000
/** Rest between two rounds of sweeps. A step waits for blocks, and each look costs the node some requests. */
const SWEEPS_EVERY_MS = 10_000
const HEADS_OF_LINE = 100
/** At the stop, deliveries under way get this long, but at most a quarter of the stop's limit. The others are repeated later. */
const DELIVERIES_GRACE_MS = 5_000

export interface Worker {
  /** Finishes the rounds that are under way, and stops. */
  stop(): Promise<void>
}

interface Shared extends Attempts {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  log: Logger
  meter?: WorkerMeter | undefined
  /** Traces the steps of sampled payments. */
  tracing?: Tracing | undefined
  /** Screens payments. `networks` must sign only screened ones then (`guardedNetworks`). */
  screening?: Screening | undefined
  /** Rest between two looks at the custody of real networks. */
  custodyEveryMs: number
  /** What this process and others change. Without it, idle loops do not rest longer. */
  changes?: Changes | undefined
}

type WorkerOptions = Omit<Shared, 'custodyEveryMs' | keyof Attempts> & {
  /** Makes what delivers the events of a part's customers; it has its own connections. */
  delivererOf?: (part: Part) => Deliverer
  custodyEveryMs?: number
}

/** What the loops of the customers of one part of the database share. */
type OfPart = Shared & { part: Part }

/**
 * Starts the worker: loops for orchestrations and settlement, which go on without a rest while there is work, and loops for
 * deposits, sweeps, and at the start of each month the statements of those that have ended. Each real network has its own
 * loops for settlement, deposits and sweeps, so that a node that hangs, or a long queue, delays no other network. Measured
 * with one loop and a node that hangs: a deposit on another network took 16 s instead of 0.6. For the same reason each part
 * of the database has its own loops for its customers: an unreachable part stops no others. A part that joins gets its loops
 * within seconds.
 */
export function startWorker(options: WorkerOptions): Worker {
  const { meter, log, custodyEveryMs = MINUTE_MS, changes } = options
  const stopping = new AbortController()
  // Every loop listens while it rests, and there is no limit to the number of real networks.
  setMaxListeners(0, stopping.signal)
  const repeat = repeatUntil(stopping.signal, changes)
  const shared = { ...options, custodyEveryMs, ...attempts(log, meter) }
  const running = new Map<string, Promise<void>>()
  const startPart = (part: Part) => {
    const { screening, delivererOf } = options
    const screener = screening && new Screener({ db: part.db, screening, log })
    const deliverer = delivererOf?.(part)
    const ofPart = { ...shared, ...attempts(log, meter, part.name), part }
    const isListed = () => partsOf(options.db).some(({ name }) => name === part.name)
    const rounds = [
      ...roundsOfPart(ofPart),
      ...(screener === undefined ? [] : [resting(ofPart, 'screenings', () => screener.round())]),
      ...(deliverer === undefined ? [] : [resting(ofPart, 'deliveries', () => deliverer.round())]),
    ]
    const ended = Promise.all(rounds.map((round) => repeat(round, isListed))).then(async () => {
      const graceMs = Math.min(DELIVERIES_GRACE_MS, options.settings.shutdownTimeoutMs / 4)
      await Promise.all([screener?.stop(), deliverer?.stop(graceMs)])
      running.delete(part.name)
    })
    running.set(part.name, ended)
  }
  const startParts: Round = async () => {
    for (const part of partsOf(options.db)) if (!running.has(part.name)) startPart(part)
    return SECOND_MS
  }
  const others = Promise.all([...roundsOf(shared), startParts].map((round) => repeat(round)))
  return {
    async stop() {
      stopping.abort()
      changes?.endRests()
      await others
      await Promise.all(running.values())
      await options.screening?.endpoint.close()
    },
  }
}

/** The rounds that belong to no customer, and those that span customers. */
function roundsOf(shared: Shared): Round[] {
  const { db, networks, settings, log, meter } = shared
  const everyNetwork: [PayoutNetwork, NetworkAdapter][] = [...networks]
  const [inDatabase, ...real] = bySpeed(networks)
  const suspicions: Suspicions = new Map()
  const seen: Seen = (...found) => meter?.walletsSeen(...found)
  const canSweep = (group: Networks) => [...group.values()].some((adapter) => adapter.sweep !== undefined)
  return [
    ...everyNetwork.flatMap(([network, adapter]) =>
      adapter.rebroadcastTakenBack === undefined ? [] : rebroadcasts(shared, network, adapter),
    ),
    ...readable(new Map(real.flatMap((group) => [...group]))).map((network) => deposits(shared, ...network)),
    simulatedDeposits(shared, inDatabase),
    ...[inDatabase, ...real].filter(canSweep).map((group) => sweeps(shared, group)),
    // Rows that are too old (docs/guides/retention.md).
    every(
      shared,
      'old_rows',
      MINUTE_MS,
      () => deleteOldRows(db),
      ({ more }) => (more ? SECOND_MS : undefined),
    ),
    ...(settings.mode === 'sandbox'
      ? [every(shared, 'old_rows', HOUR_MS, () => deleteOldSimulation(db))]
      : []),
    // The partitions of four weeks to come are made, and those of old weeks dropped.
    every(
      shared,
      'partitions',
      MINUTE_MS,
      () => keepPartitions(db, settings),
      ({ done, postponed }) => {
        if (done.length > 0) log.info({ done }, 'weekly partitions')
        if (postponed.length === 0) return HOUR_MS
        log.info({ tables: postponed }, 'weekly partitions: the tables were in use, trying again in a minute')
      },
    ),
    ...(settings.mode === 'live' ? [every(shared, 'closing', MINUTE_MS, closingOf(db, log))] : []),
    // Records the freezes that were placed while the platform's audit log was unreachable.
    every(shared, 'freezes', MINUTE_MS, () => recordWaitingFreezes(db)),
    // A sandbox credits deposits that never came over a chain: its custody says nothing.
    every(shared, 'custody', shared.custodyEveryMs, async () => {
      if (settings.mode === 'live') await watchCustody(db, networks, suspicions, seen)
      else await watchWallets(db, networks, seen)
    }),
    every(shared, 'refills', shared.custodyEveryMs, () =>
      postRefills(db, networks, (refill) => log.info({ ...refill }, 'posted a refill from cold storage')),
    ),
  ]
}

function roundsOfPart(shared: OfPart): Round[] {
  const { part, log } = shared
  const [inDatabase, ...real] = bySpeed(shared.networks)
  const heads = new MovedHeads()
  let newestPeriod: string | undefined
  return [
    payouts(shared, inDatabase, { startsOrchestrations: true }),
    ...real.map((group) => payouts(shared, group, { startsOrchestrations: false })),
    // The statements of the ended months, once.
    every(
      shared,
      'statements',
      MINUTE_MS,
      () => generateEndedMonths(part, newestPeriod),
      (made) => {
        newestPeriod = made?.period ?? newestPeriod
        if (made !== undefined && made.generated.length > 0)
          log.info({ period: made.period, statements: made.generated.length }, 'generated statements')
      },
    ),
    every(shared, 'address_book', 2 * SECOND_MS, () => approveCooledAddresses(part.db)),
    // Until then, one that cannot be used any more is in lists. Approvals of withdrawals end in settlement.
    every(shared, 'approvals', MINUTE_MS, () => expireApprovals(part.db)),
    // A log that is kept elsewhere anchors the heads of the audit log's chains.
    every(
      shared,
      'audit_heads',
      MINUTE_MS,
      () => heads.read(ownCustomers(part.db)),
      (moved) => {
        for (let from = 0; from < moved.length; from += HEADS_OF_LINE)
          log.info({ heads: moved.slice(from, from + HEADS_OF_LINE) }, 'audit heads')
      },
    ),
  ]
}

/** The networks that need no node, together, and each real network by itself: it may be slow. */
function bySpeed(networks: Networks): [Networks, ...Networks[]] {
  const everyNetwork: [PayoutNetwork, NetworkAdapter][] = [...networks]
  const real = everyNetwork.filter(([, adapter]) => adapter.asksNode)
  return [
    new Map(everyNetwork.filter(([, adapter]) => !adapter.asksNode)),
    ...real.map((entry): Networks => new Map([entry])),
  ]
}

/** Orchestrations and settlement. The cost of a network's transactions is checked before anything is signed. */
function payouts(
  shared: OfPart,
  networks: Networks,
  { startsOrchestrations }: { startsOrchestrations: boolean },
): Round {
  const { db, ledger, settings, log, meter, tracing, attempt, part } = shared
  const traced: Step[] = []
  function taken(steps: readonly Step[]): void {
    if (tracing !== undefined) traced.push(...steps)
    for (const { withdrawal, transfer } of steps) {
      if (transfer === undefined || transfer.status === 'PENDING') continue
      const { customer_id, transfer_id, network } = withdrawal
      const { status } = transfer
      meter?.withdrawalEnded(network, status)
      log.info({ customer_id, transfer_id, network, status }, 'withdrawal ended')
    }
  }
  let feesDueAt = 0
  return backingOff(shared, async () => {
    if (performance.now() >= feesDueAt) {
      for (const [network, adapter] of networks)
        if (network !== 'WIRE') await checkNetworkFees(shared, network, adapter)
      feesDueAt = performance.now() + MINUTE_MS
    }
    const started = startsOrchestrations
      ? await attempt(
          'orchestrations',
          runOrchestrations(part.db, {
            networks: shared.networks,
            settings,
            macs: ledger.macs,
            govern: ledger.govern,
          }),
        )
      : 0
    const settled = await attempt('settlement', settleWithdrawals(part.db, networks, taken))
    if (tracing !== undefined)
      await traceSteps(db, tracing, traced.splice(0)).catch((err: unknown) =>
        log.debug({ err }, 'steps of payments are missing in their traces'),
      )
    if (started === undefined || settled === undefined) return undefined
    if (started + settled > 0) return 0
    const dueIn = () => attempt('settlement', withdrawalDueIn(ownCustomers(part.db), [...networks.keys()]))
    return { usualMs: settings.workerIntervalMs, dueIn }
  })
}

async function checkNetworkFees(
  { db, settings, log, attempt }: Shared,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
): Promise<void> {
  const found = await attempt('network_fees', watchNetworkFees({ db, settings }, network, adapter))
  if (found === undefined) return
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

/**
 * Scans a network for deposits, without a rest while there is more to read, and then reads its newest blocks. The round asks
 * for the newest block alone if that is the last round's, nothing is due and nothing has changed.
 */
function deposits(shared: Shared, network: CryptoNetwork, adapter: NetworkAdapter): Round {
  const { db, ledger, settings, screening, log, changes, attempt } = shared
  let last: { block: string | undefined; seen: number | undefined; until: number } | undefined
  return backingOff(shared, async () => {
    const now = performance.now()
    const seen = changes?.count
    // If the node does not answer, the round reports why.
    const block = await adapter.newestBlock?.().catch(() => undefined)
    if (block !== undefined && last?.block === block && last.seen === seen && now < last.until)
      return SECOND_MS
    last = undefined
    const result = await attempt(
      'deposits',
      creditDepositsOn({ db, ledger, settings, screening }, network, adapter),
    )
    for (const [reason, count] of result?.waiting ?? [])
      log.warn({ network, reason, count }, 'deposits wait: bursar deposits list')
    for (const profile_id of result?.deactivated ?? [])
      log.warn({ network, profile_id }, 'a deposit was credited to a deactivated profile: tell its customer')
    if (result?.isBehind === true) return 0
    const sighting = await attempt('sightings', seeDepositsOn({ db, settings }, network, adapter))
    if (result === undefined || sighting === undefined) return undefined
    if (block === undefined) return SECOND_MS
    const dueMs = (await attempt('deposits', depositDueIn(db, network))) ?? SAME_BLOCK_MS_MAX
    last = { block, seen, until: now + Math.min(dueMs, SAME_BLOCK_MS_MAX) }
    return SECOND_MS
  })
}

/** Reads the networks that are simulated in the database: one query finds those that have something to read. */
function simulatedDeposits(shared: Shared, networks: Networks): Round {
  const { db, ledger } = shared
  const rounds = new Map<PayoutNetwork, Round>(
    readable(networks).map(([network, adapter]) => [network, deposits(shared, network, adapter)]),
  )
  const bank = networks.get('WIRE')
  if (bank?.simulatedWireMs !== undefined)
    rounds.set(
      'WIRE',
      every(shared, 'deposits', SECOND_MS, () => endSimulatedWires({ db, ledger }, bank)),
    )
  let allDueAt = 0
  return async () => {
    if (rounds.size === 0) return ALL_DEPOSITS_EVERY_MS
    const isAllDue = performance.now() >= allDueAt
    if (isAllDue) allDueAt = performance.now() + ALL_DEPOSITS_EVERY_MS
    // If the query fails, each network's own round reports why.
    const found = isAllDue ? undefined : await networksWithDeposits(db).catch(() => undefined)
    const due = [...rounds].filter(([network]) => found?.has(network) ?? true)
    if (due.length === 0) return { usualMs: SECOND_MS, dueIn: async () => undefined }
    const rests = await Promise.all(due.map(([, round]) => round()))
    return Math.min(...rests.map(usualMs))
  }
}

/** Sweeps deposit addresses, and audits the swept amounts. */
function sweeps({ db, settings, log, attempt }: Shared, networks: Networks): Round {
  return async () => {
    await attempt('sweeps', sweepDepositAddresses({ db, networks, settings }))
    for (const [network, adapter] of networks) {
      if (network === 'WIRE' || adapter.sweep === undefined) continue
      const audit = auditSweeps(db, network, ({ customer_id, asset, crypto_tx_hash }) =>
        log.error(
          { customer_id, network, asset, crypto_tx_hash },
          'what was swept is in no deposit: bursar deposits list --unattributed',
        ),
      )
      await attempt('sweeps', audit)
    }
    return SWEEPS_EVERY_MS
  }
}

/**
 * Broadcasts transactions again that a reorganisation removed. It does so even on a frozen network, because it signs
 * nothing. A transaction is reported when two checks in a row miss it: a backend that lags does not have newer transactions
 * yet.
 */
function rebroadcasts(shared: Shared, network: PayoutNetwork, adapter: NetworkAdapter): Round {
  const { log, meter } = shared
  let before = new Set<number>()
  let reported = ''
  return every(
    shared,
    'rebroadcasts',
    10 * SECOND_MS,
    () => adapter.rebroadcastTakenBack!(),
    (lost) => {
      const still = lost.filter(({ nonce }) => before.has(nonce))
      before = new Set(lost.map(({ nonce }) => nonce))
      meter?.takenBack(network, still.length)
      const nonces = still.map(({ nonce }) => nonce).join()
      if (still.length > 0 && nonces !== reported)
        log.error({ network, transactions: still }, 'the chain has taken back transactions that had ended')
      reported = nonces
    },
  )
}
