import type { Command } from 'commander'
import { migrate } from '../db/migrate.ts'
import { verify } from '../ledger/verify.ts'
import { print, withDatabase } from './command-line.ts'

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
        const result = await verify(db)
        if (json) {
          print({ clean: result.disagreements.length === 0, ...result })
        } else {
          const { customers, transfers, entries, balances, disagreements } = result
          for (const { customer_id, rule, detail } of disagreements)
            console.log(`${customer_id}: not ${rule}: ${detail}`)
          const verdict = disagreements.length === 0 ? 'Clean' : `${disagreements.length} disagreements`
          console.log(
            `${verdict}: ${customers} customers, ${transfers} transfers, ${entries} entries, ${balances} balances.`,
          )
        }
        if (result.disagreements.length > 0) process.exitCode = 1
      }),
    )
}
