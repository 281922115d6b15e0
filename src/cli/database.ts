import { InvalidArgumentError, type Command } from 'commander'
import { type Database, transaction } from '../db/database.ts'
import { distribute, SHARDS_DEFAULT, SHARDS_MAX } from '../db/distribution.ts'
import { faultsOfRole } from '../db/privileges.ts'
import { changeIssuer, readStamp, recordVerify } from '../program/deployment.ts'
import { findMasterKeys } from '../keys/master-keys.ts'
import { verify } from '../money/verify/verify.ts'
import { RowMacs } from '../audit/sealed-rows.ts'
import { configuredTokens } from '../networks/network-sections.ts'
import { blame, readSettings, type Settings } from '../settings.ts'
import { audited, recordNow } from '../audit/audited.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { wholeNumber } from './arguments.ts'
import { asOwner, inDatabase, logOperator, withDatabase } from './command-line.ts'
import { group, offline } from './define.ts'
import { UsageError } from './exit.ts'
import { startProgress } from './progress.ts'
import { ownProcess } from './own-process.ts'

export function databaseCommands(program: Command): void {
  const commands = group(program, [], inDatabase, {
    '--distribute': ['place the tables on the nodes of the Citus cluster, by customer; run it once'],
    '--shards <number>': [
      `with --distribute: how many parts the customers are divided into (default: ${SHARDS_DEFAULT})`,
      wholeNumber(1, SHARDS_MAX),
    ],
  })
  commands.command('migrate [--distribute] [--shards <number>]', {
    in: offline,
    about: 'bring the database schema up to date, and with --distribute spread it over a Citus cluster',
    async run(_, { distribute: isAsked, shards }) {
      if (isAsked) return migrateAndDistribute(shards ?? SHARDS_DEFAULT)
      if (shards !== undefined) throw new UsageError("option '--shards <number>' needs --distribute")
      const { applied } = await migrate()
      return { applied }
    },
    says({ applied, distributed }) {
      const migrated = applied.length === 0 ? 'The schema is up to date.' : `Applied: ${applied.join(', ')}`
      if (distributed === undefined) return migrated
      const { tables, nodes, shards } = distributed
      const did =
        tables.length === 0 ? 'The database is distributed already' : `Distributed ${tables.length} tables`
      return `${migrated}\n${did}: ${shards} shards, nodes ${nodes.join(', ')}.`
    },
  })
  commands.command('verify', {
    about:
      'recompute every balance and zero sum from the ledger entries, and compare each signed withdrawal with the accepted request; exit code 1 on a disagreement. Warns of missing and excessive privileges of the database role',
    run: ({ db, settings }, { json }) => verifyAll(db, settings, json),
    says: describeVerified,
    fails: ({ clean }) => !clean,
  })
  deploymentCommands(program)
}

/** Distributes as the owner of the schema, while no other session of this program is open. */
async function migrateAndDistribute(
  shards: number,
): Promise<{ applied: string[]; distributed?: Awaited<ReturnType<typeof distribute>> }> {
  const settings = readSettings(ownProcess().env)
  if (settings.migrationsDatabaseUrl === undefined || settings.databaseUrl === undefined)
    throw new Error(
      'BURSAR_MIGRATIONS_DATABASE_URL, DATABASE_URL: only the role that owns the schema distributes it; give the addresses of both roles',
    )
  const { applied, role } = await migrate()
  const distributed = await asOwner(settings.migrationsDatabaseUrl, (owner) =>
    distribute(owner, role, shards),
  )
  logOperator(settings, 'distributed the database', { ...distributed, tables: distributed.tables.length })
  return { applied, distributed }
}

/** Migrates the schema. Returns the migrations that ran, and the service's role. */
const migrate = (): Promise<{ applied: string[]; role: string }> =>
  withDatabase({ migrate: true }, async ({ db, applied }) => {
    const { rows } = await db.query<{ role: string }>('select current_user as role')
    return { applied, role: rows[0]!.role }
  })

async function verifyAll(db: Database, settings: Settings, json: true | undefined) {
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
  const clean = result.disagreements.length === 0
  return { clean, master_key: macs !== undefined, ...result, role_faults: await faultsOfRole(db) }
}

function describeVerified(found: Awaited<ReturnType<typeof verifyAll>>): string {
  const { clean, master_key, customers, transfers, entries, balances, disagreements, role_faults } = found
  const noKey =
    'No master key: withdrawals were not compared with the accepted requests, and rows not with their MACs.'
  return [
    ...disagreements.map(({ customer_id, rule, detail }) => `${customer_id}: not ${rule}: ${detail}`),
    ...(master_key ? [] : [noKey]),
    ...role_faults.map(({ says, advice }) => `Warning: ${says}; ${advice}.`),
    `${clean ? 'Clean' : `${disagreements.length} disagreements`}: ${customers} customers, ${transfers} transfers, ${entries} entries, ${balances} balances.`,
  ].join('\n')
}

function deploymentCommands(program: Command): void {
  const about = 'the mode of the database, and in live mode its token issuer'
  const deployment = group(program, ['deployment', about], inDatabase, {
    '<url>': ['the new BURSAR_BASE_URL or BURSAR_OAUTH_ISSUER', issuerUrl],
  })
  deployment.command('show', {
    about: 'show the mode and the token issuer that the database is stamped with',
    async run({ db }) {
      const { mode = null, issuer = null, stamped_at = null } = (await readStamp(db)) ?? {}
      return { mode, issuer, stamped_at }
    },
    says: ({ mode, issuer, stamped_at }) =>
      mode === null
        ? 'The database has no stamp yet: bursar serve writes it.'
        : `mode:   ${mode}, since ${stamped_at}\nissuer: ${issuer ?? 'not held'}`,
  })
  deployment.command('change-issuer <url>', {
    about: 'stamp a live database with another token issuer, for a service that moves',
    run: ({ db, origin }, { url }) =>
      transaction(db, async (tx) => {
        const { issuer = null } = (await readStamp(tx)) ?? {}
        const changed = await changeIssuer(tx, url)
        const changes = { before: { issuer }, after: { issuer: changed.issuer } }
        const record = audited(origin, 'deployment.change_issuer', 'deployment', changes)
        await recordNow(tx, PLATFORM_ID, record)
        return changed
      }),
    says: ({ issuer }) => `The issuer is ${issuer} from the next start on.`,
    logs: 'changed the issuer',
    logged: ({ issuer }) => ({ issuer }),
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
