import { isIP } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { checkUser } from './check-machine.ts'
import { BACKGROUND_LIMITS, connectService, NOT_TOLD, openParts, type ServiceConnected } from './connect.ts'
import type { Tracing } from '../contract/tracing.ts'
import type { Changes } from '../db/changes.ts'
import type { Database, Limits } from '../db/database.ts'
import { bringUpToDate } from '../db/migrate.ts'
import { partsOf, type Part } from '../db/parts.ts'
import { advanceClock } from '../db/sandbox-clock.ts'
import { Deliverer } from '../deliveries/deliver.ts'
import { faultsOfRole } from '../db/privileges.ts'
import type { SandboxCredentials } from './demo/credentials.ts'
import { demoRecords } from './demo/demo-records.ts'
import { makeDemo } from './demo/make-demo.ts'
import { requireMode, stampDatabase } from './deployment.ts'
import { stopListening } from '../http/stop-listening.ts'
import { openAcceptanceKey } from '../keys/acceptance-key.ts'
import { openMasterKeys, type MasterKeys } from '../keys/master-keys.ts'
import { RowMacs, sealRowsWith } from '../audit/sealed-rows.ts'
import { Ledger } from '../money/movements/queue.ts'
import type { Log } from '../log.ts'
import { beginSimulation } from '../resources/markets/simulate-prices.ts'
import { holdFreePort } from '../ports.ts'
import { Metrics } from '../upkeep/metrics/metrics.ts'
import { telemetryAsked, type Telemetry } from '../upkeep/telemetry/asked.ts'
import { openTelemetry } from '../upkeep/telemetry/telemetry.ts'
import { serveMetrics, type MetricsServer } from '../upkeep/metrics/metrics-server.ts'
import type { Networks } from '../networks/network.ts'
import { openNetworks, requireChains } from '../rails/wallets/configured-networks.ts'
import { openBank } from '../rails/wires/bank.ts'
import { simulatedNetworks } from '../networks/simulated/adapter.ts'
import { routeBySigner } from '../networks/simulated/route-by-signer.ts'
import { reencryptSigningKeys } from '../access/tokens/signing-keys.ts'
import { Policies } from '../governance/policy/policy.ts'
import { sealOrders } from '../money/records/orchestration.ts'
import { reencryptWebhookSecrets, WebhookSecrets } from '../money/records/webhook-secrets.ts'
import { keepPartitions } from '../upkeep/retention/keep-partitions.ts'
import { OwnMachine } from '../http/own-machine.ts'
import { openScreening, requireScreeningSettings } from '../rails/screening/open-screening.ts'
import { requireScreening } from '../rails/screening/requirement.ts'
import type { Screening } from '../rails/screening/screening.ts'
import { blame, type Settings } from '../settings.ts'
import { guardedNetworks } from '../rails/payouts/signing-guards.ts'
import { plainTransports } from '../http/transport-security.ts'
import { startWorker } from './worker.ts'
import { recordMigrations } from '../audit/audited.ts'
import { originOfLoop } from '../contract/actor.ts'
import { governBy } from '../governance/policy/judge-payments.ts'
import { buildApp, tellForged } from './build-app.ts'
import type { OnObjection } from '../rails/payouts/sign-only-accepted.ts'
import { NOT_ACCEPTED } from '../money/movements/accepted-withdrawals.ts'
import { sealBalances } from '../money/ledger/sealed-balances.ts'

export interface Service {
  /** The address that the API listens on. */
  address: string
  /** The address of a page. Where needed, the address proves that the browser is at this machine. */
  addressOf: (page: string) => string
  /** Credentials of the demo customer, if this start created it. */
  demo: SandboxCredentials | undefined
  /**
   * Finishes accepted work and stops, in order: API, worker, ledger, database. Throws when that exceeds
   * BURSAR_SHUTDOWN_TIMEOUT_MS.
   */
  close(): Promise<void>
}

/** Connections for deliveries alone: deliveries and settlement do not wait for each other. Few connections are shared instead. */
const DELIVERIES_SHARE = 3
const SHARED_BELOW = 12
const DELIVERIES_LIMITS: Limits = { statementMs: 10_000, idleInTransactionMs: 10_000 }
const REQUEST_IDLE_MS_MAX = 30_000

const PORT_ERRORS = new Set<string | undefined>(['EADDRINUSE', 'EACCES'])

