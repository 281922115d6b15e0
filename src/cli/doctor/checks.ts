import { examineCluster } from './cluster.ts'
import { examineConsole } from './console.ts'
import { existsSync } from 'node:fs'
import { access, constants, readFile, stat } from 'node:fs/promises'
import { createServer, isIP } from 'node:net'
import { dirname } from 'node:path'
import { openDatabase, type Database } from '../../db/database.ts'
import { findEmbedded } from '../../db/embedded/server.ts'
import { readHorizon, type Horizon } from '../../db/horizon.ts'
import { schemaVersions } from '../../db/migrate.ts'
import { faultsOfRole } from '../../db/privileges.ts'
import { credentialsFile } from '../../program/demo/credentials.ts'
import { issuerOf, otherMode, readStamp, sandboxTraces, wasSandbox } from '../../program/deployment.ts'
import { CONNECTIONS_FEW, connectionsMax, descriptorsMax } from '../../http/connections.ts'
import { SANDBOX_SCOPES } from '../../contract/scopes.ts'
import { faultOfAddress, targetRules } from '../../deliveries/targets.ts'
import { findMasterKeys, HOW_TO_MAKE_ONE, masterKeyFile } from '../../keys/master-keys.ts'
import { arePolicies, Policies } from '../../governance/policy/policy.ts'
import { describeFreeze, selectFreezes } from '../../money/records/freezes.ts'
import { formerWalletsIn, networkReports, type NetworkReport } from '../../chains/network-status.ts'
import { listSigningKeys } from '../../access/tokens/signing-keys.ts'
import { openIdProvider } from '../../access/operators/sign-in-with-openid.ts'
import { summariseOperators } from '../../access/operators/summarise-operators.ts'
import { partitionStatus, STRAY_COUNTED_MAX } from '../../upkeep/retention/partition-status.ts'
import { openBank, openNetworks } from '../../program/serve.ts'
import type { Settings } from '../../settings.ts'
import { readScreeningSettings } from '../../rails/screening/open-screening.ts'
import { screenedSince } from '../../rails/screening/requirement.ts'
import { listScreened, SCREENED_MAX } from '../../rails/screening/screen-payments.ts'
import { summariseOpenWires } from '../../rails/wires/outgoing-wires.ts'
import { isHere, plainTransports } from '../../http/transport-security.ts'
import { PAYOUT_TYPES } from '../../money/records/treasury.ts'

/** The checks of `bursar doctor`. They start nothing and change nothing. */

export interface Finding {
  check: string
  result: 'OK' | 'WARN' | 'FAIL'
  says: string
  /** How to fix it. */
  advice?: string
}

type Verdict = Omit<Finding, 'check'>
const ok = (says: string): Verdict => ({ result: 'OK', says })
const warn = (says: string, advice: string): Verdict => ({ result: 'WARN', says, advice })
const failed = (says: string, advice: string): Verdict => ({ result: 'FAIL', says, advice })

const ANSWER_MS_MAX = 5_000
const STATEMENT_MS_MAX = 10_000
const POSTGRES_VERSION_MIN = 15
const SKEW_MS_WARN = 1_000
/** The clock tolerance of access tokens (oauth/access-tokens.ts). */
const SKEW_MS_MAX = 5_000
const OVERDUE_SECONDS_WARN = 30
const OVERDUE_SECONDS_MAX = 300

const messageOf = (error: unknown): string => {
  const { message, cause, errors } = error as Error & {
    errors?: Error[]
    cause?: { message?: string; code?: string }
  }
  return errors?.[0]?.message ?? cause?.code ?? cause?.message ?? message
}

