import { expect, test } from 'vitest'
import { accountSummary, identitySummary, STATUSES } from './holders.ts'

const BOTH = [false, true]
const FLAGS = BOTH.flatMap((user_disabled) =>
  BOTH.map((admin_disabled) => ({ user_disabled, admin_disabled })),
)
const isDisabled = (flags: (typeof FLAGS)[number]) => Object.values(flags).includes(true)

test.each(STATUSES)('a flag disables an identity that is %s, and its accounts', (status) => {
  for (const flags of FLAGS) {
    const identity = { status, ...flags }
    const summary = isDisabled(flags) ? 'DISABLED' : status
    expect(identitySummary(identity)).toBe(summary)
    for (const own of FLAGS)
      expect(accountSummary(own, identity)).toBe(isDisabled(own) ? 'DISABLED' : summary)
  }
})
