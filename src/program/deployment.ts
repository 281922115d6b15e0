import { transaction, type Database, type Queryable } from '../db/database.ts'
import { bringUpToDate } from '../db/migrate.ts'
import { failed, ok, warn, type Finding } from '../finding.ts'
import { findMasterKeys } from '../keys/master-keys.ts'
import { ownRowMacs, sealOf, type Seal } from '../audit/sealed-rows.ts'
import { SettingsError, type Settings } from '../settings.ts'
import { takeLock } from '../db/locks.ts'

/** A database knows its mode: sandbox money is invented, and must never be paid out by a live service. */

export interface Stamp {
  mode: Settings['mode']
  /** The issuer of tokens, in live mode, once a service with a configured one has started. */
  issuer: string | null
  stamped_at: string
}

type DeploymentSettings = Pick<Settings, 'mode' | 'baseUrl' | 'oauthIssuer'>

/**
 * Reads the stamp of the database. Undefined if it has none, if the schema is too old for one, or if the service's role
 * may not read it yet; the last two mean that migrations are pending.
 */
export async function readStamp(db: Queryable): Promise<Stamp | undefined> {
  const found = await db.query<{ readable: boolean | null }>(
    `select has_table_privilege(to_regclass('deployment'), 'select') as readable`,
  )
  if (found.rows[0]!.readable !== true) return undefined
  const { rows } = await db.query<Stamp>('select mode, issuer, stamped_at from deployment')
  return rows[0]
}

/** Keeps when `bursar verify` ended, and how much it found: metrics and doctor read it in other processes. */
export async function recordVerify(db: Queryable, findings: number): Promise<void> {
  await db.query('update deployment set verified_at = (select clock_timestamp()), verify_findings = $1', [
    findings,
  ])
}

const VERIFY_HOURS_MAX = 48

/** Whether `bursar verify` runs again and again, and finds nothing. */
export async function checkVerify(db: Queryable, { mode }: Pick<Settings, 'mode'>): Promise<Finding[]> {
  const { rows } = await db.query<{ hours: number | null; findings: number | null }>(
    `select (extract(epoch from clock_timestamp() - verified_at) / 3600)::integer as hours, verify_findings as findings
     from deployment`,
  )
  const { hours = null, findings = null } = rows[0] ?? {}
  if (findings !== null && findings > 0)
    return [failed(`bursar verify found ${findings} disagreements ${hours} hours ago`, 'bursar verify')]
  if (hours !== null && hours <= VERIFY_HOURS_MAX) return [ok(`clean ${hours} hours ago`)]
  const says = hours === null ? 'bursar verify has not run yet' : `bursar verify ran ${hours} hours ago`
  return mode === 'live' ? [warn(says, 'start bursar-verify.timer (docs/guides/going-live.md)')] : [ok(says)]
}

/** Throws `SettingsError` when the database belongs to the other mode. An unused database may still change its mode. */
export async function requireMode(db: Queryable, mode: Settings['mode']): Promise<void> {
  const stamp = await readStamp(db)
  if (isOther(stamp, mode) && !(await isUnused(db)))
    throw new SettingsError(`BURSAR_MODE: ${otherMode(stamp)}`)
}

/** What to do about a database of the other mode. */
const otherMode = ({ mode, stamped_at }: Stamp): string =>
  mode === 'sandbox'
    ? `this database is a sandbox's since ${stamped_at}: its money is invented; begin live mode on an empty database of its own (DATABASE_URL, or BURSAR_DATA_DIR)`
    : `this database is live since ${stamped_at}: set BURSAR_MODE=live, or give the sandbox a database of its own (DATABASE_URL, or BURSAR_DATA_DIR)`

/**
 * Brings the schema up to date, and stamps an unused database. For commands: only `serve` stamps a used database,
 * because a command is easily run without the service's settings. Returns the names of the migrations
 * that ran. Throws `SettingsError` when the database belongs to the other mode.
 */
export async function prepareDatabase(db: Database, asked: Settings, ownerUrl?: string): Promise<string[]> {
  const applied = await bringUpToDate(db, ownerUrl)
  await transaction(db, async (tx) => {
    await takeLock(tx, 'stamp')
    await requireMode(tx, asked.mode)
    // Without a master key here, the first process that has one stamps the database.
    const hasKey = asked.mode === 'sandbox' || (await findMasterKeys(asked)) !== undefined
    if (hasKey && (await isUnused(tx))) await writeStamp(tx, asked.mode, null)
  })
  return applied
}

/**
 * Stamps the database with the mode of the service that starts on it, and in live mode with its issuer. Throws
 * `SettingsError` when the database belongs to the other mode or another issuer, or is to be live and has invented money.
 */
export async function stampDatabase(db: Database, asked: DeploymentSettings): Promise<void> {
  const { mode } = asked
  const issuer = mode === 'live' ? issuerOf(asked) : undefined
  await transaction(db, async (tx) => {
    await takeLock(tx, 'stamp')
    await requireMode(tx, mode)
    const stamp = await readStamp(tx)
    await requireGenuineStamp(tx)
    const trace = await traceAgainst(tx, mode, stamp)
    if (trace !== undefined) throw new SettingsError(`BURSAR_MODE: ${wasSandbox(trace)}`)
    const known = stamp?.mode === mode ? stamp.issuer : null
    if (known !== null && known !== issuer) throw new SettingsError(otherIssuer(asked, known, issuer))
    if (stamp?.mode !== mode || known !== (issuer ?? null)) await writeStamp(tx, mode, issuer ?? null)
  })
}