/** Runs every check. A check that throws becomes a FAIL, and the others still run. */
export async function examine(settings: Settings, version: string): Promise<Finding[]> {
  const findings: Finding[] = []
  const runCheck = async (check: string, advice: string, work: () => Promise<Verdict | Verdict[]>) => {
    const verdicts = await work().catch((error: unknown) => failed(messageOf(error), advice))
    findings.push(...[verdicts].flat().map((verdict) => ({ check, ...verdict })))
  }
  await runCheck('node', 'install a newer Node', async () => nodeVersion(process.versions.node, version))
  await runCheck('user', 'run Bursar as an ordinary user', async () => user(settings))
  await runCheck('data folder', 'set BURSAR_DATA_DIR to a folder that this user may write', () =>
    dataFolder(settings),
  )

  let url = settings.databaseUrl
  if (url === undefined) {
    await runCheck('database', 'start Bursar as the user that the data belongs to', async () => {
      const embedded = await findEmbedded(settings.dataDir)
      url = embedded?.url
      return embeddedServer(settings, embedded)
    })
  }
  const db = url === undefined ? undefined : openDatabase(url, doctorPool)
  try {
    let answers = false
    if (db !== undefined) {
      await runCheck('database', 'start it, or correct DATABASE_URL', async () => {
        const verdicts = await database(db)
        answers = true
        return verdicts
      })
    }
    if (db !== undefined && answers) {
      await runCheck('schema', 'bursar migrate', () => schema(db))
      await runCheck('mode', 'set BURSAR_MODE to the mode of the database', () => mode(db, settings))
      await runCheck('database role', 'bursar migrate', () => databaseRole(db))
      await runCheck('clients', 'bursar client list', () => clients(db, settings))
      await runCheck('clock', 'synchronise both clocks with NTP', () => clock(db))
      await runCheck('nodes', 'see docs/guides/scale-out.md', () => examineCluster(db, url!))
      await runCheck('ascending lists', DATABASE_ROLES_GUIDE, async () => judgeHorizon(await readHorizon(db)))
      await runCheck('worker', 'bursar serve', () => worker(db, settings))
      await runCheck('freezes', 'bursar migrate', () => frozen(db))
      await runCheck('partitions', 'bursar migrate', () => partitions(db))
      await runCheck('webhooks', 'bursar migrate', () => webhooks(db, settings))
      await runCheck('screening', 'correct the BURSAR_SCREENING_ settings (docs/guides/screening.md)', () =>
        screening(db, settings),
      )
      await runCheck('operators', OPERATORS_REFERENCE, () => operators(db, settings))
      await runCheck('policies', 'see docs/guides/backup.md#the-master-key', () => policies(db, settings))
    }
    if (settings.mode === 'live' && (settings.databaseUrl === undefined || answers))
      await runCheck('backups', BACKUP_GUIDE, () => backups(settings, db))
    await runCheck('keys', 'correct BURSAR_MASTER_KEY_FILE (docs/guides/backup.md)', () =>
      keys(settings, answers ? db : undefined),
    )
    await runCheck(
      'networks',
      'correct the file that BURSAR_NETWORKS_FILE names (docs/guides/networks.md)',
      () => networks(settings, answers ? db : undefined),
    )
    await runCheck(
      'bank',
      'correct the file that BURSAR_BANK_FILE names (docs/guides/live-without-a-bank-interface.md)',
      () => bank(settings, answers ? db : undefined),
    )
  } finally {
    await db?.end()
  }
  await runCheck('transport', 'use TLS', async () => transport(settings))
  if (settings.mode === 'live') await runCheck('limits', 'correct the setting', async () => limits(settings))
  await runCheck('console', 'see docs/guides/console.md', async () => examineConsole(settings))
  await runCheck('port', 'set HOST and PORT to a free address of this machine', () => port(settings))
  await runCheck('tokens', 'correct BURSAR_OAUTH_ISSUER or BURSAR_BASE_URL, or start the issuer', () =>
    issuer(settings),
  )
  return findings
}

function embeddedServer(
  { mode }: Settings,
  embedded: { url?: string | undefined; data: string } | undefined,
): Verdict {
  const says =
    embedded === undefined
      ? 'there is no embedded PostgreSQL yet: bursar serve creates it'
      : embedded.url === undefined
        ? `the embedded PostgreSQL is stopped, bursar serve starts it; its data is in ${embedded.data}`
        : `the embedded PostgreSQL is running, its data is in ${embedded.data}`
  return mode === 'sandbox'
    ? ok(says)
    : warn(`${says}; it is meant for sandboxes`, 'set DATABASE_URL to your own PostgreSQL server')
}

const doctorPool = {
  max: 2,
  limits: { statementMs: STATEMENT_MS_MAX, idleInTransactionMs: STATEMENT_MS_MAX },
  onError: () => undefined,
}

function nodeVersion(running: string, needed: string): Verdict {
  const [wanted, has] = [needed.replace(/[^\d.]/g, ''), running].map((text) => text.split('.').map(Number))
  const [major = 0, minor = 0] = has!
  const older = major < wanted![0]! || (major === wanted![0] && minor < (wanted![1] ?? 0))
  return older ? failed(`${running} is too old`, `install Node ${needed}`) : ok(running)
}

/** Warns when others than this process may read a file with a secret. */
async function secretFile(path: string): Promise<Verdict[]> {
  const user = { uid: process.getuid!(), groups: [process.getgid!(), ...process.getgroups!()] }
  const advice = remedyForReaders(path, await stat(path), user)
  return advice === undefined ? [] : [warn(`other users may read ${path}`, advice)]
}

/**
 * The command that takes a file from other readers and leaves it to the user of this process; undefined when nobody else may
 * read it. A file of another owner, such as root, reaches the service through its group.
 */
export function remedyForReaders(
  path: string,
  file: { mode: number; uid: number; gid: number },
  user: { uid: number; groups: readonly number[] },
): string | undefined {
  if (file.uid === user.uid && user.uid !== 0)
    return (file.mode & 0o077) === 0 ? undefined : `chmod 600 ${path}`
  if ((file.mode & 0o007) === 0) return undefined
  const byGroup = user.uid === 0 || ((file.mode & 0o040) !== 0 && user.groups.includes(file.gid))
  // Without the right of everybody, this user could not read it either.
  return byGroup ? `chmod o= ${path}` : `chown ${user.uid} ${path} && chmod 600 ${path}`
}

