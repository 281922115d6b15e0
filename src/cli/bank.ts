import { readFile, stat } from 'node:fs/promises'
import type { Command } from 'commander'
import { FILE_BYTES_MAX } from '../rails/bank-statements/read.ts'
import { refuse } from '../rails/bank-statements/statement.ts'
import * as statements from '../resources/operators/bank-statements.ts'
import { uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'
import { tableOf } from './table.ts'

const WORDS = {
  '<file>': ['file: camt.053, MT940 or BAI2'],
  '<id>': ['line of a statement', uuid],
  '--exact': ['match recent lines of camt.053 that are exact, without a person'],
  '--state <state>': ['only lines in this state', ['OPEN', 'MATCHED']],
  '--date <date>': ['date, YYYY-MM-DD'],
  '--is <memo_or_transfer>': ['memo of its deposit, or transfer that it is or returns'],
} as const
const BREAKS = ['kind', '>amount', 'date', '>age_days', 'line_id', 'transfer_id', 'text'] as const

export function bankCommands(program: Command): void {
  const bank = group(program, ['bank', 'bank statements: import, match, compare'], inDatabase, WORDS)
  bank.command('import <file> [--exact]', {
    about: 'store the statements of a file, each once, and mark what is recorded already',
    async run({ operate }, { file, exact }) {
      // Before it is read: a larger file would fill the memory.
      if ((await stat(file)).size > FILE_BYTES_MAX) refuse(`${file} is larger than ${FILE_BYTES_MAX} bytes`)
      return operate(statements.importBankStatement, { file: await readFile(file, 'base64'), exact })
    },
    says({ account, items, matched, changed }) {
      if (!changed) return 'Imported before, nothing has changed.'
      const told = items.map((it) => `${it.date}: ${it.lines} lines${it.is_new ? '' : ', imported before'}`)
      const others = `${matched.length} lines are matched. The others: bursar bank lines --state OPEN`
      return [`Account ${account}, which all statements must be of.`, ...told, others].join('\n')
    },
    logs: 'imported bank statements',
  })
  bank.list('lines [--state <state>] [--date <date>]', {
    about: 'list lines of the statements, newest first, and what each may be',
    key: 'lines',
    none: 'There are no such lines.',
    run: async ({ operate }, given) => (await operate(statements.listBankLines, given)).items,
    columns: [
      ...(['id', 'date', '>amount', 'bank_reference', 'state'] as const),
      ['is', ({ candidates }) => candidates.map(({ kind, is }) => `${kind} ${is}`).join(', ')],
      'text',
    ],
  })
  bank.operation('match <id> [--is <memo_or_transfer>]', statements.matchBankLine, {
    about: 'match a line as proposed, or with a memo or transfer; records what is not recorded yet',
    says: ({ line_id, transfer_id, kind, changed }) =>
      `Line ${line_id} is transfer ${transfer_id} (${kind}).${changed ? '' : ' It was already matched.'}`,
    logs: 'matched a line of a bank statement',
  })
  bank.operation('reconciliation [--date <date>]', statements.getReconciliation, {
    about: "compare the bank's closing balance with the ledger's account bank, and explain the difference",
    says: ({ items, left_off, ...sums }, _, context) =>
      [
        `Bank ${sums.bank} (${sums.statement_date}), ledger ${sums.ledger}: difference ${sums.difference}, of it ${sums.opening} from before the first statement.`,
        ...(items.length > 0 ? [tableOf(items, BREAKS, context)] : []),
        ...(left_off > 0 ? [`${left_off} more are not listed.`] : []),
        sums.explained ? 'Explained: nothing remains.' : `Not explained: ${sums.remainder}`,
      ].join('\n'),
    fails: ({ explained }) => !explained,
  })
}
