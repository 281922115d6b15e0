import { InvalidArgumentError, type Command } from 'commander'
import { type Database, transaction } from '../db/database.ts'
import { distribute, SHARDS_DEFAULT, SHARDS_MAX } from '../db/distribution.ts'
import { faultsOfRole } from '../db/privileges.ts'
import { changeIssuer, readStamp } from '../deployment.ts'
import { findMasterKeys } from '../keys/master-keys.ts'
import { verify } from '../verify/verify.ts'
import { WithdrawalMacs } from '../movements/withdrawal-macs.ts'
import { RowMacs } from '../records/row-macs.ts'
import { configuredTokens } from '../networks/open-networks.ts'
import { blame } from '../settings.ts'
import {
  logOperator,
  originOfCommand,
  wholeNumber,
  withDatabase,
  withMigratedDatabase,
  withOwnerAlone,
} from './command-line.ts'
import { EXIT } from './exit.ts'
import { print, startProgress } from './output.ts'
import { audited, recordNow } from '../records/audited.ts'
import { PLATFORM_ID } from '../db/ids.ts'

/** Defines `bursar migrate`, `bursar verify` and `bursar deployment`. */
export function databaseCommands(program: Command): void {
  defineMigrate(program)
  defineVerify(program)
  const deployment = program
    .command('deployment')
    .description('the mode of the database, and in live mode its token issuer')
  defineShow(deployment)
  defineChangeIssuer(deployment)
}

function defineMigrate(program: Command): void {
  program
    .command('migrate')
    .description('bring the database schema up to date, and with --distribute spread it over a Citus cluster')
    .option('--distribute', 'place the tables on the nodes of the Citus cluster, by customer; run it once')
    .option(
      '--shards <number>',
      `with --distribute: how many parts the customers are divided into (default: ${SHARDS_DEFAULT})`,
      wholeNumber(1, SHARDS_MAX),
    )
    .option('--json', 'print JSON')
    .action(async (options: { distribute?: true; shards?: number; json?: true }, command: Command) => {
      if (options.shards !== undefined && !options.distribute)
        command.error("error: option '--shards <number>' needs --distribute", { exitCode: EXIT.usage })
      await runMigrate(options)
    })
}

async function runMigrate({
  distribute: distributes,
  shards,
  json,
}: {
  distribute?: true
  shards?: number
  json?: true
}): Promise<void> {
  const lines = (applied: string[]) =>
    applied.length === 0 ? 'The schema is up to date.' : `Applied: ${applied.join(', ')}`
  if (!distributes) {
    await withMigratedDatabase((_db, _settings, applied) => print(json ? { applied } : lines(applied)))
    return
  }
  await withOwnerAlone(async (owner, settings, { serviceRole, applied }) => {
    const distributed = await distribute(owner, serviceRole, shards ?? SHARDS_DEFAULT)
    const { tables, nodes, shards: parts } = distributed
    logOperator(settings, 'distributed the database', { ...distributed, tables: tables.length })
    if (json) print({ applied, distributed })
    else {
      print(lines(applied))
      print(
        tables.length === 0
          ? `The database is distributed already: ${parts} shards, nodes ${nodes.join(', ')}.`
          : `Distributed ${tables.length} tables: ${parts} shards, nodes ${nodes.join(', ')}.`,
      )
    }
  })
}

function defineVerify(program: Command): void {
  program
    .command('verify')
    .description(
      'recompute every balance and zero sum from the ledger entries, and compare each signed withdrawal with the accepted request; exit code 1 on a disagreement. Warns of missing and excessive privileges of the database role',
    )
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const masterKeys = await findMasterKeys(settings)
        const macs = masterKeys && new WithdrawalMacs(masterKeys)
        const rowMacs = masterKeys && new RowMacs(masterKeys)
        const { networksFile } = settings
        const tokens =
          networksFile === undefined
            ? new Map()
            : await configuredTokens(networksFile).catch(blame('BURSAR_NETWORKS_FILE'))
        const bar = startProgress(await countCustomers(db), { quiet: json })
        const result = await verify(db, { onCustomer: bar.step, macs, rowMacs, tokens }).finally(bar.stop)
        const role_faults = await faultsOfRole(db)
        if (json) {
          const clean = result.disagreements.length === 0
          print({ clean, master_key: macs !== undefined, ...result, role_faults })
        } else {
          const { customers, transfers, entries, balances, disagreements } = result
          for (const { customer_id, rule, detail } of disagreements)
            print(`${customer_id}: not ${rule}: ${detail}`)
          const verdict = disagreements.length === 0 ? 'Clean' : `${disagreements.length} disagreements`
          if (macs === undefined)
            print(
              'No master key: withdrawals were not compared with the accepted requests, and rows not with their MACs.',
            )
          for (const { says, advice } of role_faults) print(`Warning: ${says}; ${advice}.`)
          print(
            `${verdict}: ${customers} customers, ${transfers} transfers, ${entries} entries, ${balances} balances.`,
          )
        }
        if (result.disagreements.length > 0) process.exitCode = EXIT.failed
      }),
    )
}

function defineShow(deployment: Command): void {
  deployment
    .command('show')
    .description('show the mode and the token issuer that the database is stamped with')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const { mode = null, issuer = null, stamped_at = null } = (await readStamp(db)) ?? {}
        if (json) print({ mode, issuer, stamped_at })
        else if (mode === null) print('The database has no stamp yet: bursar serve writes it.')
        else print(`mode:   ${mode}, since ${stamped_at}\nissuer: ${issuer ?? 'not held'}`)
      }),
    )
}

function defineChangeIssuer(deployment: Command): void {
  deployment
    .command('change-issuer')
    .description('stamp a live database with another token issuer, for a service that moves')
    .argument('<url>', 'the new BURSAR_BASE_URL or BURSAR_OAUTH_ISSUER', issuerUrl)
    .option('--json', 'print JSON')
    .action((url: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const stamp = await transaction(db, async (tx) => {
          const { issuer = null } = (await readStamp(tx)) ?? {}
          const changed = await changeIssuer(tx, url)
          const changes = { before: { issuer }, after: { issuer: changed.issuer } }
          const record = audited(originOfCommand(), 'deployment.change_issuer', 'deployment', changes)
          await recordNow(tx, PLATFORM_ID, record)
          return changed
        })
        logOperator(settings, 'changed the issuer', { issuer: stamp.issuer })
        print(json ? stamp : `The issuer is ${stamp.issuer} from the next start on.`)
      }),
    )
}

/** Parses the URL of an issuer for commander. */
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
