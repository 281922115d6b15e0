import type { Command } from 'commander'
import type { Operation } from '../http/operation.ts'
import { plainTextOf } from '../money/books/plain-text.ts'
import { listGeneralLedger } from '../resources/reports/general-ledger.ts'
import { listActivityOfTime } from '../resources/reports/list-activity.ts'
import { listClosedDays } from '../resources/reports/list-closed-days.ts'
import { listRecordedWires } from '../resources/reports/list-wires.ts'
import { reportPeriod } from '../resources/reports/report.ts'
import { getTrialBalance, listAccountsOfPlatform } from '../resources/reports/trial-balance.ts'
import { uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'
import { printPart } from './output.ts'
import { tableOf } from './table.ts'

const WORDS = {
  '--from <time>': ['beginning of the time, such as 2026-01-01 (default: that of the ledger)'],
  '--to <time>': ['its end, not included (default: now)'],
  '--at <time>': ['balances before this moment (default: now)'],
  '--asset <asset>': ['only this asset'],
  '--account <account>': ['only this account, such as bank'],
  '--profile <id>': ['only this profile', uuid],
  '--by <what>': ['what each line is about', ['day', 'type', 'asset', 'profile']],
  '--customer <id>': ['only the entries of this customer', uuid],
  '--csv': ['print a file for spreadsheets, with all lines'],
} as const

/** What people read of each line; `--csv` and `--json` have all of it. */
const COLUMNS: [operation: Operation, columns: string][] = [
  [getTrialBalance, 'account name profile_id asset >opening >debit >credit >closing'],
  [listAccountsOfPlatform, 'account name kind asset >opening >debit >credit >closing'],
  [listGeneralLedger, 'created_at account asset >amount >balance type ref_id transfer_id'],
  [listActivityOfTime, 'key asset >count >refunded >in >out >fees >network_fees >value_usd'],
  [listRecordedWires, 'recorded_at kind bank_reference >amount asset memo_id transfer_id recorded_by'],
  [listClosedDays, 'day closed_at digest'],
]

type Line = Record<string, string>
type Answer = { from: string; to: string; items: Line[]; sums?: Line[]; next_page_cursor?: string }

/** A report as a command: its name, and the parameters of its operation as options. */
function usageOf({ url, query }: Operation): string {
  const options = Object.keys(WORDS).filter((flags) => {
    const name = /\w+/.exec(flags)![0]
    return name === 'csv' || name in query!.properties || `${name}_id` in query!.properties
  })
  return [url.split('/').at(-1), ...options.map((flags) => `[${flags}]`)].join(' ')
}

/** The reports of the whole ledger, as the API answers them to an operator of the deployment. */
export function reportCommands(program: Command): void {
  const about = 'reports for whoever keeps the books: of all customers and the platform'
  const report = group(program, ['report', about], inDatabase, WORDS)
  for (const [operation, columns] of COLUMNS)
    report.command<string, Answer | undefined>(usageOf(operation), {
      about: /^[^.:]*/.exec(operation.description!)![0],
      async run({ operate }, { profile, customer, csv, ...given }: Record<string, unknown>) {
        const asked = { ...given, profile_id: profile, customer_id: customer }
        if (csv === undefined) return (await operate(operation, asked)) as Answer
        const run = operation.forms!['text/csv']!
        for await (const part of await operate({ ...operation, run }, asked)) await printPart(part)
        return undefined
      },
      says({ from, to, items, sums = [], next_page_cursor }) {
        const rows: Line[] = [...items, ...sums.map((sum) => ({ ...sum, account: 'all' }))]
        const more = next_page_cursor === undefined ? '' : '\nThere are more: --csv prints all.'
        return `From ${from} to before ${to}\n${tableOf(rows, columns.split(' '), undefined)}${more}`
      },
    })
}

/** The books for programs by other people, which compute every balance again. */
export function exportCommands(program: Command): void {
  const exports = group(program, ['export', 'the books as plain text'], inDatabase, WORDS)
  for (const name of ['hledger', 'beancount'] as const)
    exports.command(`${name} [--from <time>] [--to <time>] [--customer <id>]`, {
      about: `print the ledger, or what is one customer's, as a journal of ${name}`,
      json: 'no effect: the answer is a journal',
      async run({ allParts }, { customer, ...time }) {
        const book = { db: await allParts(), customerId: customer }
        for await (const part of plainTextOf(book, name, reportPeriod(time))) await printPart(part)
      },
    })
}
