import type { Command } from 'commander'
import { listActivityOfTime } from '../resources/reports/list-activity.ts'
import { listClosedDays } from '../resources/reports/list-closed-days.ts'
import { listGeneralLedger } from '../resources/reports/general-ledger.ts'
import { listRecordedWires } from '../resources/reports/list-wires.ts'
import { getTrialBalance, listAccountsOfPlatform } from '../resources/reports/trial-balance.ts'
import type { Operation } from '../http/operation.ts'
import type { OperatorOperation } from '../resources/operation.ts'
import { COMMON, uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group, type Operate } from './define.ts'
import { printPart } from './output.ts'
import { tableOf } from './table.ts'

const WORDS = {
  ...COMMON,
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

interface Answer {
  from?: string
  to?: string
  items: Record<string, string>[]
  sums?: Record<string, string>[]
  next_page_cursor?: string
}

interface Report {
  usage: string
  about: string
  operation: Operation | OperatorOperation
  columns: readonly string[]
}

const BALANCES = ['>opening', '>debit', '>credit', '>closing']
const REPORTS: readonly Report[] = [
  {
    usage:
      'trial-balance [--from <time>] [--at <time>] [--asset <asset>] [--by <what>] [--customer <id>] [--csv]',
    about:
      'opening, debit, credit and closing of each account, and their sums; negative: what the platform has',
    operation: getTrialBalance,
    columns: ['account', 'name', 'profile_id', 'asset', ...BALANCES],
  },
  {
    usage: 'accounts [--from <time>] [--at <time>] [--asset <asset>] [--customer <id>] [--csv]',
    about: 'the accounts of the platform: bank, wallets, fees, network fees, rewards, what is under way',
    operation: listAccountsOfPlatform,
    columns: ['account', 'name', 'kind', 'asset', ...BALANCES],
  },
  {
    usage:
      'general-ledger [--from <time>] [--to <time>] [--account <account>] [--asset <asset>] [--profile <id>] [--customer <id>] [--csv]',
    about: 'entries in the order of their posting, with the balance of their account after each',
    operation: listGeneralLedger,
    columns: ['created_at', 'account', 'asset', '>amount', '>balance', 'type', 'ref_id', 'transfer_id'],
  },
  {
    usage: 'activity [--from <time>] [--to <time>] [--by <what>] [--customer <id>] [--csv]',
    about: 'transfers, what came and went, fees, network fees and value in USD of a time',
    operation: listActivityOfTime,
    columns: ['key', 'asset', '>count', '>refunded', '>in', '>out', '>fees', '>network_fees', '>value_usd'],
  },
  {
    usage: 'wires [--from <time>] [--to <time>] [--csv]',
    about: "the wires that operators recorded, with the bank's references",
    operation: listRecordedWires,
    columns: [
      'recorded_at',
      'kind',
      'bank_reference',
      '>amount',
      'asset',
      'memo_id',
      'transfer_id',
      'recorded_by',
    ],
  },
  {
    usage: 'closed-days [--from <time>] [--to <time>]',
    about: 'the days that are closed, whose reports never change, with the digests of their sums',
    operation: listClosedDays,
    columns: ['day', 'closed_at', 'digest'],
  },
]

/** The reports of the whole ledger, as the API answers them to an operator of the deployment. */
export function reportCommands(program: Command): void {
  const about = 'reports for whoever keeps the books: of all customers and the platform'
  const report = group(program, ['report', about], inDatabase, WORDS)
  for (const { usage, about, operation, columns } of REPORTS)
    report.command<string, Answer | undefined>(usage, {
      about,
      async run({ operate }, { profile, customer, csv, ...given }: Record<string, unknown>) {
        const asked = { ...given, profile_id: profile, customer_id: customer }
        if (csv === undefined) return (await operate(operation as OperatorOperation, asked)) as Answer
        await printFile(operate, operation, asked)
        return undefined
      },
      says({ from, to, items, sums = [], next_page_cursor }) {
        const time = to === undefined ? '' : `From ${from} to before ${to}\n`
        const rows: Record<string, string>[] = [...items, ...sums.map((sum) => ({ ...sum, account: 'all' }))]
        const more = next_page_cursor === undefined ? '' : '\nThere are more: --csv prints all.'
        return `${time}${tableOf(rows, columns, undefined)}${more}`
      },
    })
}

async function printFile(operate: Operate, operation: Operation | OperatorOperation, asked: object) {
  const run = operation.forms!['text/csv'] as () => Promise<AsyncIterable<string>>
  for await (const part of await operate({ ...operation, run }, asked)) await printPart(part)
}
