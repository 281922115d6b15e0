import type { Command } from 'commander'
import type { Database } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { verify } from '../ledger/verify.ts'
import { EXIT, withDatabase } from './command-line.ts'
import { print, progress } from './output.ts'

/** `bursar migrate` and `bursar verify`. */
export function databaseCommands(program: Command): void {
  program
    .command('migrate')
    .description('bring the database schema up to date')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const applied = await migrate(db)
        print(
          json
            ? { applied }
            : applied.length === 0
              ? 'The schema is up to date.'
              : `Applied: ${applied.join(', ')}`,
        )
      }),
    )

  program
    .command('verify')
    .description(
      'recompute every balance and zero-sum from the ledger entries; exit code 1 when something disagrees',
    )
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const bar = progress(await countCustomers(db), { quiet: json })
        const result = await verify(db, bar.step).finally(bar.stop)
        if (json) {
          print({ clean: result.disagreements.length === 0, ...result })
        } else {
          const { customers, transfers, entries, balances, disagreements } = result
          for (const { customer_id, rule, detail } of disagreements)
            print(`${customer_id}: not ${rule}: ${detail}`)
          const verdict = disagreements.length === 0 ? 'Clean' : `${disagreements.length} disagreements`
          print(
            `${verdict}: ${customers} customers, ${transfers} transfers, ${entries} entries, ${balances} balances.`,
          )
        }
        if (result.disagreements.length > 0) process.exitCode = EXIT.failed
      }),
    )
}

async function countCustomers(db: Database): Promise<number> {
  const { rows } = await db.query<{ count: string }>('select count(*) from customers')
  return Number(rows[0]!.count)
}