async function dataFolder({ dataDir, databaseUrl, mode }: Settings): Promise<Verdict[]> {
  const used =
    databaseUrl === undefined
      ? 'data and credentials'
      : mode === 'sandbox'
        ? 'the demo credentials'
        : undefined
  if (used === undefined)
    return [ok(`${dataDir} is not used: there is a DATABASE_URL, and no demo in live mode`)]
  let folder = dataDir
  while (!existsSync(folder)) folder = dirname(folder)
  if (!(await stat(folder)).isDirectory())
    return [failed(`${folder} is not a folder`, 'set BURSAR_DATA_DIR to a folder')]
  await access(folder, constants.W_OK)
  const found = [
    ok(folder === dataDir ? `${dataDir}, for ${used}` : `${dataDir} will be created, for ${used}`),
  ]
  const file = credentialsFile(dataDir)
  if (existsSync(file)) found.push(...(await secretFile(file)))
  const embedded = await findEmbedded(dataDir)
  if (databaseUrl === undefined && embedded !== undefined && ((await stat(embedded.data)).mode & 0o027) !== 0)
    found.push(
      failed(
        `other users may read ${embedded.data}: PostgreSQL refuses to start`,
        `chmod 700 ${embedded.data}`,
      ),
    )
  return found
}

async function database(db: Database): Promise<Verdict> {
  const { rows } = await db.query<{
    version: string
    number: number
    role: string
    name: string
  }>(
    `select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
            current_user as role, current_database() as name`,
  )
  const { version, number, role, name } = rows[0]!
  const about = `PostgreSQL ${version} answers, database ${name}, role ${role}`
  return number < POSTGRES_VERSION_MIN * 10_000
    ? failed(`${about}: too old`, `use PostgreSQL ${POSTGRES_VERSION_MIN} or newer`)
    : ok(about)
}

async function schema(db: Database): Promise<Verdict> {
  const { current, known } = await schemaVersions(db)
  if (current === 0)
    return warn('there is no schema yet', 'bursar migrate creates it, and so does bursar serve')
  if (current < known) return warn(`version ${current}, this program needs ${known}`, 'bursar migrate')
  if (current > known)
    return failed(`version ${current}, this program only knows ${known}`, 'update this program')
  return ok(`version ${current}, up to date`)
}

/** Whether the service's role has exactly the privileges it needs (src/db/privileges.ts). */
async function databaseRole(db: Database): Promise<Verdict | Verdict[]> {
  const { current, known } = await schemaVersions(db)
  const faults = await faultsOfRole(db)
  // Migrations grant privileges, so missing ones are no fault while migrations are pending.
  const found = current < known ? faults.filter(({ kind }) => kind === 'EXCESS') : faults
  if (found.length === 0) return ok('it owns no table, and cannot change ledger entries')
  return found.map(({ kind, says, advice }) =>
    kind === 'MISSING' ? failed(says, advice) : warn(says, advice),
  )
}

/** Whether the stamp of the database agrees with the mode and the issuer, as `serve` requires. */
async function mode(db: Database, settings: Settings): Promise<Verdict[]> {
  const { current, known } = await schemaVersions(db)
  if (current !== known)
    return [ok(`${settings.mode}; not compared with the database until its schema is up to date`)]
  const stamp = await readStamp(db)
  const elsewhere = 'set BURSAR_MODE to the mode of the database, or name another database'
  if (stamp !== undefined && stamp.mode !== settings.mode) return [failed(otherMode(stamp), elsewhere)]
  if (settings.mode === 'sandbox')
    return [ok(stamp === undefined ? 'sandbox; the database is not stamped yet' : 'sandbox, as the database')]
  const [trace] = stamp === undefined ? await sandboxTraces(db) : []
  if (trace !== undefined) return [failed(wasSandbox(trace), elsewhere)]
  const issuer = issuerOf(settings)
  if (issuer === undefined)
    return [
      warn(
        'live, but no token issuer is set, so the database cannot be bound to it',
        'set BURSAR_BASE_URL to the address that clients use',
      ),
    ]
  if (stamp?.issuer != null && stamp.issuer !== issuer)
    return [
      failed(
        `the database belongs to the token issuer ${stamp.issuer}, the settings name ${issuer}`,
        'correct BURSAR_BASE_URL or BURSAR_OAUTH_ISSUER, or run bursar deployment change-issuer',
      ),
    ]
  return [ok(`live, with the token issuer ${issuer}`)]
}

async function keys(settings: Settings, db: Database | undefined): Promise<Verdict[]> {
  const masterKeys = await findMasterKeys(settings)
  const { mode, masterKeyFile: path, masterKey, dataDir } = settings
  if (masterKeys === undefined) {
    return mode === 'live'
      ? [failed('live mode needs a master key, and none is set', `create one: ${HOW_TO_MAKE_ONE}`)]
      : [ok('the sandbox generates its master key at the first start')]
  }
  const file = masterKey === undefined ? (path ?? masterKeyFile(dataDir)) : undefined
  const found = [ok(`master key ${masterKeys.current.id}${file === undefined ? '' : `, in ${file}`}`)]
  if (file !== undefined) found.push(...(await secretFile(file)))
  if (db === undefined || (await schemaVersions(db)).current === 0) return found
  for (const { id, status, master_key_id } of await listSigningKeys(db)) {
    if (status === 'RETIRED' || (master_key_id !== null && masterKeys.find(master_key_id) !== undefined))
      continue
    const says = `signing key ${id} is encrypted with master key ${master_key_id ?? 'unknown'}, which is not set`
    found.push(failed(says, 'add that master key on a line below the current one (docs/guides/backup.md)'))
  }
  return found
}

