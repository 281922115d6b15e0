import type { Command } from 'commander'
import { askAgain, listScreened, SCREENED_MAX } from '../settlement/screen-payments.ts'
import { logOperator, originOfCommand, withDatabase } from './command-line.ts'
import { print, table } from './output.ts'

/** Defines `bursar screening`. */
export function screeningCommands(program: Command): void {
  const screening = program
    .command('screening')
    .description('payments that the screening endpoint has not allowed (docs/guides/screening.md)')
  screening
    .command('list')
    .description(
      `list the payments that wait for their screening, oldest first, at most ${SCREENED_MAX}: WAITING for an answer, or REJECTED`,
    )
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const payments = await listScreened(db)
        if (json) return print({ payments })
        if (payments.length === 0) return print('No payment waits for its screening.')
        print(
          table(
            ['payment', 'kind', 'customer_id', 'created_at', 'state', '>asked', 'detail'],
            payments.map((one) => [
              ...[one.subject, one.kind, one.customer_id, one.created_at, one.state],
              ...[String(one.attempts), one.detail],
            ]),
          ),
        )
      }),
    )
  screening
    .command('ask')
    .description('ask about payments at once, also about rejected ones: the endpoint decides again')
    .argument('<payment...>', 'payments, as bursar screening list names them')
    .option('--json', 'print JSON')
    .action((subjects: string[], { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const asked = await askAgain(db, [...new Set(subjects)], originOfCommand())
        for (const { customer_id, kind, subject } of asked)
          logOperator(settings, 'asked for a screening again', { customer_id, kind, subject })
        print(json ? { payments: asked } : `Asked about ${asked.length} payments: bursar screening list.`)
      }),
    )
}
