import { readFile } from 'node:fs/promises'
import { checkConsole } from '../../access/console/files.ts'
import { checkOperators } from '../../access/operators/check-operators.ts'
import { checkClients, checkKeys } from '../../access/tokens/check-tokens.ts'
import { ExternalIssuer, keysAddress } from '../../access/tokens/external-issuer.ts'
import type { Problem } from '../../contract/problems.ts'
import { checkOwnSessions } from '../../db/own-sessions.ts'
import {
  BACKUP_GUIDE,
  checkBackups,
  checkClock,
  checkHorizon,
  checkRole,
  checkSchema,
  checkServer,
} from '../../db/check-database.ts'
import { checkNodes } from '../../db/check-nodes.ts'
import { openDatabase, type Database } from '../../db/database.ts'
import { findEmbedded } from '../../db/embedded/server.ts'
import { schemaVersions } from '../../db/migrate.ts'
import { checkWebhooks } from '../../deliveries/check-webhooks.ts'
import { failed, ok, orElse, warn, type Finding } from '../../finding.ts'
import { checkPolicies } from '../../governance/policy/check-policies.ts'
import { checkLimits } from '../../http/check-limits.ts'
import { plainTransports } from '../../http/transport-security.ts'
import { findMasterKeys } from '../../keys/master-keys.ts'
import { checkFreezes } from '../../money/records/freezes.ts'
import { checkDataFolder, checkNode, checkUser, describeEmbedded } from '../../program/check-machine.ts'
import { engines } from '../../package.ts'
import { holdPort } from '../../ports.ts'
import { checkMode, checkVerify } from '../../program/deployment.ts'
import { checkWorker } from '../../rails/payouts/check-worker.ts'
import { checkNetworks } from '../../rails/wallets/configured-networks.ts'
import { checkScreening } from '../../rails/screening/check-screening.ts'
import { checkBank } from '../../rails/wires/bank.ts'
import { checkStatements } from '../../resources/statements/check-statements.ts'
import type { Settings } from '../../settings.ts'
import { checkPartitions } from '../../upkeep/retention/partition-status.ts'

/** The checks of `bursar doctor`. Each check's code is beside the code it checks. A check starts and changes nothing. */

const ANSWER_MS_MAX = 5_000
const STATEMENT_MS_MAX = 10_000

interface Deployment {
  settings: Settings
  url: string | undefined
  db: Database | undefined
  /** The same database, if its schema is up to date or newer. */
  migrated: Database | undefined
}

type Found = Promise<Finding | Finding[]> | Finding | Finding[]
type Check = [name: string, advice: string, work: (deployment: Deployment) => Found]

/** The work of a check that needs the database to answer. Another check reports a database that does not. */
const inDatabase =
  (work: (db: Database, deployment: Deployment) => Found): Check[2] =>
  (deployment) =>
    deployment.db === undefined ? [] : work(deployment.db, deployment)

/** The work of a check that needs the newest schema. */
const inSchema = (work: (db: Database, settings: Settings) => Found) =>
  inDatabase((_, { migrated, settings }) =>
    migrated === undefined ? ok('not checked until the schema is up to date') : work(migrated, settings),
  )

