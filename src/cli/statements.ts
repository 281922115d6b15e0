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
import { COMMON, uuid } from './arguments.ts'
import { inDatabase, inMigratedDatabase } from './command-line.ts'
import { group } from './define.ts'
import { startProgress, type Progress } from './progress.ts'
import { table } from './table.ts'

const WORDS = {
  ...COMMON,
  '<statement_id>': ['statement', uuid],
  '--period <YYYY-MM>': ['month, UTC', period],
  '--from <YYYY-MM-DD>': ['first day of the new rate, UTC', day],
  '--rate <rate>': ['annual rate from 0 to 1: 0.0376 is 3.76 %', rewardRate],
} as const

export function statementCommands(program: Command): void {
  const about = 'monthly statements of the USDG reward'
  const statements = group(program, ['statements', about], inMigratedDatabase, WORDS)
  statements.command('generate --period <YYYY-MM> [--customer <id>]', {
    about: 'generate the statements of a past month; existing statements stay unchanged',
    run: async ({ allParts, origin }, { period, customer, json }) => ({
      generated: await withBar(json, async (onStart) =>
        generateStatements(await allParts(), period, customer, onStart, origin),
      ),
    }),
    says: ({ generated }, { period }) =>
      [
        ...generated.map(({ ref_id, total_amount }) => `${ref_id}  ${total_amount} USDG`),
        `${generated.length} statements generated for ${period.name}.`,
      ].join('\n'),
    logs: 'generated statements',
    logged: ({ generated }, { period }) =>
      generated.length > 0 && { period: period.name, count: generated.length },
  })
  statements.command('pay [--period <YYYY-MM>] [--customer <id>]', {
    about: "pay the generated statements: credit each reward to its customer's default profile",
    run: async ({ db, origin }, { period, customer: customerId, json }) => ({
      paid: await withBar(json, (onStart) => payStatements(db, { period, customerId, origin }, onStart)),
    }),
    says: ({ paid }) =>
      [
        ...paid.map(({ ref_id, amount_paid }) => `${ref_id}  ${amount_paid} USDG`),
        `${paid.length} statements paid.`,
      ].join('\n'),
    logs: 'paid statements',
    logged: ({ paid }) => paid.length > 0 && { statement_ids: paid.map(({ statement_id }) => statement_id) },
  })
  statements.list('list [--period <YYYY-MM>] [--customer <id>]', {
    in: inDatabase,
    about: 'list the statements, newest month first',
    key: 'statements',
    run: ({ db }, { period, customer: customerId }) => listAllStatements(db, { period, customerId }),
    columns: [
      ...(['statement_id', 'customer_id', 'period', 'status', 'asset'] as const),
      ['>owed', ({ total_amount_owed }) => total_amount_owed],
      ['>paid', ({ amount_paid }) => amount_paid],
    ],
  })
  statements.command('explain <statement_id>', {
    in: inDatabase,
    about: 'recompute a statement from the ledger, day by day; exit code 1 when the result differs',
    async run({ db }, { statement_id }) {
      const explained = await explainStatement(db, statement_id)
      if (explained === undefined) throw new Error(`there is no generated statement ${statement_id}`)
      return { statement: explained.statement, method: 'TIME_WEIGHTED', derivation: explained.derivation }
    },
    says: ({ statement, derivation }) => describeDerivation(derivation, statement.metadata!.total_amount),
    fails: ({ statement, derivation }) => derivation.total !== statement.metadata!.total_amount,
  })
  statements.command('reverse <statement_id>', {
    about: 'take back the reward of a statement that was paid by mistake; it is not paid again',
    run: ({ db, origin }, { statement_id }) => reversePayment(db, statement_id, origin),
    says: ({ amount, transfer_id }) => `${amount} USDG taken back by transfer ${transfer_id}.`,
    logs: 'took back the reward of a statement',
  })
  const rewards = group(program, ['rewards', 'the USDG reward'], inMigratedDatabase, WORDS)
  const rate = rewards.group('rate', 'its annual rate')
  rate.command('set --from <YYYY-MM-DD> --rate <rate>', {
    about: 'set the annual rate from a day on; generated statements stay unchanged',
    run: ({ db, origin }, { from, rate }) => setRewardRate(db, from, rate, origin),
    says: ({ rate, effective_from }) => `The rate is ${rate} from ${effective_from} on.`,
    logs: 'set the reward rate',
  })
  rate.list('list', {
    in: inDatabase,
    about: 'list every rate ever set; for each day, the last one counts',
    key: 'rates',
    run: ({ db }) => listRewardRates(db),
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