/** Whether the service may start on the database: what `stampDatabase` would refuse is a FAIL. */
export async function checkMode(db: Database, asked: Settings): Promise<Finding> {
  const { mode } = asked
  const stamp = await readStamp(db)
  const elsewhere = 'set BURSAR_MODE to the mode of the database, or name another database'
  if (isOther(stamp, mode) && !(await isUnused(db))) return failed(otherMode(stamp), elsewhere)
  const trace = await traceAgainst(db, mode, stamp)
  if (trace !== undefined) return failed(wasSandbox(trace), elsewhere)
  if (mode === 'sandbox')
    return ok(stamp === undefined ? 'sandbox; the database is not stamped yet' : 'sandbox, as the database')
  const issuer = issuerOf(asked)
  const known = stamp?.mode === mode ? stamp.issuer : null
  if (known !== null && known !== issuer)
    return failed(
      `the database belongs to the token issuer ${known}, the settings name ${issuer ?? 'none'}`,
      'correct BURSAR_BASE_URL or BURSAR_OAUTH_ISSUER, or run bursar deployment change-issuer',
    )
  return issuer === undefined
    ? warn(
        'live, but no token issuer is set, so the database cannot be bound to it',
        'set BURSAR_BASE_URL to the address that clients use',
      )
    : ok(`live, with the token issuer ${issuer}`)
}

const isOther = (stamp: Stamp | undefined, mode: Settings['mode']): stamp is Stamp =>
  stamp !== undefined && stamp.mode !== mode

/** Returns what proves that a database which is to become live was a sandbox's; undefined without such proof. */
async function traceAgainst(
  db: Queryable,
  mode: Settings['mode'],
  stamp: Stamp | undefined,
): Promise<string | undefined> {
  return mode === 'live' && stamp?.mode !== 'live' ? (await sandboxTraces(db))[0] : undefined
}

const wasSandbox = (trace: string): string =>
  `this database was a sandbox's: it has ${trace}; begin live mode on an empty database of its own (DATABASE_URL, or BURSAR_DATA_DIR)`

/** The trusted token issuer; undefined if it follows from HOST and PORT. */
const issuerOf = ({ oauthIssuer, baseUrl }: DeploymentSettings): string | undefined =>
  withoutSlash(oauthIssuer ?? baseUrl)

const withoutSlash = (url: string | undefined) => url?.replace(/\/+$/, '')

const otherIssuer = (
  { oauthIssuer }: DeploymentSettings,
  known: string,
  issuer: string | undefined,
): string =>
  `${oauthIssuer === undefined ? 'BURSAR_BASE_URL' : 'BURSAR_OAUTH_ISSUER'}: this live database belongs to the token issuer ${known}, ` +
  `and the settings name ${issuer ?? 'none'}; set it, or, where the service is to move, run: bursar deployment change-issuer <url>`

/** Changes the token issuer of a live database. Returns the new stamp. Throws when the database is not live. */
export async function changeIssuer(db: Queryable, issuer: string): Promise<Stamp> {
  await requireGenuineStamp(db)
  const { rows } = await db.query<Stamp>(
    `update deployment set issuer = $1 where mode = 'live' returning mode, issuer, stamped_at`,
    [withoutSlash(issuer)],
  )
  if (rows[0] === undefined) throw new Error('this database is not a live one: it has no issuer to change')
  await (await ownRowMacs()).seal(db, 'deployment', ID)
  return rows[0]
}

async function writeStamp(tx: Queryable, mode: Settings['mode'], issuer: string | null): Promise<void> {
  await tx.query(
    `
    insert into deployment (id, mode, issuer, stamped_at) values (1, $1, $2, clock_timestamp())
    on conflict (id) do update
      set mode = excluded.mode, issuer = excluded.issuer,
          stamped_at = case when deployment.mode = excluded.mode then deployment.stamped_at else excluded.stamped_at end`,
    [mode, issuer],
  )
  await (await ownRowMacs()).seal(tx, 'deployment', ID)
}

const ID = '1'

/** Throws `SettingsError` where Bursar did not write the stamp: a sandbox may be emptied, and a live database must not be. */
export async function requireGenuineStamp(db: Queryable): Promise<void> {
  const { rows } = await db.query<Seal>(`select ${sealOf('deployment')} from deployment r`)
  const objection = rows[0] && (await ownRowMacs()).objectionTo('deployment', rows[0])
  if (objection !== undefined)
    throw new SettingsError(
      `the stamp of the database (bursar deployment show) is not what Bursar wrote: ${objection}`,
    )
}

/** Whether the database has no customers and no traces of a sandbox, so that it belongs to no mode yet. */
async function isUnused(db: Queryable): Promise<boolean> {
  const { rows } = await db.query('select 1 from customers limit 1')
  return rows.length === 0 && (await sandboxTraces(db)).length === 0
}

/**
 * Describes the records that only a sandbox creates. Wire deposits and deposit instructions prove one, too, where there is no stamp:
 * live mode is stamped before its first record. A deposit over a real chain has an address, a simulated one has none.
 */
async function sandboxTraces(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ trace: string }>(`
    select 'transactions of simulated networks' as trace where exists (select 1 from simulated_chain)
    union all
    select 'simulated prices' where exists (select 1 from markets where source = 'SIMULATED')
    union all
    select 'the demo customer'
    where exists (
      select 1 from customers c
      join orchestration_rules r on r.customer_id = c.id and r.ref_id = 'demo-rule'
      where c.name = 'Demo'
    )
    union all
    select 'simulated deposits'
    where exists (
      select 1 from transfers
      where type = 'WIRE_DEPOSIT' or (type = 'CRYPTO_DEPOSIT' and destination_address is null)
    )
    union all
    select 'deposit instructions of the simulated bank' where exists (select 1 from fiat_deposit_instructions)`)
  return rows.map(({ trace }) => trace)
}
