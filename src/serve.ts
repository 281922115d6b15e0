import { mkdir } from 'node:fs/promises'
import { isIP, type AddressInfo } from 'node:net'
import { pino, type Logger } from 'pino'
import { buildApp } from './app.ts'
import { openDatabase, type Database } from './db/database.ts'
import { EmbeddedPostgres } from './db/embedded-postgres.ts'
import { migrate } from './db/migrate.ts'
import type { SandboxCredentials } from './demo/credentials.ts'
import { demoRecords } from './demo/demo-records.ts'
import { makeDemo } from './demo/make-demo.ts'
import { Ledger } from './ledger/ledger.ts'
import { startSimulation } from './markets/simulate-prices.ts'
import type { Networks } from './networks/networks.ts'
import type { CryptoNetwork } from './assets/catalogue.ts'
import { configuredNetworks, type ConfiguredNetwork } from './networks/configured.ts'
import { simulatedNetworks } from './networks/simulated.ts'
import { blame, type Settings } from './settings.ts'
import { startWorker } from './worker.ts'

/** JSON lines on standard error: standard output is for people and for `--json`. */
export const openLog = (settings: Settings): Logger => pino({ level: settings.logLevel }, pino.destination(2))

/** The database that the settings name, or the embedded one, started; closing stops what was started. */
export async function connect(
  settings: Settings,
  log: Logger,
): Promise<{ db: Database; close: () => Promise<void> }> {
  let embedded: EmbeddedPostgres | undefined
  if (settings.databaseUrl === undefined) {
    await mkdir(settings.dataDir, { recursive: true }).catch(blame('BURSAR_DATA_DIR'))
    embedded = await EmbeddedPostgres.start({
      dataDir: settings.dataDir,
      log: (message) => log.info(message),
      // Nothing here can be done without it, and whoever runs this process should know.
      onLost: (error) => {
        log.fatal({ err: error }, 'the embedded PostgreSQL is gone')
        process.exit(1)
      },
    })
  }
  const db = openDatabase(settings.databaseUrl ?? embedded!.url, {
    max: settings.databaseConnections,
    onError: (error) => log.warn({ err: error }, 'an idle database connection was lost'),
  })
  const close = async () => {
    await db.end()
    await embedded?.stop()
  }
  try {
    await db.query('select').catch(blame('DATABASE_URL'))
    return { db, close }
  } catch (error) {
    await close()
    throw error
  }
}

export interface Service {
  /** The address that the API listens on. */
  address: string
  /** What was made for the demo, when this was its first start. */
  demo: SandboxCredentials | undefined
  /** Finishes what was accepted and stops, in order: API, worker, ledger, database. */
  close(): Promise<void>
}

const PORT_ERRORS = new Set<string | undefined>(['EADDRINUSE', 'EACCES'])

/** Starts the whole service: database, migrations, API, demo data, worker. */
export async function serve(settings: Settings, log: Logger): Promise<Service> {
  const { db, close: disconnect } = await connect(settings, log)
  try {
    const applied = await migrate(db)
    if (applied.length > 0) log.info({ applied }, 'migrated')
    await warnOfChangeableEntries(db, log)

    const ledger = new Ledger(db)
    const networks = await networksOf(settings, db)
    const port = settings.port === 0 ? await freePort(settings.host).catch(blame('HOST')) : settings.port
    const host = isIP(settings.host) === 6 ? `[${settings.host}]` : settings.host
    const baseUrl = settings.baseUrl ?? `http://${host}:${port}`
    const exampleRecords = async () => (settings.mode === 'sandbox' ? demoRecords(db) : undefined)
    const app = await buildApp({ db, ledger, networks, settings, baseUrl, log, exampleRecords })
    const address = await app
      .listen({ host: settings.host, port })
      .catch((error: NodeJS.ErrnoException) => blame(PORT_ERRORS.has(error.code) ? 'PORT' : 'HOST')(error))
    const demo =
      settings.mode === 'sandbox'
        ? await makeDemo({ db, ledger, networks }, { dataDir: settings.dataDir, baseUrl })
        : undefined
    const worker = settings.worker ? startWorker({ db, ledger, networks, settings, log }) : undefined
    const days = settings.simulatedPriceDays
    const simulates = settings.mode === 'sandbox' && settings.worker && days > 0
    const simulation = simulates ? startSimulation({ db, days, log }) : undefined
    return {
      address,
      demo,
      async close() {
        await app.close()
        await Promise.all([worker?.stop(), simulation?.stop()])
        await ledger.drain()
        await disconnect()
      },
    }
  } catch (error) {
    await disconnect()
    throw error
  }
}

/** The real networks that are configured; in the sandbox all others, and the bank, are simulated. */
async function networksOf(settings: Settings, db: Database): Promise<Networks> {
  const real = await openNetworks(settings, db)
  const simulated =
    settings.mode === 'sandbox'
      ? simulatedNetworks(db, {
          confirmationMs: settings.simulatedConfirmationMs,
          holdMs: settings.simulatedHoldMs,
        })
      : []
  return new Map([...simulated, ...[...real].map(([network, { adapter }]) => [network, adapter] as const)])
}

/** The networks of the file that the settings name. Throws `SettingsError` for what is wrong in it. */
export const openNetworks = async (
  settings: Settings,
  db: Database,
): Promise<ReadonlyMap<CryptoNetwork, ConfiguredNetwork>> =>
  settings.networksFile === undefined
    ? new Map()
    : configuredNetworks(settings.networksFile, process.env, db).catch(blame('BURSAR_NETWORKS_FILE'))

/** Entries are append-only by privilege, which a superuser does not feel, and a restore may have left out. */
async function warnOfChangeableEntries(db: Database, log: Logger): Promise<void> {
  const { rows } = await db.query<{ superuser: boolean; changeable: boolean }>(
    `select rolsuper as superuser, has_table_privilege('entries', 'update, delete, truncate') as changeable
     from pg_roles
     where rolname = current_user`,
  )
  const { superuser, changeable } = rows[0]!
  if (!changeable) return
  const [why, what] = superuser
    ? ['is a superuser', 'use an ordinary role']
    : ['may update or delete entries', 'docs/backup.md tells how to revoke that']
  log.warn(`the database role ${why}: nothing keeps it from changing ledger entries; ${what}`)
}

/** The base URL, which is the token issuer, must be known before the API listens. */
async function freePort(host: string): Promise<number> {
  const { createServer } = await import('node:net')
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