const CHECKS: Check[] = [
  ['schema', 'bursar migrate', inDatabase(checkSchema)],
  ['mode', 'set BURSAR_MODE to the mode of the database', inSchema(checkMode)],
  ['database role', 'bursar migrate', inDatabase(checkRole)],
  ['verify', 'bursar verify', inSchema(checkVerify)],
  ['clients', 'bursar client list', inSchema(checkClients)],
  ['sessions', 'see docs/guides/going-live.md', inDatabase(checkOwnSessions)],
  ['clock', 'synchronise both clocks with NTP', inDatabase(checkClock)],
  ['nodes', 'see docs/guides/scale-out.md', inDatabase((db, { url }) => checkNodes(db, url!))],
  ['ascending lists', 'see docs/guides/database-roles.md#ascending-lists', inDatabase(checkHorizon)],
  ['worker', 'bursar serve', inSchema((db, { worker }) => checkWorker(db, worker))],
  ['freezes', 'bursar migrate', inSchema(async (db, s) => checkFreezes(db, await findMasterKeys(s)))],
  ['partitions', 'bursar migrate', inSchema(checkPartitions)],
  [
    'webhooks',
    'bursar migrate',
    inDatabase((_, { migrated, settings }) => checkWebhooks(migrated, settings)),
  ],
  [
    'screening',
    'correct the BURSAR_SCREENING_ settings (docs/guides/screening.md)',
    inDatabase((_, { migrated, settings }) => checkScreening(migrated, settings)),
  ],
  ['statements', 'bursar statements list', inSchema(checkStatements)],
  ['operators', 'see docs/reference/operators.md', inSchema(checkOperators)],
  [
    'policies',
    'see docs/guides/backup.md#the-master-key',
    inSchema(async (db, settings) => checkPolicies(db, await findMasterKeys(settings))),
  ],
  ['backups', BACKUP_GUIDE, checkLogOf],
  [
    'keys',
    'correct BURSAR_MASTER_KEY_FILE (docs/guides/backup.md)',
    ({ migrated, settings }) => checkKeys(settings, migrated),
  ],
  [
    'networks',
    'correct the file that BURSAR_NETWORKS_FILE names (docs/guides/networks.md)',
    ({ db, settings }) => checkNetworks(db, settings),
  ],
  [
    'bank',
    'correct the file that BURSAR_BANK_FILE names (docs/guides/live-without-a-bank-interface.md)',
    ({ migrated, settings }) => checkBank(migrated, settings),
  ],
  ['transport', 'use TLS', checkTransport],
  [
    'limits',
    'correct the setting',
    ({ settings }) => (settings.mode === 'live' ? checkLimits(settings) : []),
  ],
  ['console', 'see docs/guides/console.md', ({ settings }) => checkConsole(settings)],
  ['port', 'set HOST and PORT to a free address of this machine', ({ settings }) => checkPort(settings)],
  [
    'tokens',
    'correct BURSAR_OAUTH_ISSUER or BURSAR_BASE_URL, or start the issuer',
    ({ settings }) => checkIssuer(settings),
  ],
]

export type Checked = Finding & { check: string }

/** Runs every check. A check that throws becomes a FAIL, and the others still run. */
export async function examine(settings: Settings, tokenFile?: string): Promise<Checked[]> {
  const findings: Checked[] = []
  const run = async (check: string, advice: string, work: () => Found) => {
    const found = await (async () => work())().catch((error: unknown) => failed(messageOf(error), advice))
    findings.push(...[found].flat().map((finding) => ({ check, ...finding })))
  }
  await run('node', 'install a newer Node', () => checkNode(engines.node))
  await run('user', 'run Bursar as an ordinary user', () => checkUser(settings))
  await run('data folder', 'set BURSAR_DATA_DIR to a folder that this user may write', () =>
    checkDataFolder(settings),
  )
  const deployment: Deployment = { settings, url: settings.databaseUrl, db: undefined, migrated: undefined }
  if (deployment.url === undefined)
    await run('database', 'start Bursar as the user that the data belongs to', async () => {
      const embedded = await findEmbedded(settings.dataDir)
      deployment.url = embedded?.url
      return describeEmbedded(settings, embedded)
    })
  const db =
    deployment.url === undefined
      ? undefined
      : openDatabase(deployment.url, { ...POOL, sandbox: settings.mode === 'sandbox' })
  try {
    if (db !== undefined)
      await run('database', 'start it, or correct DATABASE_URL', async () => {
        const found = await checkServer(db)
        deployment.db = db
        const { current, known } = await schemaVersions(db)
        if (current >= known) deployment.migrated = db
        return found
      })
    for (const [name, advice, work] of CHECKS) await run(name, advice, () => work(deployment))
    if (tokenFile !== undefined)
      await run('token', 'see docs/guides/identity-provider.md', () => checkToken(settings, tokenFile))
  } finally {
    await db?.end()
  }
  return findings
}

const POOL = {
  max: 2,
  limits: { statementMs: STATEMENT_MS_MAX, idleInTransactionMs: STATEMENT_MS_MAX },
  onError: () => undefined,
}