/**
 * Starts the whole service: database, migrations, API, demo data, worker. Throws `SettingsError` for refused settings. A
 * failed start leaves no connection and no metrics server open. `beginAnew` is called when a person or a program asks for an
 * empty sandbox: it closes the service, empties the database and starts it again. `connecting` is a connection begun before
 * this module was loaded.
 */
export async function serve(
  settings: Settings,
  { log, dropped }: Log,
  {
    beginAnew,
    connecting = connectService(settings, log),
  }: { beginAnew?: () => Promise<void>; connecting?: Promise<ServiceConnected> } = {},
): Promise<Service> {
  const { db: background, share, changes, open, ownerUrl, close: disconnect } = await connecting
  let metricsServer: MetricsServer | undefined
  let parts: Awaited<ReturnType<typeof openParts>> | undefined
  let telemetry: Telemetry | undefined
  const closeAll = async () => {
    await metricsServer?.close()
    await parts?.close()
    await telemetry?.close()
    await disconnect()
  }
  try {
    const asked = telemetryAsked(settings.environment)
    const masterKeys = await openMasterKeys(settings)
    const metrics = new Metrics({ exemplars: asked.traces })
    telemetry = await openTelemetry(asked, { registry: metrics.registry, log })
    sealRowsWith(() => Promise.resolve(masterKeys), tellForged(log, metrics.forged))
    await openForService(background, settings, masterKeys, ownerUrl, log)
    const forDeliveries =
      settings.worker && settings.databaseConnections >= SHARED_BELOW ? DELIVERIES_SHARE : 0
    parts = await openParts(background, log)
    const toAllParts = (db: Database, max: number, limits: Limits) =>
      parts!.connect(db, (part) => open(max, limits, part))
    toAllParts(background, share, BACKGROUND_LIMITS)
    const deliveries =
      forDeliveries === 0
        ? background
        : toAllParts(open(forDeliveries, DELIVERIES_LIMITS), forDeliveries, DELIVERIES_LIMITS)
    const forRequests = settings.databaseConnections - share - forDeliveries
    const limits = { statementMs: settings.statementTimeoutMs, idleInTransactionMs: REQUEST_IDLE_MS_MAX }
    const db = toAllParts(open(forRequests, limits), forRequests, limits)
    metricsServer = await openMetrics(metrics, settings, log)
    const moveClock = async (duration: string) => {
      const { text } = await advanceClock(background, ownerUrl, duration)
      changes.endRests()
      return text
    }
    const { address, demo, stop } = await startService({
      ...{ settings, log, dropped, db, background, deliveries },
      // Health checks wait for no request. As for the check of the server, their connection is beside the configured number.
      health: open(1, limits),
      ...{ masterKeys, metrics, changes, tracing: telemetry.tracing },
      // Wallets of a test network hold coins that the new records would not know.
      beginAnew: settings.mode === 'sandbox' && settings.networksFile === undefined ? beginAnew : undefined,
      advanceClock: settings.mode === 'sandbox' ? moveClock : undefined,
    })
    const ownMachine = new OwnMachine(settings, masterKeys.current.derive('ownMachine'))
    return {
      address,
      addressOf: (page) => ownMachine.addressOf(`${address}${page}`),
      demo,
      close: () =>
        within(settings.shutdownTimeoutMs, async () => {
          await stop()
          await closeAll()
        }),
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/**
 * Migrates the database, checks that its mode is the configured one, and encrypts the signing keys and the secrets of
 * webhooks with the current master key. Warns of rights that the service's role should not have.
 */
async function openForService(
  db: Database,
  settings: Settings,
  masterKeys: MasterKeys,
  ownerUrl: string | undefined,
  log: Logger,
): Promise<void> {
  const applied = await bringUpToDate(db, ownerUrl)
  if (applied.length > 0) log.info({ applied }, 'migrated')
  await recordMigrations(db, originOfLoop('serve'), applied)
  await requireMode(db, settings.mode)
  // A missing partition stops nothing, because the default partition takes its rows. The worker tries again.
  const { done, postponed } = await keepPartitions(db, settings)
  if (done.length + postponed.length > 0) log.info({ done, postponed }, 'weekly partitions')
  const reencrypted = await reencryptSigningKeys(db, masterKeys)
  if (reencrypted > 0)
    log.info({ keys: reencrypted }, 'signing keys are encrypted with the current master key')
  const webhooks = await reencryptWebhookSecrets(db, masterKeys, (err) =>
    log.error({ err }, 'the secrets of a webhook cannot be read: nothing is delivered to it'),
  )
  if (webhooks > 0) log.info({ webhooks }, 'secrets of webhooks are encrypted with the current master key')
  const macs = new RowMacs(masterKeys)
  const renewed =
    (await macs.renew(db)) +
    (await sealOrders(db, 'OF_OLDER_KEYS', macs)) +
    (await sealBalances(db, 'OF_OLDER_KEYS', macs))
  if (renewed > 0) log.info({ rows: renewed }, 'MACs of rows are made with the current master key')
  // A process without a worker neither signs nor credits, so it needs no screening.
  if (settings.worker) await requireScreeningSettings(db, settings)
  for (const { says, advice } of await faultsOfRole(db)) log.warn(`${says}; ${advice}`)
  for (const { says, advice } of [...checkUser(settings), ...plainTransports(settings)])
    if (advice !== undefined) log.warn(`${says}; ${advice}`)
}

interface Parts {
  settings: Settings
  log: Logger
  dropped: () => number
  /** Connections for requests. */
  db: Database
  /** Connections for background work. */
  background: Database
  deliveries: Database
  /** The connection for health checks. */
  health: Database
  masterKeys: MasterKeys
  metrics: Metrics
  tracing: Tracing | undefined
  changes: Changes
  beginAnew?: (() => Promise<void>) | undefined
  advanceClock?: ((duration: string) => Promise<string>) | undefined
}

/** Starts the API, the demo and the worker. `stop` ends them: API first, then worker, then ledger. */
async function startService(
  parts: Parts,
): Promise<{ address: string; demo: SandboxCredentials | undefined; stop: () => Promise<void> }> {
  const { settings, log, db, background, deliveries, masterKeys, metrics, tracing, changes } = parts
  const isSandbox = settings.mode === 'sandbox'
  const acceptanceKey = await openAcceptanceKey(settings)
  const macs = new RowMacs(masterKeys, tellForged(log, metrics.forged), acceptanceKey)
  const policies = new Policies(masterKeys, { sandbox: isSandbox })
  const timing = { meter: metrics.ledger, tracing, waitMsMax: settings.requestTimeoutMs }
  const ledger = new Ledger(db, { ...timing, macs, govern: governBy(policies) })
  // Check the settings before stamping the database: refused settings must leave no stamp.
  const { networks, screening } = await openPayouts(parts, macs)
  await stampDatabase(background, settings)
  if (screening !== undefined) await requireScreening(background, originOfLoop('serve'))
  if (isSandbox && settings.simulatedPriceDays > 0)
    await beginSimulation(background, settings.simulatedPriceDays)
  // The base URL is the token issuer, so the port must be known before the API listens.
  const held = settings.port === 0 ? await holdFreePort(settings.host).catch(blame('HOST')) : undefined
  const port = held?.port ?? settings.port
  const baseUrl =
    settings.baseUrl ?? `http://${isIP(settings.host) === 6 ? `[${settings.host}]` : settings.host}:${port}`
  const app = await buildApp({
    ...{ db, ledger, networks, settings, masterKeys, baseUrl, log, background },
    ...{ tracing, meter: metrics.request, onForged: metrics.forged },
    exampleRecords: async () => (isSandbox ? demoRecords(db) : undefined),
    health: parts.health,
    beginAnew: parts.beginAnew,
    advanceClock: parts.advanceClock,
  })
  const forDeliveries = deliveries !== background && { deliveries }
  metrics.measure({
    pools: { requests: db, background, ...forDeliveries },
    db: background,
    ledger,
    requests: app.requests,
    logLinesDropped: parts.dropped,
  })
  app.requests.starting = isSandbox
  const secrets = { rowMacs: new RowMacs(masterKeys), webhookSecrets: new WebhookSecrets(masterKeys) }
  const demoParts = { db: background, ledger, networks, ...secrets }
  await held?.release()
  const address = await app
    .listen({ host: settings.host, port })
    .catch(async (error: NodeJS.ErrnoException) => {
      // The app reads the database as long as it is open.
      await app.close()
      return blame(PORT_ERRORS.has(error.code) ? 'PORT' : 'HOST')(error)
    })
  const demo = isSandbox ? await makeDemo(demoParts, { dataDir: settings.dataDir, baseUrl }) : undefined
  app.requests.starting = false
  const worker = settings.worker
    ? startWorker({
        ...{ db: background, ledger, networks, settings, log, screening, changes },
        ...{ tracing, meter: metrics.worker },
        delivererOf: delivererOn(parts),
      })
    : undefined
  if (!settings.worker) changes.tellOthers(background, (err) => log.debug({ err }, NOT_TOLD))
  return {
    address,
    demo,
    async stop() {
      await stopListening(app.server, app.requests, settings.drainDelayMs)
      await app.close()
      await worker?.stop()
      await ledger.drain()
    },
  }
}

/** Returns the function that makes the deliverer of a part of the database, which uses the connections for deliveries. */
const delivererOn =
  ({ deliveries, masterKeys, settings, log, metrics, tracing }: Parts) =>
  (part: Part): Deliverer => {
    const { db } = partsOf(deliveries).find(({ name }) => name === part.name) ?? part
    const secrets = new WebhookSecrets(masterKeys)
    return new Deliverer({ db, secrets, settings, log, meter: metrics.deliveries, tracing })
  }

/**
 * Opens the networks, which sign only what was accepted and, where there is a screening endpoint, only what it allowed.
 * Throws `SettingsError` for refused settings.
 */
async function openPayouts(
  { settings, db, masterKeys, log, metrics }: Parts,
  macs: RowMacs,
): Promise<{ networks: Networks; screening: Screening | undefined }> {
  const screening = await openScreening(settings, () => Promise.resolve(masterKeys))
  if (screening !== undefined) {
    screening.endpoint.meter = metrics.screening
    screening.onForged = ({ customer_id, kind, subject }, objection) =>
      log.error({ customer_id, kind, subject }, `the screening of a payment was changed: ${objection}`)
  }
  // Acceptance is checked first: what is screened is then what was accepted.
  const networks = await networksOf(settings, db, log)
  return {
    networks: guardedNetworks(networks, { macs, screening, onObjection: logObjections(log) }),
    screening,
  }
}

/** Waits for the work. Throws when it takes longer than `ms`. */
async function within(ms: number, work: () => Promise<void>): Promise<void> {
  const late = pause(ms, undefined, { ref: false }).then(() => {
    throw new Error(`stopped with work under way, which did not end within ${ms} ms`)
  })
  await Promise.race([work(), late])
}

const METRICS_PORT = 9464

/** Serves the metrics. If the default port is in use, the service starts without metrics and logs a warning. */
async function openMetrics(
  { registry }: Metrics,
  { metricsHost: host, metricsPort }: Settings,
  log: Logger,
): Promise<MetricsServer | undefined> {
  try {
    const server = await serveMetrics(registry, { host, port: metricsPort ?? METRICS_PORT })
    log.info(`metrics at ${server.address}/metrics`)
    return server
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!PORT_ERRORS.has(code)) return blame('BURSAR_METRICS_HOST')(error as Error)
    if (metricsPort !== undefined) return blame('BURSAR_METRICS_PORT')(error as Error)
    log.warn(
      `port ${METRICS_PORT} is in use: metrics are not served; set BURSAR_METRICS_PORT to another port`,
    )
    return undefined
  }
}

/** The configured real networks and bank. A sandbox simulates all other networks and the bank. */
async function networksOf(settings: Settings, db: Database, log: Logger): Promise<Networks> {
  const real = await openNetworks(settings, db)
  await requireChains(real, db, log)
  const bank = await openBank(settings)
  const simulated: Networks =
    settings.mode === 'sandbox'
      ? simulatedNetworks(db, {
          confirmationMs: settings.simulatedConfirmationMs,
          holdMs: settings.simulatedHoldMs,
        })
      : new Map()
  const ofReal = [...real].map(([network, { adapter }]) => {
    return [network, routeBySigner(adapter, simulated.get(network))] as const
  })
  return new Map([...simulated, ...ofReal, ...(bank === undefined ? [] : [['WIRE', bank] as const])])
}

/** Most withdrawals for which the log reports that they were not accepted, each once. */
const OBJECTIONS_LOGGED_MAX = 10_000

/** Logs withdrawals that were not accepted, each once. */
function logObjections(log: Logger): OnObjection {
  const logged = new Set<string>()
  return ({ customer_id, transfer_id, network }, objection) => {
    if (logged.has(transfer_id) || logged.size >= OBJECTIONS_LOGGED_MAX) return
    logged.add(transfer_id)
    log.error({ customer_id, transfer_id, network }, `a withdrawal is ${NOT_ACCEPTED}: ${objection}`)
  }
}
