import { version } from '../../package.ts'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Database } from '../../db/database.ts'
import type { DeliveryMeter } from '../../deliveries/deliver.ts'
import type { RequestMeter } from '../../http/requests.ts'
import type { LedgerMeter } from '../../money/movements/queue.ts'
import type { ScreeningMeter } from '../../rails/screening/endpoint.ts'
import { walletGauges } from './wallet-gauges.ts'
import type { Seen } from '../../rails/treasury/watch-custody.ts'
import { databaseGauges } from './database-gauges.ts'

const REQUEST_SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const ATTEMPT_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]
const WAIT_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600]
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

export type Loop =
  | 'orchestrations'
  | 'settlement'
  | 'rebroadcasts'
  | 'deposits'
  | 'sightings'
  | 'sweeps'
  | 'statements'
  | 'old_rows'
  | 'approvals'
  | 'partitions'
  | 'network_fees'
  | 'custody'
  | 'refills'
  | 'deliveries'
  | 'screenings'
  | 'address_book'
  | 'audit_heads'
  | 'freezes'
  | 'closing'

export interface WorkerMeter {
  round(loop: Loop, succeeded: boolean): void
  /** Counts records that a round could not work on, while it worked on the others. */
  recordsFailed(loop: Loop, count: number): void
  withdrawalEnded(network: string, status: string): void
  /** Sets the number of the hot wallet's confirmed transactions that a reorganisation removed. */
  takenBack(network: string, count: number): void
  /** Sets what is known of a network's wallets and signer process. */
  walletsSeen: Seen
}

/** Sources of the values that are read at each scrape, in addition to the values that the meters count. */
export interface Measured {
  pools: Record<string, Database>
  /** The pool for reading the gauges of records. */
  db: Database
  ledger: { waiting: number }
  requests: { underWay: number }
  logLinesDropped: () => number
}

/** The metrics of this process, for Prometheus (docs/guides/operating.md). */
export class Metrics {
  readonly registry: Registry
  readonly request: RequestMeter
  readonly ledger: LedgerMeter
  readonly worker: WorkerMeter
  readonly deliveries: DeliveryMeter
  readonly screening: ScreeningMeter
  /** Counts a row that was changed or invented in the database, and is refused. */
  readonly forged: (table: string) => void

  /** With `exemplars`, histograms of requests name traces, which only OpenMetrics can tell. */
  constructor({ exemplars = false } = {}) {
    // By the constant where it is needed: the types know one kind of registry, although both print the same metrics.
    this.registry = new Registry()
    if (exemplars) this.registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
    const registers = [this.registry]
    // In ms, and part of the lags shown. With prom-client's 10, measuring took half a percent of an idle service's core.
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: 100 })
    new Gauge({
      name: 'bursar_build_info',
      help: 'Always 1. The version of Bursar and of Node.',
      labelNames: ['version', 'node'],
      registers,
    }).set({ version, node: process.version }, 1)

    this.request = requestMeter(
      new Histogram({
        name: 'bursar_http_request_duration_seconds',
        help: 'Time from the request to the end of the answer. Status 499: the client disconnected first.',
        labelNames: ['method', 'route', 'status'],
        buckets: REQUEST_SECONDS,
        enableExemplars: exemplars,
        registers,
      }),
    )

    const batches = new Histogram({
      name: 'bursar_ledger_batch_movements',
      help: 'Movements per database transaction.',
      buckets: BATCH_SIZES,
      registers,
    })
    const refused = new Counter({
      name: 'bursar_ledger_refused_total',
      help: 'Movements refused because the queue was full.',
      registers,
    })
    this.ledger = { batch: (movements) => batches.observe(movements), refused: () => refused.inc() }

    this.worker = workerMeter(registers)
    this.deliveries = deliveryMeter(registers)
    this.screening = screeningMeter(registers)
    const forged = new Counter({
      name: 'bursar_forged_rows_total',
      help: 'Rows that were refused because they were changed, invented or put back in the database, by table.',
      labelNames: ['table'],
      registers,
    })
    this.forged = (table) => forged.inc({ table })
  }

  /** Adds the gauges that are read at each scrape. Call it once. */
  measure({ pools, db, ledger, requests, logLinesDropped }: Measured): void {
    const registers = [this.registry]
    const read = (name: string, help: string, value: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(value())
        },
      })
    read('bursar_http_requests_under_way', 'Requests not answered yet.', () => requests.underWay)
    read('bursar_ledger_waiting_movements', 'Movements waiting for a batch.', () => ledger.waiting)
    new Counter({
      name: 'bursar_log_lines_dropped_total',
      help: 'Log lines dropped because the reader of standard error did not keep up.',
      registers,
      collect() {
        this.reset()
        this.inc(logLinesDropped())
      },
    })
    new Gauge({
      name: 'bursar_database_connections',
      help: 'Connections of a pool by kind; open: including idle; waiting: requests for a connection; max: the limit.',
      labelNames: ['pool', 'kind'],
      registers,
      collect() {
        for (const [pool, { totalCount, idleCount, waitingCount, options }] of Object.entries(pools)) {
          this.set({ pool, kind: 'open' }, totalCount)
          this.set({ pool, kind: 'idle' }, idleCount)
          this.set({ pool, kind: 'waiting' }, waitingCount)
          this.set({ pool, kind: 'max' }, options.max)
        }
      },
    })
    databaseGauges(this.registry, db)
  }
}

