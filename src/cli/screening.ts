import type { Command } from 'commander'
import { askAgain, listScreened, SCREENED_MAX } from '../rails/screening/screen-payments.ts'
import { waiveScreening } from '../rails/screening/requirement.ts'
import { inDatabase, inOwnersDatabase } from './command-line.ts'
import { group } from './define.ts'

export function screeningCommands(program: Command): void {
  const screening = group(
    program,
    ['screening', 'payments that the screening endpoint has not allowed (docs/guides/screening.md)'],
    inDatabase,
    { '<payment>': ['payment, as bursar screening list names it'] },
  )
  screening.list('list', {
    about: `list the payments that wait for their screening, oldest first, at most ${SCREENED_MAX}: WAITING for an answer, or REJECTED`,
    key: 'payments',
    none: 'No payment waits for its screening.',
    run: ({ db }) => listScreened(db),
    columns: [
      ['payment', ({ subject }) => subject],
      ...(['kind', 'customer_id', 'created_at', 'state'] as const),
      ['>asked', ({ attempts }) => attempts],
      'detail',
    ],
  })
  screening.command('ask <payment...>', {
    about: 'ask about payments at once, also about rejected ones: the endpoint decides again',
    run: async ({ db, origin }, { payment }) => ({
      payments: await askAgain(db, [...new Set(payment)], origin),
    }),
    says: ({ payments }) => `Asked about ${payments.length} payments: bursar screening list.`,
    logs: 'asked for a screening again',
    logged: ({ payments }) => ({
      payments: payments.map(({ customer_id, kind, subject }) => ({ customer_id, kind, subject })),
    }),
  })
  screening.command('waive', {
    in: inOwnersDatabase,
    about:
      'let payments go on without screening, as the role that owns the schema: stop the processes with BURSAR_SCREENING_URL first, because the next start with it requires screening again',
    async run({ db: owner, origin }) {
      const required_since = await waiveScreening(owner, origin)
      return { changed: required_since !== undefined, ...(required_since && { required_since }) }
    },
    says: ({ required_since }) =>
      required_since === undefined
        ? 'Payments need no screening.'
        : `Payments need no screening any more. They had to be screened since ${required_since}.`,
    logs: 'waived the screening of payments',
    logged: ({ required_since }) => ({ required_since }),
  })
}