/** Most policies that cannot be trusted that are listed. */
const POLICIES_TOLD_MAX = 5

/** Whether the newest version of each policy is what was accepted: the payments of its customer are refused otherwise. */
async function policies(db: Database, settings: Settings): Promise<Verdict[]> {
  const { current, known } = await schemaVersions(db)
  // An older schema may not have this table; the check `schema` reports that.
  if (current < known) return [ok('not checked until the schema is up to date')]
  const masterKeys = await findMasterKeys(settings)
  if (masterKeys === undefined) {
    if (!(await arePolicies(db))) return [ok('no customer has a policy')]
    const says = 'there are policies, and no master key to check them with: their customers pay nothing'
    return [failed(says, 'set BURSAR_MASTER_KEY_FILE (docs/guides/backup.md)')]
  }
  const faults: Verdict[] = []
  let [count, untrusted] = [0, 0]
  for await (const { customer_id, version, objection } of new Policies(masterKeys).newestOfAll(db)) {
    count += 1
    if (objection === undefined) continue
    untrusted += 1
    if (untrusted > POLICIES_TOLD_MAX) continue
    const says = `version ${version} of the policy of customer ${customer_id} cannot be trusted, so it pays nothing: ${objection}`
    faults.push(failed(says, UNTRUSTED_ADVICE))
  }
  if (untrusted > POLICIES_TOLD_MAX)
    faults.push(failed(`${untrusted - POLICIES_TOLD_MAX} more policies cannot be trusted`, UNTRUSTED_ADVICE))
  if (faults.length > 0) return faults
  return [ok(count === 0 ? 'no customer has a policy' : `${count} can be trusted`)]
}

const OPERATORS_REFERENCE = 'see docs/reference/operators.md'

/** Operators who cannot sign in as configured, and a platform that nobody administers. */
async function operators(db: Database, settings: Settings): Promise<Verdict[]> {
  const { current, known } = await schemaVersions(db)
  // An older schema may not have these tables; the check `schema` reports that.
  if (current < known) return [ok('not checked until the schema is up to date')]
  const { baseUrl, openidIssuer } = settings
  const found: Verdict[] = []
  try {
    openIdProvider(settings, baseUrl ?? 'http://localhost')
  } catch (error) {
    found.push(failed(messageOf(error), 'set all of the BURSAR_OPENID_ settings, or none'))
  }
  const { operators: count, admins, passkeys, elsewhere } = await summariseOperators(db, openidIssuer)
  if (count > 0 && admins === 0)
    found.push(warn(`none of ${count} operators is an ADMIN`, 'bursar operator role <id> ADMIN'))
  const isNamed = baseUrl !== undefined && isIP(new URL(baseUrl).hostname.replaceAll(/[[\]]/g, '')) === 0
  if (passkeys > 0 && !isNamed)
    found.push(
      warn(
        `${passkeys} passkeys cannot sign in: BURSAR_BASE_URL ${baseUrl === undefined ? 'is not set' : 'names an address'}`,
        'set BURSAR_BASE_URL to the host name that they were made for',
      ),
    )
  if (elsewhere > 0)
    found.push(
      warn(
        `${elsewhere} operators have accounts at another OpenID provider than BURSAR_OPENID_ISSUER`,
        'set BURSAR_OPENID_ISSUER to their provider, or give them a link: bursar operator link',
      ),
    )
  if (found.length > 0) return found
  return [ok(count === 0 ? 'there are none' : `${count}, of whom ${admins} are ADMIN`)]
}

const UNTRUSTED_ADVICE =
  'add the master key that it needs; or look at it with bursar policy show, then bursar policy set --replace-untrusted'

/** Live mode must not run as root: an attacker who takes over the process would own the machine. */
function user({ mode }: Settings): Verdict {
  const isRoot = process.getuid?.() === 0
  if (!isRoot) return ok('not root')
  if (mode === 'sandbox') return ok('root: acceptable for a sandbox, a WARN in live mode')
  return warn(
    'this process runs as root',
    'run bursar serve as an ordinary user (docs/guides/container.md does)',
  )
}

/** Whether clients of a live service have scopes of sandbox operations. */
async function clients(db: Database, settings: Settings): Promise<Verdict[]> {
  const { current } = await schemaVersions(db)
  if (current === 0 || settings.mode === 'sandbox') return []
  const { rows } = await db.query<{ id: string }>(
    'select id from api_clients where disabled_at is null and scopes && $1::text[] order by id limit 10',
    [SANDBOX_SCOPES],
  )
  if (rows.length === 0) return [ok('no client has a sandbox scope')]
  const ids = rows.map(({ id }) => id).join(', ')
  return [
    warn(
      `clients with sandbox scopes (${SANDBOX_SCOPES.join(', ')}): ${ids}`,
      'replace them with bursar client create, then bursar client disable',
    ),
  ]
}

async function clock(db: Database): Promise<Verdict> {
  const sentAt = Date.now()
  const { rows } = await db.query<{ ms: string }>('select extract(epoch from clock_timestamp()) * 1000 as ms')
  const skewMs = Math.round(Number(rows[0]!.ms) - (sentAt + Date.now()) / 2)
  const says = `the clocks of this machine and of the database are ${Math.abs(skewMs)} ms apart`
  const advice = 'synchronise both clocks with NTP'
  if (Math.abs(skewMs) > SKEW_MS_MAX) return failed(`${says}: tokens are refused`, advice)
  return Math.abs(skewMs) > SKEW_MS_WARN ? warn(says, advice) : ok(says)
}

