import { inParts } from '../db/each-alone.ts'
import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Tracing } from '../contract/tracing.ts'
import type { Rest } from '../db/changes.ts'
import type { Database } from '../db/database.ts'
import { ownCustomers } from '../db/parts.ts'
import { readHorizon } from '../db/horizon.ts'
import type { Moment } from '../db/ids.ts'
import { readEvents, type ReadEvent } from '../money/records/event.ts'
import { readTraces } from '../money/records/traces.ts'
import type { SecretsOfWebhook, WebhookSecrets } from '../money/records/webhook-secrets.ts'
import type { Settings } from '../settings.ts'
import { DeliveryTokens } from './access-tokens.ts'
import { attemptDelivery, type Means, type AttemptOutcome } from './attempt.ts'
import {
  claimDeliveries,
  deliveryDueIn,
  endpointsWithWork,
  LEASE_SECONDS,
  pauseEndpoint,
  releaseLeases,
  type Claim,
  type ClaimedDelivery,
} from './claim.ts'
import { type EndpointKey } from './candidates.ts'
import { START, type Position } from './claim.ts'
import { Places } from './places.ts'
import { recordAttempts, type Attempt } from './record.ts'
import type { Resolve } from './resolve.ts'
import { ATTEMPT_MS_MAX, Sender } from './send.ts'
import { targetRules } from './targets.ts'

/** Rest between two looks for work, while there are ACTIVE endpoints. */
const POLL_MS = 100
/** A rest takes at least this many times as long as the look for work before it: rests grow with the number of endpoints. */
const LOOK_SHARE = 4
/** Claims at once. Each takes a connection. */
const CLAIMS_AT_ONCE = 2
/** How long a horizon is used. A newer one would let cursors move further. */
const HORIZON_MS = 100
/**
 * Attempts at one endpoint that end within this time are recorded together. At 100 a second, a transaction for each took a
 * quarter of the deliverer's CPU, and each flushed the write-ahead log.
 */
const RECORD_EVERY_MS = 100
/** Rest after a failed recording. Attempts whose lease has ended meanwhile are repeated. */
const RECORD_AGAIN_MS = 500
const ENDPOINTS_KNOWN_MAX = 20_000
/** Rest of an endpoint whose secrets no configured master key opens. */
const UNREADABLE_SECONDS = 60

export interface DeliveryMeter {
  attempt(succeeded: boolean, seconds: number): void
  waited(seconds: number): void
}

export interface DelivererOptions {
  db: Database
  secrets: WebhookSecrets
  settings: Pick<Settings, 'mode' | 'webhookSource' | 'webhookAllowedNetworks'>
  log: Logger
  meter?: DeliveryMeter | undefined
  tracing?: Tracing | undefined
  resolve?: Resolve
}

/** Attempts at one endpoint that wait to be recorded, and those being recorded. */
interface Recording {
  waiting: { attempt: Attempt; done: () => void; leaseEndsAt: number }[]
  isRunning: boolean
}

/** Delivers events to the endpoints of all customers. Several processes may do so: leases divide the work. */
export class Deliverer {
  readonly #options: DelivererOptions
  readonly #means: Means
  readonly #places = new Places()
  readonly #positions = new LRUCache<string, Position>({ max: ENDPOINTS_KNOWN_MAX })
  readonly #secrets = new LRUCache<string, Promise<SecretsOfWebhook>>({ max: 1_000 })
  readonly #recordings = new Map<string, Recording>()
  readonly #underWay = new Set<Promise<void>>()
  /** `#stopping` ends waits for slots; `#aborting` ends the requests some seconds later. */
  readonly #stopping = new AbortController()
  readonly #aborting = new AbortController()

