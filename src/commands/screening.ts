import type { Command } from 'commander'
import { askAgain, listScreened, SCREENED_MAX } from '../settlement/screen-payments.ts'
import { waiveScreening } from '../screening/requirement.ts'
import { logOperator, originOfCommand, withDatabase, withOwnersDatabase } from './command-line.ts'
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
  screening
    .command('waive')
    .description(
      'let payments go on without screening, as the role that owns the schema: stop the processes with BURSAR_SCREENING_URL first, because the next start with it requires screening again',
    )
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withOwnersDatabase(async (owner, settings) => {
        const required_since = await waiveScreening(owner, originOfCommand())
        const changed = required_since !== undefined
        if (changed) logOperator(settings, 'waived the screening of payments', { required_since })
        if (json) return print({ changed, ...(changed && { required_since }) })
        print(
          changed
            ? `Payments need no screening any more. They had to be screened since ${required_since}.`
            : 'Payments need no screening.',
        )
      }),
    )
}