const DATABASE_ROLES_GUIDE = 'see docs/guides/database-roles.md#ascending-lists'
const HORIZON_SECONDS_WARN = 60

/** Judges whether ascending lists reach the present: they end where the oldest transaction under way began. */
export function judgeHorizon({ micros, text, readAt }: Horizon): Verdict {
  const seconds = Math.round((readAt.micros - micros) / 1_000_000)
  return seconds > HORIZON_SECONDS_WARN
    ? warn(
        `ascending lists and lists of events end ${seconds} s ago, webhooks go on: a transaction has been open since ${text}`,
        'find it: select pid, application_name, query from pg_stat_activity where datname = current_database() order by xact_start',
      )
    : ok('they reach the present')
}

const BACKUP_GUIDE = 'see docs/guides/backup.md#log-archiving'

/** Whether the server archives its log: without that, a disaster loses all transfers since the last dump. */
async function backups(settings: Settings, db: Database | undefined): Promise<Verdict> {
  if (settings.databaseUrl === undefined || db === undefined)
    return warn(
      'the embedded PostgreSQL does not archive its log: a disaster loses everything since the last copy of its folder',
      'use your own PostgreSQL server; docs/guides/backup.md#the-embedded-postgresql says how to copy the folder',
    )
  const { rows } = await db.query<LogArchiving>(`
    select current_setting('archive_mode') as archive_mode, last_archived_time as archived_at,
           last_failed_time as failed_at, coalesce(last_failed_time > last_archived_time, true) as failed_last
    from pg_stat_archiver`)
  return judgeBackups(rows[0]!)
}

interface LogArchiving {
  archive_mode: string
  archived_at: string | null
  failed_at: string | null
  /** Whether the last attempt failed. Meaningful with `failed_at` only. */
  failed_last: boolean
}

/** Judges whether the server archives its log. Other ways to copy it, such as a standby, are not visible here. */
export function judgeBackups({ archive_mode, archived_at, failed_at, failed_last }: LogArchiving): Verdict {
  if (archive_mode === 'off')
    return warn(
      'archive_mode is off: unless something else copies the log, a disaster loses everything since the last dump',
      BACKUP_GUIDE,
    )
  if (failed_at !== null && failed_last)
    return warn(`the log is not archived since a failure at ${failed_at}`, 'see the log of PostgreSQL')
  if (archived_at === null)
    return warn(`archive_mode is ${archive_mode}, but nothing has been archived yet`, BACKUP_GUIDE)
  return ok(`the log is archived, last at ${archived_at}`)
}

/** Counts the work that is due and waits only for a worker. */
const DUE = `
  select count(*)::integer as count, coalesce(extract(epoch from clock_timestamp() - min(due_at)), 0)::integer as seconds
  from (
    select due_at from outgoing_transfers where due_at < clock_timestamp() and waiting_code is null
    union all
    select t.created_at from transfers t
    where t.status = 'PENDING' and t.type in ${PAYOUT_TYPES}
      and not exists (select 1 from outgoing_transfers b where b.customer_id = t.customer_id and b.transfer_id = t.id)
    union all
    select created_at from orchestrations o
    where status = 'PROCESSING' and destination_transfer_id is null
      and not exists (
        select 1 from customer_freezes f
        where f.customer_id = o.customer_id and f.subject in (o.customer_id, o.profile_id) and f.lifted_at is null)
  ) due`

async function worker(db: Database, settings: Settings): Promise<Verdict> {
  const { current } = await schemaVersions(db)
  if (current === 0) return ok('there is no work')
  const { rows } = await db.query<{ count: number; seconds: number }>(DUE)
  const { count, seconds } = rows[0]!
  const advice = settings.worker
    ? 'run bursar serve, and check its log'
    : 'run bursar serve with BURSAR_WORKER=true on one machine'
  if (seconds > OVERDUE_SECONDS_MAX)
    return failed(`${count} items overdue by ${seconds} s: no worker is running`, advice)
  if (seconds > OVERDUE_SECONDS_WARN) return warn(`${count} items overdue by ${seconds} s`, advice)
  return ok(count === 0 ? 'no work is due' : `${count} items due for ${seconds} s`)
}

/** Most freezes that are listed. */
const FREEZES_TOLD_MAX = 5

async function frozen(db: Database): Promise<Verdict[]> {
  const { current, known } = await schemaVersions(db)
  // An older schema may not have this table; the check `schema` reports that.
  if (current < known) return [ok('nothing is frozen')]
  const freezes = await selectFreezes(db)
  if (freezes.length === 0) return [ok('nothing is frozen')]
  const advice = 'bursar freeze list; bursar unfreeze, once the cause is known'
  const told = freezes
    .slice(0, FREEZES_TOLD_MAX)
    .map((one) => warn(`${describeFreeze(one)} (since ${one.created_at})`, advice))
  const more = freezes.length - told.length
  return more === 0 ? told : [...told, warn(`${more} more freezes`, advice)]
}

