import { InvalidArgumentError, type Command } from 'commander'
import { Temporal } from 'temporal-polyfill'
import { parseAmount } from '../assets/amount.ts'
import { explainStatement } from '../statements/explain-statement.ts'
import { listAllStatements } from '../statements/list-all-statements.ts'
import { generateStatements, type OnStart } from '../statements/generate-statements.ts'
import { payStatements } from '../statements/pay-statements.ts'
import { periodOf, type Period } from '../statements/period.ts'
import { reversePayment } from '../statements/reverse-payment.ts'
import { listRewardRates, setRewardRate } from '../statements/reward-rates.ts'
import { RATE_DECIMALS, type Derivation, type RewardMethod } from '../statements/reward.ts'
import {
  logOperator,
  requireCustomer,
  uuid,
  withDatabase,
  withMigratedDatabase,
  withNodes,
  originOfCommand,
} from './command-line.ts'
import { EXIT } from './exit.ts'
import { print, startProgress, table, type Progress } from './output.ts'

interface Selection {
  period?: Period
  customer?: string
  json?: true
}

/** Defines `bursar statements` and `bursar rewards`. */
export function statementCommands(program: Command): void {
  const statements = program.command('statements').description('monthly statements of the USDG reward')
  defineGenerate(statements)
  definePay(statements)
  defineList(statements)
  defineExplain(statements)
  defineReverse(statements)

  const rate = program
    .command('rewards')
    .description('the USDG reward')
    .command('rate')
    .description('its annual rate')
  defineSetRate(rate)
  defineListRates(rate)
}

function defineGenerate(statements: Command): void {
  statements
    .command('generate')
    .description('generate the statements of a past month; existing statements stay unchanged')
    .requiredOption('--period <YYYY-MM>', 'month, UTC', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .option('--json', 'print JSON')
    .action(({ period, customer, json }: Selection & { period: Period }) =>
      withNodes(async (nodes, settings) => {
        if (customer !== undefined) await requireCustomer(nodes.shared, customer)
        const generated = await withBar(json, (onStart) =>
          generateStatements(nodes, period, customer, onStart, originOfCommand()),
        )
        if (generated.length > 0)
          logOperator(settings, 'generated statements', { period: period.name, count: generated.length })
        if (json) return print({ generated })
        for (const { ref_id, total_amount } of generated) print(`${ref_id}  ${total_amount} USDG`)
        print(`${generated.length} statements generated for ${period.name}.`)
      }),
    )
}

function definePay(statements: Command): void {
  statements
    .command('pay')
    .description("pay the generated statements: credit each reward to its customer's default profile")
    .option('--period <YYYY-MM>', 'only statements of this month', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .option('--json', 'print JSON')
    .action(({ period, customer, json }: Selection) =>
      withMigratedDatabase(async (db, settings) => {
        if (customer !== undefined) await requireCustomer(db, customer)
        const paid = await withBar(json, (onStart) =>
          payStatements(db, { period, customerId: customer, origin: originOfCommand() }, onStart),
        )
        if (paid.length > 0)
          logOperator(settings, 'paid statements', { statement_ids: paid.map((one) => one.statement_id) })
        if (json) return print({ paid })
        for (const { ref_id, amount_paid } of paid) print(`${ref_id}  ${amount_paid} USDG`)
        print(`${paid.length} statements paid.`)
      }),
    )
}

function defineList(statements: Command): void {
  statements
    .command('list')
    .description('list the statements, newest month first')
    .option('--period <YYYY-MM>', 'only statements of this month', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .option('--json', 'print JSON')
    .action(({ period, customer, json }: Selection) =>
      withDatabase(async (db) => {
        if (customer !== undefined) await requireCustomer(db, customer)
        const statements = await listAllStatements(db, { period, customerId: customer })
        if (json) return print({ statements })
        const columns = ['statement_id', 'customer_id', 'period', 'status', 'asset', '>owed', '>paid']
        print(
          table(
            columns,
            statements.map((one) => [
              one.statement_id,
              one.customer_id,
              one.period,
              one.status,
              one.asset,
              one.total_amount_owed,
              one.amount_paid,
            ]),
          ),
        )
      }),
    )
}

function defineExplain(statements: Command): void {
  statements
    .command('explain')
    .description('recompute a statement from the ledger, day by day; exit code 1 when the result differs')
    .argument('<statement_id>', 'statement', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db) => {
        const explained = await explainStatement(db, id)
        if (explained === undefined) throw new Error(`there is no generated statement ${id}`)
        const { statement, method, derivation } = explained
        const stated = statement.metadata!.total_amount
        print(json ? { statement, method, derivation } : describeDerivation(derivation, method, stated))
        if (derivation.total !== stated) process.exitCode = EXIT.failed
      }),
    )
}

function defineReverse(statements: Command): void {
  statements
    .command('reverse')
    .description('take back the reward of a statement that was paid by mistake; it is not paid again')
    .argument('<statement_id>', 'statement', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withMigratedDatabase(async (db, settings) => {
        const reversed = await reversePayment(db, id, originOfCommand())
        logOperator(settings, 'took back the reward of a statement', { ...reversed })
        print(json ? reversed : `${reversed.amount} USDG taken back by transfer ${reversed.transfer_id}.`)
      }),
    )
}

function defineSetRate(rate: Command): void {
  rate
    .command('set')
    .description('set the annual rate from a day on; generated statements stay unchanged')
    .requiredOption('--from <YYYY-MM-DD>', 'first day of the new rate, UTC', day)
    .requiredOption('--rate <rate>', 'annual rate from 0 to 1: 0.0376 is 3.76 %', rewardRate)
    .option('--json', 'print JSON')
    .action(({ from, rate, json }: { from: string; rate: string; json?: true }) =>
      withMigratedDatabase(async (db, settings) => {
        const set = await setRewardRate(db, from, rate, originOfCommand())
        logOperator(settings, 'set the reward rate', { ...set })
        print(json ? set : `The rate is ${set.rate} from ${set.effective_from} on.`)
      }),
    )
}

function defineListRates(rate: Command): void {
  rate
    .command('list')
    .description('list every rate ever set; for each day, the last one counts')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const rates = await listRewardRates(db)
        if (json) return print({ rates })
        print(
          table(
            ['effective_from', '>rate', 'set_at'],
            rates.map(({ effective_from, rate, set_at }) => [effective_from, rate, set_at]),
          ),
        )
      }),
    )
}

/** Runs work that reports its size and its progress, with a progress bar on a terminal. */
async function withBar<T>(json: true | undefined, work: (onStart: OnStart) => Promise<T>): Promise<T> {
  let bar: Progress | undefined
  try {
    return await work((count) => (bar = startProgress(count, { quiet: json })).step)
  } finally {
    bar?.stop()
  }
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

const BALANCE_OF: Record<RewardMethod, string> = {
  TIME_WEIGHTED: 'average balance',
  END_OF_DAY: 'balance at 24:00',
}

/** The derivation of a reward as a table, one row a day. */
function describeDerivation(
  { days, products, total }: Derivation,
  method: RewardMethod,
  stated: string,
): string {
  const lines = table(
    ['>day', `>${BALANCE_OF[method]}`, '>rate', '>reward (/ 365)'],
    days.map(({ day, average_balance, rate, reward }) => [day, average_balance, rate, reward]),
  )
  return [
    lines,
    '',
    `sum of balance x seconds x rate        ${products}`,
    `by 86,400 s and 365 days, rounded down ${total}`,
    `total in the statement                 ${stated}${stated === total ? '' : '  DIFFERS'}`,
  ].join('\n')
}
