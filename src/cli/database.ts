import { InvalidArgumentError, type Command } from 'commander'
import { type Database, transaction } from '../db/database.ts'
import { distribute, SHARDS_DEFAULT, SHARDS_MAX } from '../db/distribution.ts'
import { faultsOfRole } from '../db/privileges.ts'
import { changeIssuer, readStamp, recordVerify } from '../program/deployment.ts'
import { findMasterKeys } from '../keys/master-keys.ts'
import { verify } from '../money/verify/verify.ts'
import { RowMacs } from '../audit/row-macs.ts'
import { configuredTokens } from '../networks/network-sections.ts'
import { blame, readSettings } from '../settings.ts'
import { audited, recordNow } from '../audit/audited.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { wholeNumber } from './arguments.ts'
import { asOwner, inDatabase, logOperator, withDatabase } from './command-line.ts'
import { define, offline, type CommandOutput } from './define.ts'
import { EXIT } from './exit.ts'
import { startProgress } from './progress.ts'
import { ownProcess } from './own-process.ts'

export function databaseCommands(program: Command): void {
  define(
    program,
    'migrate',
    'bring the database schema up to date, and with --distribute spread it over a Citus cluster',
  )
    .option('--distribute', 'place the tables on the nodes of the Citus cluster, by customer; run it once')
    .option(
      '--shards <number>',
      `with --distribute: how many parts the customers are divided into (default: ${SHARDS_DEFAULT})`,
      wholeNumber(1, SHARDS_MAX),
    )
    .answer(offline, async (_, options: { distribute?: true; shards?: number }, command: Command) => {
      if (options.distribute) return migrateAndDistribute(options.shards ?? SHARDS_DEFAULT)
      if (options.shards !== undefined)
        command.error("error: option '--shards <number>' needs --distribute", { exitCode: EXIT.usage })
      const { applied } = await migrate()
      return [{ applied }, describeMigrations(applied)]
    })
  defineVerify(program)
  defineDeployment(program)
}

const describeMigrations = (applied: string[]) =>
  applied.length === 0 ? 'The schema is up to date.' : `Applied: ${applied.join(', ')}`

/** Distributes as the owner of the schema, while no other session of this program is open. */
async function migrateAndDistribute(shards: number): Promise<CommandOutput> {
  const settings = readSettings(ownProcess().env)
  if (settings.migrationsDatabaseUrl === undefined || settings.databaseUrl === undefined)
    throw new Error(
      'BURSAR_MIGRATIONS_DATABASE_URL, DATABASE_URL: only the role that owns the schema distributes it; give the addresses of both roles',
    )
  const { applied, role } = await migrate()
  const distributed = await asOwner(settings.migrationsDatabaseUrl, (owner) =>
    distribute(owner, role, shards),
  )
  const { tables, nodes, shards: parts } = distributed
  logOperator(settings, 'distributed the database', { ...distributed, tables: tables.length })
  const did =
    tables.length === 0 ? 'The database is distributed already' : `Distributed ${tables.length} tables`
  const text = `${describeMigrations(applied)}\n${did}: ${parts} shards, nodes ${nodes.join(', ')}.`
  return [{ applied, distributed }, text]
}

/** Migrates the schema. Returns the migrations that ran, and the service's role. */
const migrate = (): Promise<{ applied: string[]; role: string }> =>
  withDatabase({ migrate: true }, async ({ db, applied }) => {
    const { rows } = await db.query<{ role: string }>('select current_user as role')
    return { applied, role: rows[0]!.role }
  })

function defineVerify(program: Command): void {
  define(
    program,
    'verify',
    'recompute every balance and zero sum from the ledger entries, and compare each signed withdrawal with the accepted request; exit code 1 on a disagreement. Warns of missing and excessive privileges of the database role',
  ).answer(inDatabase, async ({ db, settings }, { json }: { json?: true }) => {
    const masterKeys = await findMasterKeys(settings)
    const macs = masterKeys && new RowMacs(masterKeys)
    const rowMacs = masterKeys && new RowMacs(masterKeys)
    const { networksFile } = settings
    const tokens =
      networksFile === undefined
        ? new Map()
        : await configuredTokens(networksFile).catch(blame('BURSAR_NETWORKS_FILE'))
    const bar = startProgress(await countCustomers(db), { quiet: json })
    const result = await verify(db, { onCustomer: bar.step, macs, rowMacs, tokens }).finally(bar.stop)
    await recordVerify(db, result.disagreements.length)
    const role_faults = await faultsOfRole(db)
    const { customers, transfers, entries, balances, disagreements } = result
    const clean = disagreements.length === 0
    if (!clean) ownProcess().exitCode = EXIT.failed
    const noKey =
      'No master key: withdrawals were not compared with the accepted requests, and rows not with their MACs.'
    const text = [
      ...disagreements.map(({ customer_id, rule, detail }) => `${customer_id}: not ${rule}: ${detail}`),
      ...(macs === undefined ? [noKey] : []),
      ...role_faults.map(({ says, advice }) => `Warning: ${says}; ${advice}.`),
      `${clean ? 'Clean' : `${disagreements.length} disagreements`}: ${customers} customers, ${transfers} transfers, ${entries} entries, ${balances} balances.`,
    ]
    return [{ clean, master_key: macs !== undefined, ...result, role_faults }, text.join('\n')]
  })
}

function defineDeployment(program: Command): void {
  const deployment = define(
    program,
    'deployment',
    'the mode of the database, and in live mode its token issuer',
  )
  define(deployment, 'show', 'show the mode and the token issuer that the database is stamped with').answer(
    inDatabase,
    async ({ db }) => {
      const { mode = null, issuer = null, stamped_at = null } = (await readStamp(db)) ?? {}
      const text =
        mode === null
          ? 'The database has no stamp yet: bursar serve writes it.'
          : `mode:   ${mode}, since ${stamped_at}\nissuer: ${issuer ?? 'not held'}`
      return [{ mode, issuer, stamped_at }, text]
    },
  )
  define(
    deployment,
    'change-issuer',
    'stamp a live database with another token issuer, for a service that moves',
  )
    .argument('<url>', 'the new BURSAR_BASE_URL or BURSAR_OAUTH_ISSUER', issuerUrl)
    .answer(inDatabase, async ({ db, did, origin }, url: string) => {
      const stamp = await transaction(db, async (tx) => {
        const { issuer = null } = (await readStamp(tx)) ?? {}
        const changed = await changeIssuer(tx, url)
        const changes = { before: { issuer }, after: { issuer: changed.issuer } }
        const record = audited(origin, 'deployment.change_issuer', 'deployment', changes)
        await recordNow(tx, PLATFORM_ID, record)
        return changed
      })
      did('changed the issuer', { issuer: stamp.issuer })
      return [stamp, `The issuer is ${stamp.issuer} from the next start on.`]
    })
}

function issuerUrl(text: string): string {
  const { protocol, search, hash } = URL.canParse(text) ? new URL(text) : ({} as Partial<URL>)
  if (!/^https?:$/.test(protocol ?? '') || search || hash)
    throw new InvalidArgumentError('must be an http or https address without ? and #.')
  return text
}

async function countCustomers(db: Database): Promise<number> {
  const { rows } = await db.query<{ count: string }>('select count(*) from customers')
  return Number(rows[0]!.count)
}
