import { Type } from 'typebox'
import { Closed, Timestamp } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forAll, transaction } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { ClockInUse, ClockNotMoved } from '../../db/sandbox-clock.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { operation } from '../operation.ts'

export const advanceSandboxClock = operation({
  method: 'POST',
  url: '/v2/sandbox/clock',
  scope: 'sandbox:write_sandbox',
  tag: 'Sandbox',
  repeats: 'each request moves the clock',
  summary: 'Advance Sandbox Clock',
  description:
    'Moves the time of the whole sandbox forward: what falls due until then happens now, such as the statements of a month, the ends of quotes, approvals, limits and cooling times, and the retries of webhooks. It never moves back, except by a reset. Access tokens and signatures of webhooks keep the real time. Exists in sandbox mode only.',
  sandboxOnly: true,
  body: Closed({
    advance: Type.String({
      maxLength: 40,
      pattern:
        '^P(?=.)(\\d{1,4}Y)?(\\d{1,4}M)?(\\d{1,4}W)?(\\d{1,5}D)?(T(?=.)(\\d{1,6}H)?(\\d{1,8}M)?(\\d{1,9}S)?)?$',
      inWords: 'must be an ISO 8601 duration, such as PT90M, P1D or P1M',
      description: 'By how much, as an ISO 8601 duration. `PT0S` reads the time.',
      examples: ['P1M'],
    }),
  }),
  example: { bodies: { 'An hour': { advance: 'PT1H' } } },
  reply: Type.Object({ now: Timestamp('The time of the sandbox.') }),
  problems: ['unavailable'],
  async run({ body: { advance }, origin, db, advanceClock }) {
    if (advanceClock === undefined) throw problem.forbidden('this sandbox was not started by bursar serve')
    const now = await advanceClock(advance).catch((error: unknown) => {
      if (error instanceof RangeError) throw problem.badRequest(`advance: ${error.message}`, 'advance')
      if (error instanceof ClockNotMoved) throw problem.forbidden(error.message)
      if (error instanceof ClockInUse) throw problem.unavailable(`${error.message}; try again`, error)
      throw error
    })
    const record = audited(origin, 'deployment.advance_clock', 'clock', { after: { now } })
    await transaction(forAll(db), (tx) => recordNow(tx, PLATFORM_ID, record))
    return { now }
  },
})