const MAKES_PARTITIONS =
  'run bursar serve with BURSAR_WORKER=true, and look for "weekly partitions" in its log (docs/guides/retention.md)'

/** Addresses of this machine and of cloud providers' metadata, which hands out credentials. */
const NEVER_OPEN = ['127.0.0.1', '::1', '169.254.169.254', 'fd00:ec2::254']
/** Most failing webhooks that are listed. */
const WEBHOOKS_TOLD_MAX = 5

async function webhooks(db: Database, settings: Settings): Promise<Verdict[]> {
  const rules = targetRules(settings)
  const open =
    settings.mode === 'live'
      ? NEVER_OPEN.filter((address) => faultOfAddress(address, rules) === undefined)
      : []
  const unsafe = open.map((address) =>
    warn(
      `BURSAR_WEBHOOK_ALLOWED_NETWORKS lets customers reach ${address}`,
      'allow only the networks of the receivers',
    ),
  )
  const { current, known } = await schemaVersions(db)
  // An older schema may not have this table; the check `schema` reports that.
  if (current < known) return unsafe
  const { rows } = await db.query<{
    customer_id: string
    name: string
    status: string
    since: string | null
  }>(
    `select customer_id, name, status, failing_since as since
     from webhooks
     where status = 'ACTIVE' and failing_since < clock_timestamp() - interval '10 minutes'
        or status = 'DISABLED' and disabled_reason is not null
     order by failing_since
     limit $1`,
    [WEBHOOKS_TOLD_MAX],
  )
  const failing = rows.map(({ customer_id, name, status, since }) =>
    warn(
      status === 'ACTIVE'
        ? `deliveries to webhook "${name}" of customer ${customer_id} have failed since ${since}`
        : `webhook "${name}" of customer ${customer_id} is disabled, because deliveries failed since ${since}`,
      'tell the customer: the attempts of its deliveries have the cause (docs/guides/operating.md)',
    ),
  )
  return unsafe.length + failing.length > 0 ? [...unsafe, ...failing] : [ok('none fails')]
}

/** A payment that has waited this long for its screening needs somebody to look. */
const SCREENING_SECONDS_WARN = 900

/** Whether screening has its settings, and whether payments have waited long for it. */
async function screening(db: Database, settings: Settings): Promise<Verdict[]> {
  const { current, known } = await schemaVersions(db)
  const isOn = (await readScreeningSettings(settings)) !== undefined
  if (current < known) return [ok(isOn ? 'configured' : 'not configured')]
  const since = await screenedSince(db)
  if (!isOn && since !== undefined)
    return [
      failed(
        `payments are screened since ${since}, and BURSAR_SCREENING_URL is not set here: a worker does not start`,
        'give every process the same settings, or pay unscreened on purpose: bursar screening waive (docs/guides/screening.md)',
      ),
    ]
  const held = await listScreened(db)
  const { rows } = await db.query<{ seconds: number }>(
    'select extract(epoch from clock_timestamp() - $1::timestamptz)::float8 as seconds',
    [held[0]?.created_at ?? null],
  )
  const { seconds } = rows[0]!
  if (held.length > 0 && seconds > SCREENING_SECONDS_WARN)
    return [
      warn(
        `${held.length >= SCREENED_MAX ? `${SCREENED_MAX} or more` : held.length} payments wait for their screening, the first for ${Math.round(seconds)} s`,
        'bursar screening list has the cause (docs/guides/screening.md)',
      ),
    ]
  return [ok(isOn ? 'no payment waits long for its screening' : 'not configured')]
}

/**
 * Whether events, deliveries and attempts have the partitions of this week and the next. Rows of past weeks stay in the
 * default partition, as those of the demo's history do, until they are deleted by their age: nobody has to do anything.
 */
async function partitions(db: Database): Promise<Verdict[]> {
  const { current, known } = await schemaVersions(db)
  if (current < known) return [ok('not checked until the schema is up to date')]
  const found = (await partitionStatus(db)).flatMap(({ table, isBehind, stray }) => [
    ...(isBehind ? [warn(`${table}: no partition for this week or the next`, MAKES_PARTITIONS)] : []),
    ...(stray === 0
      ? []
      : [
          ok(
            `${table}: rows of weeks without a partition: ${stray}${stray >= STRAY_COUNTED_MAX ? ' or more' : ''}; they are deleted by their age`,
          ),
        ]),
  ])
  return found.length === 0 ? [ok('events, deliveries and attempts have their weekly partitions')] : found
}

async function networks(settings: Settings, db: Database | undefined): Promise<Verdict | Verdict[]> {
  const { networksFile, mode } = settings
  if (networksFile === undefined)
    return mode === 'sandbox'
      ? ok('all networks are simulated')
      : warn(
          'no network is configured: crypto withdrawals are refused',
          'configure networks in BURSAR_NETWORKS_FILE (docs/guides/networks.md)',
        )
  if (db === undefined) {
    JSON.parse(await readFile(networksFile, 'utf8'))
    return warn(
      `${networksFile} is valid JSON; its networks cannot be checked without the database`,
      'fix the database first',
    )
  }
  const opened = await openNetworks(settings, db)
  const unsafe = mode === 'live' ? await unsafeNetworks(opened) : []
  return [
    ...(await networkReports(db, opened)).map(judgeNetwork),
    ...unsafe,
    ...keysToLeaveOut(settings, opened),
  ]
}

