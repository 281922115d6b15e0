import { InvalidArgumentError, type Command } from 'commander'
import { Temporal } from 'temporal-polyfill'
import { parseAmount } from '../contract/assets/amount.ts'
import { explainStatement } from '../resources/statements/explain-statement.ts'
import { listAllStatements } from '../resources/statements/list-all-statements.ts'
import { generateStatements, type OnStart } from '../resources/statements/generate-statements.ts'
import { payStatements } from '../resources/statements/pay-statements.ts'
import { periodOf, type Period } from '../resources/statements/period.ts'
import { reversePayment } from '../resources/statements/reverse-payment.ts'
import { listRewardRates, setRewardRate } from '../resources/statements/reward-rates.ts'
import { RATE_DECIMALS, type Derivation } from '../resources/statements/reward.ts'
import { uuid } from './arguments.ts'
import { inDatabase, inMigratedDatabase, onNodes } from './command-line.ts'
import { define, type Subcommand } from './define.ts'
import { EXIT } from './exit.ts'
import { startProgress, type Progress } from './progress.ts'
import { table } from './table.ts'
import { ownProcess } from './own-process.ts'

interface Selection {
  period?: Period
  customer?: string
  json?: true
}

export function statementCommands(program: Command): void {
  const statements = define(program, 'statements', 'monthly statements of the USDG reward')
  defineMonthly(statements)
  define(statements, 'list', 'list the statements, newest month first')
    .option('--period <YYYY-MM>', 'only statements of this month', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .list(inDatabase, {
      key: 'statements',
      read: async ({ db }, { period, customer }: Selection) => {
        return listAllStatements(db, { period, customerId: customer })
      },
      columns: [
        ...(['statement_id', 'customer_id', 'period', 'status', 'asset'] as const),
        ['>owed', ({ total_amount_owed }) => total_amount_owed],
        ['>paid', ({ amount_paid }) => amount_paid],
      ],
    })
  defineOne(statements)
  defineRate(define(define(program, 'rewards', 'the USDG reward'), 'rate', 'its annual rate'))
}

function defineMonthly(statements: Subcommand): void {
  define(
    statements,
    'generate',
    'generate the statements of a past month; existing statements stay unchanged',
  )
    .requiredOption('--period <YYYY-MM>', 'month, UTC', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .answer(
      onNodes(inMigratedDatabase),
      async ({ nodes, did, origin }, selected: Selection & { period: Period }) => {
        const { period, customer, json } = selected
        const generated = await withBar(json, (onStart) =>
          generateStatements(nodes, period, customer, onStart, origin),
        )
        if (generated.length > 0)
          did('generated statements', { period: period.name, count: generated.length })
        const lines = generated.map(({ ref_id, total_amount }) => `${ref_id}  ${total_amount} USDG`)
        const count = `${generated.length} statements generated for ${period.name}.`
        return [{ generated }, [...lines, count].join('\n')]
      },
    )
  define(
    statements,
    'pay',
    "pay the generated statements: credit each reward to its customer's default profile",
  )
    .option('--period <YYYY-MM>', 'only statements of this month', period)
    .option('--customer <id>', 'only for this customer', uuid)
    .answer(inMigratedDatabase, async ({ db, did, origin }, { period, customer, json }: Selection) => {
      const paid = await withBar(json, (onStart) =>
        payStatements(db, { period, customerId: customer, origin }, onStart),
      )
      if (paid.length > 0) did('paid statements', { statement_ids: paid.map((one) => one.statement_id) })
      const lines = paid.map(({ ref_id, amount_paid }) => `${ref_id}  ${amount_paid} USDG`)
      return [{ paid }, [...lines, `${paid.length} statements paid.`].join('\n')]
    })
}

function defineOne(statements: Subcommand): void {
  define(
    statements,
    'explain',
    'recompute a statement from the ledger, day by day; exit code 1 when the result differs',
  )
    .argument('<statement_id>', 'statement', uuid)
    .answer(inDatabase, async ({ db }, id: string) => {
      const explained = await explainStatement(db, id)
      if (explained === undefined) throw new Error(`there is no generated statement ${id}`)
      const { statement, derivation } = explained
      const stated = statement.metadata!.total_amount
      if (derivation.total !== stated) ownProcess().exitCode = EXIT.failed
      return [{ statement, method: 'TIME_WEIGHTED', derivation }, describeDerivation(derivation, stated)]
    })
  define(
    statements,
    'reverse',
    'take back the reward of a statement that was paid by mistake; it is not paid again',
  )
    .argument('<statement_id>', 'statement', uuid)
    .answer(inMigratedDatabase, async ({ db, did, origin }, id: string) => {
      const reversed = await reversePayment(db, id, origin)
      did('took back the reward of a statement', { ...reversed })
      return [reversed, `${reversed.amount} USDG taken back by transfer ${reversed.transfer_id}.`]
    })
}

function defineRate(rate: Subcommand): void {
  define(rate, 'set', 'set the annual rate from a day on; generated statements stay unchanged')
    .requiredOption('--from <YYYY-MM-DD>', 'first day of the new rate, UTC', day)
    .requiredOption('--rate <rate>', 'annual rate from 0 to 1: 0.0376 is 3.76 %', rewardRate)
    .answer(
      inMigratedDatabase,
      async ({ db, did, origin }, { from, rate }: { from: string; rate: string }) => {
        const set = await setRewardRate(db, from, rate, origin)
        did('set the reward rate', { ...set })
        return [set, `The rate is ${set.rate} from ${set.effective_from} on.`]
      },
    )
  define(rate, 'list', 'list every rate ever set; for each day, the last one counts').list(inDatabase, {
    key: 'rates',
    read: ({ db }) => listRewardRates(db),
    columns: ['effective_from', '>rate', 'set_at'],
  })
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

/** The derivation of a reward as a table, one row a day. */
function describeDerivation({ days, products, total }: Derivation, stated: string): string {
  const lines = table(
    ['>day', '>average balance', '>rate', '>reward (/ 365)'],
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