function workerMeter(registers: Registry[]): WorkerMeter {
  const rounds = new Counter({
    name: 'bursar_worker_rounds_total',
    help: 'Rounds of the worker, by loop and outcome.',
    labelNames: ['loop', 'outcome'],
    registers,
  })
  const recordsFailed = new Counter({
    name: 'bursar_worker_record_failures_total',
    help: 'Records that a round of this loop could not work on, while it worked on the others.',
    labelNames: ['loop'],
    registers,
  })
  const lastRound = new Gauge({
    name: 'bursar_worker_last_success_timestamp_seconds',
    help: 'Time when a round of this loop last ended without a failure.',
    labelNames: ['loop'],
    registers,
  })
  const ended = new Counter({
    name: 'bursar_withdrawals_ended_total',
    help: 'Withdrawals that this process completed or failed.',
    labelNames: ['network', 'status'],
    registers,
  })
  const takenBack = new Gauge({
    name: 'bursar_transactions_taken_back',
    help: 'Confirmed transactions of the hot wallet that a reorganisation removed.',
    labelNames: ['network'],
    registers,
  })
  return {
    round(loop, succeeded) {
      rounds.inc({ loop, outcome: succeeded ? 'succeeded' : 'failed' })
      if (succeeded) lastRound.set({ loop }, Date.now() / 1000)
    },
    recordsFailed: (loop, count) => recordsFailed.inc({ loop }, count),
    withdrawalEnded: (network, status) => ended.inc({ network, status }),
    takenBack: (network, count) => takenBack.set({ network }, count),
    walletsSeen: walletGauges(registers),
  }
}

/** Observes attempts to deliver events. No label names an endpoint: customers have any number of them. */
function deliveryMeter(registers: Registry[]): DeliveryMeter {
  const attempts = new Histogram({
    name: 'bursar_webhook_attempt_duration_seconds',
    help: 'Attempts to deliver an event to a webhook, by outcome: succeeded, failed.',
    labelNames: ['outcome'],
    buckets: ATTEMPT_SECONDS,
    registers,
  })
  const waits = new Histogram({
    name: 'bursar_webhook_first_attempt_delay_seconds',
    help: 'Time from an event to the start of its first attempt, also of the wait that a rate limit causes.',
    buckets: WAIT_SECONDS,
    registers,
  })
  return {
    attempt: (succeeded, seconds) =>
      attempts.observe({ outcome: succeeded ? 'succeeded' : 'failed' }, seconds),
    waited: (seconds) => waits.observe(seconds),
  }
}

function screeningMeter(registers: Registry[]): ScreeningMeter {
  const questions = new Histogram({
    name: 'bursar_screening_question_duration_seconds',
    help: 'Questions to the screening endpoint, by outcome: allow, reject, hold (any other answer, or none in time).',
    labelNames: ['outcome'],
    buckets: ATTEMPT_SECONDS,
    registers,
  })
  return (outcome, seconds) => questions.observe({ outcome: outcome.toLowerCase() }, seconds)
}

/**
 * Observes requests. Labels are bounded: a route is its pattern, a method one of the route's. All requests to unknown
 * paths share one label.
 */
function requestMeter(histogram: Histogram<'method' | 'route' | 'status'>): RequestMeter {
  // Maps cost less than prom-client's search for a child by its labels.
  const children = new Map<string, Map<number, Map<string, { observe: (value: number) => void }>>>()
  return (method, route = '', status, milliseconds, traceId) => {
    const verb = route === '' ? '' : method
    if (traceId !== undefined) {
      const labels = { method: verb, route, status: String(status) }
      return histogram.observe({
        labels,
        value: milliseconds / 1000,
        exemplarLabels: { trace_id: traceId } as object,
      })
    }
    let child = children.get(route)?.get(status)?.get(verb)
    if (child === undefined) {
      child = histogram.labels(verb, route, String(status))
      const ofRoute = children.get(route) ?? new Map<number, Map<string, typeof child>>()
      const ofStatus = ofRoute.get(status) ?? new Map<string, typeof child>()
      children.set(route, ofRoute.set(status, ofStatus.set(verb, child)))
    }
    child.observe(milliseconds / 1000)
  }
}
