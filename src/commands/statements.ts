import { InvalidArgumentError, type Command } from 'commander'
import { Temporal } from 'temporal-polyfill'
import { parseAmount } from '../assets/amount.ts'
import { migrate } from '../db/migrate.ts'
import { explainStatement } from '../statements/explain-statement.ts'
import { generateStatements } from '../statements/generate-statements.ts'
import { payStatements } from '../statements/pay-statements.ts'
import { periodOf, type Period } from '../statements/period.ts'
import { listRewardRates, setRewardRate } from '../statements/reward-rates.ts'
import { RATE_DECIMALS, type Derivation } from '../statements/reward.ts'
import { print, uuid, withDatabase } from './command-line.ts'

interface Which {
  period?: Period
  customer?: string
  json?: true
}

/** `bursar statements` and `bursar rewards`. */
export function statementCommands(program: Command): void {
  const statements = program
    .command('statements')
    .description('monthly statements of the USDG reward: generated, paid, explained')

  statements
    .command('generate')
    .description('generate the statements of a month that has ended; those there are stay as they are')
    .requiredOption('--period <YYYY-MM>', 'month, UTC', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .option('--json', 'print JSON')
    .action(({ period, customer, json }: Which & { period: Period }) =>
      withDatabase(async (db) => {
        await migrate(db)
        const generated = await generateStatements(db, period, customer)
        if (json) return print({ generated })
        for (const { ref_id, total_amount } of generated) print(`${ref_id}  ${total_amount} USDG`)
        print(`${generated.length} statements generated for ${period.name}.`)
      }),
    )

  statements
    .command('pay')
    .description('pay the generated statements: credit each reward to the default profile of its customer')
    .option('--period <YYYY-MM>', 'only those of this month', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .option('--json', 'print JSON')
    .action(({ period, customer, json }: Which) =>
      withDatabase(async (db) => {
        await migrate(db)
        const paid = await payStatements(db, { period, customerId: customer })
        if (json) return print({ paid })
        for (const { ref_id, amount_paid } of paid) print(`${ref_id}  ${amount_paid} USDG`)
        print(`${paid.length} statements paid.`)
      }),
    )

  statements
    .command('explain')
    .description(
      'derive a statement anew from the ledger, day by day; exit code 1 when it states something else',
    )
    .argument('<statement_id>', 'statement', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db) => {
        const explained = await explainStatement(db, id)
        if (explained === undefined) throw new Error(`there is no generated statement ${id}`)
        const { statement, derivation } = explained
        const stated = statement.metadata!.total_amount
        print(json ? { statement, derivation } : derivationTable(derivation, stated))
        if (derivation.total !== stated) process.exitCode = 1
      }),
    )

  const rate = program
    .command('rewards')
    .description('the USDG reward')
    .command('rate')
    .description('its annual rate')

  rate
    .command('set')
    .description('set the annual rate from a day on; generated statements stay as they are')
    .requiredOption('--from <YYYY-MM-DD>', 'first day it is in force, UTC', day)
    .requiredOption('--rate <rate>', 'annual rate from 0 to 1: 0.0376 is 3.76 %', rewardRate)
    .option('--json', 'print JSON')
    .action(({ from, rate, json }: { from: string; rate: string; json?: true }) =>
      withDatabase(async (db) => {
        await migrate(db)
        const set = await setRewardRate(db, from, rate)
        print(json ? set : `The rate is ${set.rate} from ${set.effective_from} on.`)
      }),
    )

  rate
    .command('list')
    .description('list every rate that was set; of one day, the last counts')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const rates = await listRewardRates(db)
        if (json) return print({ rates })
        for (const { effective_from, rate, set_at } of rates)
          print(`${effective_from}  ${rate}  (set ${set_at})`)
      }),
    )
}

function period(text: string): Period {
  const read = periodOf(text)
  if (read === undefined) throw new InvalidArgumentError('must be a month, YYYY-MM.')
  return read
}

function day(text: string): string {
  try {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) throw new RangeError('not in this form')
    return Temporal.PlainDate.from(text, { overflow: 'reject' }).toString()
  } catch {
    throw new InvalidArgumentError('must be a day, YYYY-MM-DD.')
  }
}

function rewardRate(text: string): string {
  const rate = parseAmount(text, RATE_DECIMALS)
  if (rate === undefined || rate > 10n ** BigInt(RATE_DECIMALS))
    throw new InvalidArgumentError(
      `must be a decimal number from 0 to 1 with at most ${RATE_DECIMALS} decimals.`,
    )
  return text
}

/** A derivation for people. */
function derivationTable({ days, products, total }: Derivation, stated: string): string {
  const head = {
    day: 'day',
    balance: 'balance',
    rate: 'rate',
    product: 'balance x rate',
    reward: 'reward (/ 365)',
  }
  const columns = ['day', 'balance', 'rate', 'product', 'reward'] as const
  const rows = [head, ...days]
  const width = (column: (typeof columns)[number]) => Math.max(...rows.map((row) => row[column].length))
  const lines = rows.map((row) => columns.map((column) => row[column].padStart(width(column))).join('  '))
  return [
    ...lines,
    '',
    `sum of balance x rate    ${products}`,
    `by 365, rounded down     ${total}`,
    `the statement states     ${stated}${stated === total ? '' : '  WHICH DIFFERS'}`,
  ].join('\n')
}
