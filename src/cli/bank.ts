import { readFile, stat } from 'node:fs/promises'
import type { Command } from 'commander'
import { FILE_BYTES_MAX } from '../rails/bank-statements/read.ts'
import { refuse } from '../rails/bank-statements/statement.ts'
import {
  getReconciliation,
  importBankStatement,
  listBankLines,
  matchBankLine,
  setBankRule,
} from '../resources/operators/bank-statements.ts'
import { uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'
import { tableOf } from './table.ts'

const WORDS = {
  '<file>': ['file: camt.053, MT940 or BAI2'],
  '<id>': ['line of a statement', uuid],
  '<state>': ['on or off', ['on', 'off']],
  '--state <state>': ['only lines in this state', ['OPEN', 'MATCHED']],
  '--date <date>': ['date, YYYY-MM-DD'],
  '--memo <memo>': ['it is a deposit with this memo'],
  '--transfer <id>': ['it is this wire, or returns it', uuid],
} as const

const BREAKS = ['kind', '>amount', 'date', '>age_days', 'line_id', 'transfer_id', 'text'] as const

const nameOf = (is: { kind?: string; transfer_id?: string; memo?: string | undefined }) =>
  `${is.kind} ${is.transfer_id ?? is.memo}`

export function bankCommands(program: Command): void {
  const bank = group(
    program,
    ['bank', 'statements of the bank: import, match, compare with the ledger'],
    inDatabase,
    WORDS,
  )
  bank.command('import <file>', {
    about: 'store the statements of a file, each once, and mark what is recorded already',
    async run({ operate }, { file }) {
      // Before it is read: a larger file would fill the memory.
      if ((await stat(file)).size > FILE_BYTES_MAX) refuse(`${file} is larger than ${FILE_BYTES_MAX} bytes`)
      return operate(importBankStatement, { file: await readFile(file, 'base64') })
    },
    says: ({ account, items, matched, changed }) =>
      changed
        ? [
            `Account ${account}, which all statements must be of.`,
            ...items.map(
              ({ date, lines, is_new }) => `${date}: ${lines} lines${is_new ? '' : ', imported before'}`,
            ),
            `${matched.length} lines are matched. The others: bursar bank lines --state OPEN`,
          ].join('\n')
        : 'Imported before, nothing has changed.',
    logs: 'imported bank statements',
    logged: ({ items }) => ({ statements: items.map(({ position }) => position) }),
  })
  bank.list('lines [--state <state>] [--date <date>]', {
    about: 'list lines of the statements, oldest first, and what each may be',
    key: 'lines',
    none: 'There are no such lines.',
    run: async ({ operate }, given) => (await operate(listBankLines, given)).items,
    columns: [
      ...(['id', 'date', '>amount', 'bank_reference', 'state'] as const),
      [
        'is',
        ({ candidates, ...own }) =>
          (own.kind ? [{ memo: undefined, ...own }] : candidates).map(nameOf).join(', '),
      ],
      'text',
    ],
  })
  bank.command('match <id> [--memo <memo>] [--transfer <id>]', {
    about: 'match a line as proposed, or with a memo or transfer; records what is not recorded yet',
    run: ({ operate }, { id, memo, transfer }) => operate(matchBankLine, { id, memo, transfer_id: transfer }),
    says: ({ line_id, transfer_id, kind, changed }) =>
      `Line ${line_id} is transfer ${transfer_id} (${kind}).${changed ? '' : ' It was already matched.'}`,
    logs: 'matched a line of a bank statement',
  })
  bank.command('reconciliation [--date <date>]', {
    about: "compare the bank's closing balance with the ledger's account bank, and explain the difference",
    run: ({ operate }, given) => operate(getReconciliation, given),
    says: ({ items, left_off, ...sums }, _, context) =>
      [
        `Bank ${sums.bank} (${sums.statement_date}), ledger ${sums.ledger}: difference ${sums.difference}, of it ${sums.opening} from before the first statement.`,
        ...(items.length > 0 ? [tableOf(items, BREAKS, context)] : []),
        ...(left_off > 0 ? [`${left_off} more are not listed.`] : []),
        sums.explained ? 'Explained: nothing remains.' : `Not explained: ${sums.remainder}`,
      ].join('\n'),
    fails: ({ explained }) => !explained,
  })
  const rule = bank.group('rule', 'what is matched without a person')
  rule.command('exact <state>', {
    about: 'turn matching of exact lines at import on or off; off by default',
    run: ({ operate }, { state }) => operate(setBankRule, { exact: state === 'on' }),
    says: ({ exact, changed }) =>
      `The rule exact is ${exact ? 'on' : 'off'}.${changed ? '' : ' It was before.'}`,
    logs: 'set the rule for exact lines',
  })
}