/** Settings in the networks file that work but put real money at risk. */
async function unsafeNetworks(opened: Awaited<ReturnType<typeof openNetworks>>): Promise<Verdict[]> {
  const found: Verdict[] = []
  for (const [name, { hasSecondNode, nodes, secretFiles, withoutMinimum, outOfReach }] of opened) {
    if (hasSecondNode === false)
      found.push(
        warn(
          `${name}: deposits are credited on the word of a single node`,
          'name a second node in verify_rpc_url (docs/guides/networks.md)',
        ),
      )
    if (nodes.length > 1 && new Set(nodes.map(({ host }) => host)).size === 1)
      found.push(
        warn(
          `${name}: verify_rpc_url has the same host as rpc_url, so it confirms nothing`,
          'name a node of another operator in verify_rpc_url (docs/guides/networks.md)',
        ),
      )
    for (const { field, protocol, hostname } of nodes)
      if (protocol === 'http:' && !isHere(hostname))
        found.push(
          warn(
            `${name}: ${field} is on another machine and uses http: its answers can be forged on the way`,
            `use https in ${field}`,
          ),
        )
    for (const { field, path } of secretFiles)
      for (const { says, advice } of await secretFile(path))
        found.push(warn(`${name}: ${says}, which holds ${field}`, advice!))
    if (withoutMinimum.length > 0)
      found.push(
        warn(
          `${name}: deposits of ${withoutMinimum.join(', ')} have no minimum: sweeping a small deposit can cost more than its amount`,
          'remove minimum_deposit, or set it above 0 (docs/guides/networks.md)',
        ),
      )
    if (outOfReach.length > 0)
      found.push(
        warn(
          `${name}: limits so high that they have no effect: ${outOfReach.join('; ')}`,
          'lower them, or remove them (docs/guides/networks.md)',
        ),
      )
  }
  return found
}

/** How long a wire may wait for an operator. */
const WIRE_SECONDS_WARN = 86_400

/** The bank account that customers send wires to, and the wires that wait for an operator. */
async function bank(settings: Settings, db: Database | undefined): Promise<Verdict> {
  const adapter = await openBank(settings)
  if (settings.mode === 'sandbox') return ok('simulated')
  const account = adapter?.bankAccount
  if (account === undefined)
    return ok('no bank account: deposit instructions and fiat withdrawals are refused')
  const says = `wires are received by ${account.account_owner} at ${account.bank_name}`
  if (db === undefined || (await schemaVersions(db)).current === 0) return ok(says)
  const { ready, taken, oldest_seconds } = await summariseOpenWires(db)
  const open = `${ready} wires to send, ${taken} taken and not marked`
  return oldest_seconds > WIRE_SECONDS_WARN
    ? warn(`${open}, the oldest for ${Math.floor(oldest_seconds / 3600)} hours`, 'bursar wire list')
    : ok(`${says}; ${open}`)
}

/** Private keys in a process that clients can reach. Only an unreachable worker process should hold them. */
function keysToLeaveOut(
  { mode, worker, host }: Settings,
  opened: Awaited<ReturnType<typeof openNetworks>>,
): Verdict[] {
  // Every process serves requests. A process that listens on this machine only counts as unreachable.
  const isReached = !LOOPBACK.includes(host)
  if (mode !== 'live' || (worker && !isReached)) return []
  return [...opened].flatMap(([name, { privateKeys }]): Verdict[] => {
    if (privateKeys.length === 0) return []
    const what = `${name}: this process holds the private ${privateKeys.join(' and ')}`
    return [
      worker
        ? warn(
            `${what}, and serves requests at ${host}`,
            'serve requests from processes with BURSAR_WORKER=false and no keys; let the worker listen on 127.0.0.1 (docs/guides/networks.md)',
          )
        : warn(
            `${what}, and runs no worker`,
            'configure hot_wallet_address and a public deposit_key instead (docs/guides/networks.md)',
          ),
    ]
  })
}
const LOOPBACK = ['127.0.0.1', '::1', 'localhost']

/** Judges the report of one network. */
export function judgeNetwork(report: NetworkReport): Verdict {
  const { crypto_network: name, reachable, error, height, below_low_mark, custody, taken_back } = report
  const locked = report.waiting.find(({ code }) => code === 'WALLET_LOCKED')
  if (!reachable)
    return failed(`${name}: ${error}`, `start its node, or correct its section of BURSAR_NETWORKS_FILE`)
  const missing = custody.find(({ short }) => short)
  if (missing !== undefined)
    return failed(
      `${name}: holds ${missing.difference.slice(1)} ${missing.asset} less than the custody in the ledger`,
      'bursar networks status; send the missing amount to the hot wallet',
    )
  if (taken_back.length > 0)
    return warn(
      `${name}: a reorganisation removed ${taken_back.length} confirmed transactions`,
      'bursar networks status; the worker broadcasts them again',
    )
  if (locked !== undefined)
    return warn(
      `${name}: ${locked.count} withdrawals wait because the wallet is locked`,
      'a person must unlock it with its passphrase (docs/guides/networks.md)',
    )
  if (below_low_mark) return warn(`${name}: the hot wallet is below its low mark`, 'send funds to it')
  const former = formerWalletsIn(report).map(
    ({ address, held, asset }) => `${address} holds ${held} ${asset}`,
  )
  const left = former.length === 0 ? '' : `; of the former hot wallets, ${former.join(', ')}`
  return ok(`${name}: the node answers, at height ${height}${left}`)
}

