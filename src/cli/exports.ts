import type { Command } from 'commander'
import { plainTextOf } from '../money/books/plain-text.ts'
import { reportPeriod } from '../resources/reports/book.ts'
import { COMMON } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'
import { printPart } from './output.ts'

const WORDS = {
  ...COMMON,
  '--from <time>': ['beginning of the time, such as 2026-01-01'],
  '--to <time>': ['its end, not included: now at the latest'],
} as const

/** The books for programs by other people, which compute every balance again. */
export function exportCommands(program: Command): void {
  const exports = group(program, ['export', 'the books as plain text'], inDatabase, WORDS)
  for (const name of ['hledger', 'beancount'] as const)
    exports.command(`${name} --from <time> --to <time> [--customer <id>]`, {
      about: `print the ledger, or what is one customer's, as a journal of ${name}`,
      json: 'no effect: the answer is a journal',
      async run({ allParts }, { customer, ...time }) {
        const book = { db: await allParts(), customerId: customer }
        for await (const part of plainTextOf(book, name, reportPeriod(time))) await printPart(part)
      },
    })
}