  constructor(options: DelivererOptions) {
    const { settings, resolve } = options
    this.#options = options
    const sender = new Sender(targetRules(settings), resolve)
    this.#means = { sender, tokens: new DeliveryTokens(sender), source: settings.webhookSource }
    // Each attempt listens, and places bound their number.
    setMaxListeners(0, this.#stopping.signal, this.#aborting.signal)
  }

  /** Claims what may be sent now and begins to send it. Returns how long to rest. */
  async round(): Promise<Rest> {
    const { db } = this.#options
    const start = performance.now()
    if (this.#places.areFull) return POLL_MS
    const endpoints = await endpointsWithWork(ownCustomers(db), this.#places.full(), this.#places.admitted())
    const restMs = Math.max(POLL_MS, LOOK_SHARE * (performance.now() - start))
    if (endpoints.length === 0) return { usualMs: restMs, dueIn: () => deliveryDueIn(ownCustomers(db)) }
    let horizon: { moment: Moment; at: number } | undefined
    const freshHorizon = async () => {
      const now = performance.now()
      if (horizon === undefined || now - horizon.at > HORIZON_MS)
        horizon = { at: now, moment: await readHorizon(db) }
      return horizon.moment
    }
    const queue = [...endpoints].reverse()
    const failures: unknown[] = []
    const claimAll = async () => {
      for (let key = queue.pop(); key !== undefined && !this.#stopping.signal.aborted; key = queue.pop()) {
        try {
          await this.#claim(key, await freshHorizon())
        } catch (error) {
          failures.push(error)
          this.#options.log.error({ err: error, ...idsOf(key) }, 'a claim of deliveries failed')
        }
      }
    }
    await Promise.all(Array.from({ length: CLAIMS_AT_ONCE }, claimAll))
    // A claim that fails alone holds up no other endpoint. If all of them do, the database or the horizon is to blame.
    if (failures.length === endpoints.length) throw failures[0]
    return restMs
  }

  /**
   * Stops: claims nothing more, gives unused leases back, and ends the requests that take longer than `graceMs`. Call it
   * when no round runs.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort()
    const limit = setTimeout(() => this.#aborting.abort(), graceMs)
    await Promise.all(this.#underWay)
    clearTimeout(limit)
    await this.#means.sender.close()
  }

  async #claim(key: EndpointKey, horizon: Moment): Promise<void> {
    const most = this.#places.free(key.id)
    if (most === 0) return
    const claimedAt = performance.now()
    const position = this.#positions.get(key.id) ?? START
    const claimed = await claimDeliveries(this.#options.db, key, { most, horizon, position })
    this.#positions.set(key.id, claimed.position)
    const { claim } = claimed
    if (claim === undefined) return
    const releases = claim.deliveries.map(() => this.#places.take(key.id))
    const work = this.#send(claim, claimedAt, releases)
      .catch((error: unknown) => {
        // The leases end by themselves, and the attempts are made then.
        this.#options.log.error({ err: error, ...idsOf(key) }, 'deliveries failed; trying again')
        for (const release of releases) release(undefined)
      })
      .finally(() => this.#underWay.delete(work))
    this.#underWay.add(work)
  }

  /** Makes the attempts of a claim, each at its slot, and records them. */
  async #send(claim: Claim, claimedAt: number, releases: ReturnType<Places['take']>[]): Promise<void> {
    const { endpoint, deliveries } = claim
    const secrets = await this.#secretsOf(endpoint.encrypted_secrets, endpoint).catch(
      async (error: unknown) => {
        await pauseEndpoint(this.#options.db, endpoint, UNREADABLE_SECONDS)
        throw error
      },
    )
    const failed = (event_id: string, error: unknown): undefined => {
      // Its lease ends by itself, and the attempt is made then.
      this.#options.log.error({ err: error, ...idsOf(endpoint), event_id }, 'a delivery failed')
    }
    const events = await inParts(
      deliveries.map(({ event_id }) => event_id),
      async (some) => {
        const found = await readEvents(this.#options.db, endpoint.customer_id, some)
        return some.map((id) => found.find(({ event }) => event.id === id))
      },
      failed,
    )
    const traces = await this.#tracesOf(endpoint.customer_id, events)
    const notMade: string[] = []
    const outcomes = await Promise.allSettled(
      deliveries.map(async (delivery, index) => {
        const release = releases[index]!
        const read = events[index]
        // The event was dropped by age a moment before its delivery, or has a type of a later version. After the lease, a newer
        // process may know that type.
        if (read === undefined) return release(undefined)
        const traceparent = traces.get(read.object_id)
        const outcome = await this.#attempt(claim, delivery, claimedAt, secrets, { read, traceparent })
        if (outcome === undefined) {
          notMade.push(delivery.event_id)
          return release(undefined)
        }
        const { event_id, attempts_of_round } = delivery
        const attempt = { event_id, attempts_of_round, leased_until: claim.leased_until, ...outcome }
        await this.#record(endpoint, attempt, claimedAt + LEASE_SECONDS * 1000)
        release(outcome)
      }),
    )
    for (const [index, outcome] of outcomes.entries())
      if (outcome.status === 'rejected') {
        failed(deliveries[index]!.event_id, outcome.reason)
        releases[index]!(undefined)
      }
    if (notMade.length > 0) await releaseLeases(this.#options.db, endpoint, claim.leased_until, notMade)
  }

  /** Makes one attempt at its slot. Undefined when it was not made, or ended because the process stops. */
  async #attempt(
    { endpoint }: Claim,
    { startsIn, waitedSeconds }: ClaimedDelivery,
    claimedAt: number,
    secrets: SecretsOfWebhook,
    { read, traceparent }: { read: ReadEvent; traceparent: string | undefined },
  ): Promise<AttemptOutcome | undefined> {
    const { meter, tracing } = this.#options
    const waitMs = claimedAt + startsIn * 1000 - performance.now()
    const { signal } = this.#stopping
    if (waitMs > 0) await pause(waitMs, undefined, { signal }).catch(() => undefined)
    // After a standstill of the process, another one may make the attempt.
    const isLate = performance.now() - claimedAt > LEASE_SECONDS * 1000 - ATTEMPT_MS_MAX
    if (signal.aborted || isLate) return undefined
    if (waitedSeconds !== undefined) meter?.waited(Math.max(0, waitedSeconds + startsIn))
    const span =
      traceparent === undefined ? undefined : tracing?.part(traceparent, 'delivery', { isClient: true })
    const stopping = this.#aborting.signal
    const outcome = await attemptDelivery(this.#means, endpoint, secrets, read, { stopping, span })
    span?.end({
      attributes: {
        'bursar.event_id': read.event.id,
        'bursar.event_type': read.event.type,
        'bursar.webhook_id': endpoint.id,
        'http.response.status_code': outcome?.status_code ?? 0,
      },
      failed: outcome?.succeeded !== true,
    })
    if (outcome !== undefined) meter?.attempt(outcome.succeeded, outcome.duration_ms / 1000)
    return outcome
  }

  /** The spans of the payments that these events tell of, by transfer. */
  async #tracesOf(
    customerId: string,
    events: readonly (ReadEvent | undefined)[],
  ): Promise<Map<string, string>> {
    const { db, tracing, log } = this.#options
    const ids = events.flatMap((read) =>
      read?.event.object_type === 'transfer_status_change' ? read.object_id : [],
    )
    if (tracing === undefined || ids.length === 0) return new Map()
    const found = await readTraces(db, customerId, ids).catch((err: unknown) => {
      log.debug({ err }, 'deliveries are missing in their traces')
      return []
    })
    return new Map(found.map(({ transfer_id, traceparent }) => [transfer_id, traceparent]))
  }

  /** Records an attempt with others at its endpoint that end meanwhile. Resolves once it is recorded, or its lease has ended. */
  #record(key: EndpointKey, attempt: Attempt, leaseEndsAt: number): Promise<void> {
    const recording = this.#recordings.get(key.id) ?? { waiting: [], isRunning: false }
    this.#recordings.set(key.id, recording)
    return new Promise((done) => {
      recording.waiting.push({ attempt, done, leaseEndsAt })
      if (!recording.isRunning) void this.#recordAll(key, recording)
    })
  }

  async #recordAll(key: EndpointKey, recording: Recording): Promise<void> {
    recording.isRunning = true
    while (recording.waiting.length > 0) {
      await pause(RECORD_EVERY_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      const batch = recording.waiting.splice(0)
      try {
        await inParts(
          batch,
          async (some) => {
            const attempts = some.map(({ attempt }) => attempt)
            const disabled = await recordAttempts(this.#options.db, key, attempts)
            for (const { done } of some) done()
            if (disabled !== undefined)
              this.#options.log.warn(
                { ...idsOf(key), name: disabled.name, reason: disabled.reason },
                'disabled a webhook',
              )
            return []
          },
          ({ attempt: { event_id }, done }, error): undefined => {
            done()
            this.#options.log.error({ err: error, ...idsOf(key), event_id }, 'an attempt cannot be recorded')
          },
        )
      } catch (error) {
        this.#options.log.error({ err: error, ...idsOf(key) }, 'attempts are not recorded; trying again')
        const now = performance.now()
        for (const { done } of batch.filter(({ leaseEndsAt }) => leaseEndsAt <= now)) done()
        recording.waiting.unshift(...batch.filter(({ leaseEndsAt }) => leaseEndsAt > now))
        await pause(RECORD_AGAIN_MS)
      }
    }
    this.#recordings.delete(key.id)
  }

  #secretsOf(encrypted: string, key: EndpointKey): Promise<SecretsOfWebhook> {
    const known = this.#secrets.get(encrypted)
    if (known !== undefined) return known
    const opened = this.#options.secrets.open(key, encrypted)
    this.#secrets.set(encrypted, opened)
    opened.catch(() => this.#secrets.delete(encrypted))
    return opened
  }
}

const idsOf = ({ customer_id, id }: EndpointKey) => ({ customer_id, webhook_id: id })