const messageOf = (error: unknown): string => {
  const { message, cause, errors } = error as Error & {
    errors?: Error[]
    cause?: { message?: string; code?: string }
  }
  return errors?.[0]?.message ?? cause?.code ?? cause?.message ?? message
}

/** Whether the write-ahead log of a live database is archived. Another check reports a database that does not answer. */
function checkLogOf({ settings, db }: Deployment): Found {
  if (settings.mode === 'sandbox') return []
  if (settings.databaseUrl === undefined)
    return warn(
      'the embedded PostgreSQL does not archive its log: a disaster loses everything since the last copy of its folder',
      'use your own PostgreSQL server; docs/guides/backup.md#the-embedded-postgresql says how to copy the folder',
    )
  return db === undefined ? [] : checkBackups(db)
}

function checkTransport({ settings }: Deployment): Finding[] {
  const isSandbox = settings.mode === 'sandbox'
  return orElse(
    plainTransports(settings),
    isSandbox ? 'a sandbox needs no TLS' : 'connections to other machines are encrypted',
  )
}

/** The URL to reach this machine's own service at. */
function addressOf({ host, port }: Settings): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

const get = (url: string) => fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })

async function checkPort(settings: Settings): Promise<Finding> {
  const { host, port } = settings
  if (port === 0) return ok('the service picks a free port')
  const released = holdPort(port, host).then((release) => release())
  const refused = await released.catch((error: NodeJS.ErrnoException) => error)
  if (!refused) return ok(`${host}:${port} is free: Bursar is not running here`)
  if (refused.code !== 'EADDRINUSE') throw refused
  const live = await get(`${addressOf(settings)}/health/live`)
    .then((reply) => reply.json() as Promise<{ status?: string }>)
    .catch(() => undefined)
  if (live?.status !== 'live')
    return failed(`${host}:${port} is in use by another program`, 'stop that program, or set PORT')
  const ready = await get(`${addressOf(settings)}/health/ready`)
  return ready.ok
    ? ok(`Bursar answers at ${host}:${port}`)
    : failed(`Bursar is running at ${host}:${port} but not ready`, 'check its log and the database')
}

/** Whether the token issuer answers with its metadata and its keys. */
async function checkIssuer(settings: Settings): Promise<Finding> {
  const external = settings.oauthIssuer
  const listens = addressOf(settings)
  if (external === undefined && settings.baseUrl === undefined) {
    const found = await get(`${listens}/.well-known/oauth-authorization-server`).catch(() => undefined)
    return found?.ok === true ? ok(`issued by ${listens}`) : ok('Bursar issues tokens while it runs')
  }
  const expected = external ?? settings.baseUrl!
  const advice = `correct ${external === undefined ? 'BURSAR_BASE_URL' : 'BURSAR_OAUTH_ISSUER'}, or start the issuer`
  const found = await keysAddress(expected).catch((error: Error) => error)
  if (found instanceof Error) {
    const says = `${expected} does not answer with its metadata: ${found.message}`
    // A WARN for Bursar itself, which may not be running yet. A FAIL for an external issuer: without its keys, every
    // request is refused.
    return external === undefined ? warn(says, advice) : failed(says, advice)
  }
  const keys = await get(found)
  return keys.ok ? ok(`issued by ${expected}`) : failed(`${found} answers ${keys.status}`, advice)
}

/** What a token of the external issuer says, or why it is refused. */
async function checkToken(settings: Settings, file: string): Promise<Finding> {
  if (settings.oauthIssuer === undefined) throw new Error('BURSAR_OAUTH_ISSUER is not set')
  const issuer = new ExternalIssuer(settings.oauthIssuer, settings.baseUrl ?? addressOf(settings), settings)
  const token = (await readFile(file, 'utf8')).trim()
  const { customerId, clientId, scopes } = await issuer.verify(token).catch((refusal: Problem) => {
    const { detail, cause } = refusal
    throw cause instanceof Error ? new Error(`${detail}: ${cause.message}`) : refusal
  })
  return ok(`of customer ${customerId}, client ${clientId}, scopes ${scopes.join(' ') || 'none'}`)
}
