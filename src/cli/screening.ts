import type { Command } from 'commander'
import { askAgain, listScreened, SCREENED_MAX } from '../rails/screening/screen-payments.ts'
import { waiveScreening } from '../rails/screening/requirement.ts'
import { inDatabase, inOwnersDatabase } from './command-line.ts'
import { define } from './define.ts'

export function screeningCommands(program: Command): void {
  const screening = define(
    program,
    'screening',
    'payments that the screening endpoint has not allowed (docs/guides/screening.md)',
  )
  define(
    screening,
    'list',
    `list the payments that wait for their screening, oldest first, at most ${SCREENED_MAX}: WAITING for an answer, or REJECTED`,
  ).list(inDatabase, {
    key: 'payments',
    none: 'No payment waits for its screening.',
    read: ({ db }) => listScreened(db),
    columns: [
      ['payment', ({ subject }) => subject],
      ...(['kind', 'customer_id', 'created_at', 'state'] as const),
      ['>asked', ({ attempts }) => attempts],
      'detail',
    ],
  })
  define(screening, 'ask', 'ask about payments at once, also about rejected ones: the endpoint decides again')
    .argument('<payment...>', 'payments, as bursar screening list names them')
    .answer(inDatabase, async ({ db, did, origin }, subjects: string[]) => {
      const asked = await askAgain(db, [...new Set(subjects)], origin)
      for (const { customer_id, kind, subject } of asked)
        did('asked for a screening again', { customer_id, kind, subject })
      return [{ payments: asked }, `Asked about ${asked.length} payments: bursar screening list.`]
    })
  define(
    screening,
    'waive',
    'let payments go on without screening, as the role that owns the schema: stop the processes with BURSAR_SCREENING_URL first, because the next start with it requires screening again',
  ).answer(inOwnersDatabase, async ({ db: owner, did, origin }) => {
    const required_since = await waiveScreening(owner, origin)
    if (required_since === undefined) return [{ changed: false }, 'Payments need no screening.']
    did('waived the screening of payments', { required_since })
    return [
      { changed: true, required_since },
      `Payments need no screening any more. They had to be screened since ${required_since}.`,
    ]
  })
}