function transport(settings: Settings): Verdict[] {
  const plain = plainTransports(settings).map(({ says, advice }) => warn(says, advice))
  if (plain.length > 0) return plain
  return [
    ok(
      settings.mode === 'sandbox' ? 'a sandbox needs no TLS' : 'connections to other machines are encrypted',
    ),
  ]
}

/** Settings of a live deployment that make denial of service easy (docs/guides/operating.md, "Limits"). */
function limits(settings: Settings): Verdict[] {
  const { rateLimitPerSecond, customerRateLimitPerSecond, docs, baseUrl, trustedProxies } = settings
  const found: Verdict[] = []
  if (rateLimitPerSecond === 0)
    found.push(
      warn(
        'clients have no rate limit: a stolen token can fill the disk',
        'set BURSAR_RATE_LIMIT_PER_SECOND',
      ),
    )
  if (rateLimitPerSecond > 0 && customerRateLimitPerSecond === 0)
    found.push(
      warn(
        'customers have no rate limit: one with many clients can take the whole process',
        'remove BURSAR_CUSTOMER_RATE_LIMIT_PER_SECOND, or raise it',
      ),
    )
  if (settings.tokenFailuresPerMinute === 0)
    found.push(
      warn('failed token requests have no limit', 'raise BURSAR_TOKEN_FAILURES_PER_MINUTE, or remove it'),
    )
  if (settings.connectionsPerAddress === 0)
    found.push(
      warn('one address may take all connections', 'raise BURSAR_CONNECTIONS_PER_ADDRESS, or remove it'),
    )
  const connections = connectionsMax(settings.databaseConnections, descriptorsMax())
  if (connections < CONNECTIONS_FEW)
    found.push(
      warn(
        `the limit of open files leaves only ${connections} connections for clients`,
        'raise it for the service (ulimit -n)',
      ),
    )
  if (docs) found.push(warn('/docs is public', 'remove BURSAR_DOCS'))
  if (trustedProxies?.split(',').some((one) => one.trim().endsWith('/0')) === true)
    found.push(
      warn(
        'every address is a trusted proxy: limits by address have no effect',
        'name only the proxy in BURSAR_TRUSTED_PROXIES',
      ),
    )
  // Bursar itself has no TLS, so an https address means there is a proxy.
  if (baseUrl?.startsWith('https:') === true && trustedProxies === undefined)
    found.push(
      warn(
        'all requests seem to come from the proxy, so all clients share one limit by address',
        'name the proxy in BURSAR_TRUSTED_PROXIES',
      ),
    )
  return found.length > 0 ? found : [ok('clients and addresses have limits')]
}

/** The URL to reach this machine's own service at. */
function addressOf({ host, port }: Settings): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

const get = (url: string) => fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })

async function port(settings: Settings): Promise<Verdict> {
  const { host, port } = settings
  if (port === 0) return ok('the service picks a free port')
  const server = createServer()
  const refused = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    server.once('error', resolve).listen(port, host, () => server.close(() => resolve(undefined)))
  })
  if (refused === undefined) return ok(`${host}:${port} is free: Bursar is not running here`)
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

/** Whether the token issuer answers with its metadata (RFC 8414) and its keys. */
async function issuer(settings: Settings): Promise<Verdict> {
  const external = settings.oauthIssuer
  const listens = addressOf(settings)
  if (external === undefined && settings.baseUrl === undefined) {
    const found = await get(`${listens}/.well-known/oauth-authorization-server`).catch(() => undefined)
    return found?.ok === true ? ok(`issued by ${listens}`) : ok('Bursar issues tokens while it runs')
  }
  const expected = external ?? settings.baseUrl!
  const { origin, pathname } = new URL(expected)
  const reply = await get(
    `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, '')}`,
  ).catch((error: unknown) => messageOf(error))
  const setting = external === undefined ? 'BURSAR_BASE_URL' : 'BURSAR_OAUTH_ISSUER'
  const advice = `correct ${setting}, or start the issuer`
  if (typeof reply === 'string' || !reply.ok) {
    const says = `${expected} does not answer with its metadata: ${typeof reply === 'string' ? reply : reply.status}`
    // Bursar itself may not be running yet: a WARN. Without an external issuer's keys every request is refused: a FAIL.
    return external === undefined ? warn(says, advice) : failed(says, advice)
  }
  const metadata = (await reply.json()) as { issuer?: string; jwks_uri?: string }
  if (metadata.issuer !== expected)
    return failed(`the metadata of ${expected} names another issuer, ${metadata.issuer}`, advice)
  const keys = await get(metadata.jwks_uri ?? '')
  return keys.ok ? ok(`issued by ${expected}`) : failed(`${metadata.jwks_uri} answers ${keys.status}`, advice)
}
