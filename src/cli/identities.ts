import { InvalidArgumentError, type Command } from 'commander'
import { Temporal } from 'temporal-polyfill'
import { listAllIdentities, IDENTITIES_MAX } from '../resources/identities/list-all-identities.ts'
import type { Identity } from '../money/records/identity.ts'
import { IDENTITY_DECISIONS, setIdentityStatus } from '../resources/identities/set-identity-status.ts'
import { STATUSES } from '../money/records/holders.ts'
import { COMMON, uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'
import { linesOf } from './output.ts'

/** The change that each command makes, and its description. */
const CHANGES = {
  approve: [IDENTITY_DECISIONS.APPROVE, 'mark an identity as verified; it may withdraw'],
  deny: [IDENTITY_DECISIONS.DENY, 'mark the verification of an identity as failed; it may not withdraw'],
  reopen: [
    IDENTITY_DECISIONS.REOPEN,
    'require a new verification of an identity; it may not withdraw until it is approved',
  ],
  disable: [IDENTITY_DECISIONS.DISABLE, "stop an identity's withdrawals, as the platform's administrator"],
  enable: [IDENTITY_DECISIONS.ENABLE, 'undo disable; an identity that its API user disabled stays disabled'],
} as const

const WORDS = {
  ...COMMON,
  '<identity_id>': ['identity', uuid],
  '--status <status>': ['only identities with this summary_status', STATUSES],
  '--after <id>': ['only identities after this one, for the next page', uuid],
  '--seen <updated_at>': ['refuse when the identity was updated after this time', time],
} as const

export function identityCommands(program: Command): void {
  const about = 'identities: only APPROVED identities may withdraw'
  const identity = group(program, ['identity', about], inDatabase, WORDS)
  identity.list('list [--customer <id>] [--status <status>] [--after <id>]', {
    about: `list the identities, oldest first, at most ${IDENTITIES_MAX}`,
    key: 'identities',
    run: ({ db }, { customer: customerId, status: summaryStatus, after }) =>
      listAllIdentities(db, { customerId, summaryStatus, after }),
    columns: [
      ['identity_id', ({ id }) => id],
      ...(['customer_id', 'ref_id', 'type', 'summary_status'] as const),
      ['name', nameOf],
      ...(['created_at', 'updated_at'] as const),
    ],
  })
  for (const [name, [change, about]] of Object.entries(CHANGES))
    identity.command(
      `${name} <identity_id>${name === 'approve' ? ' [--seen <updated_at>]' : ''}` as Decision,
      {
        about,
        async run({ db, origin }, { identity_id, seen }) {
          const changed = await setIdentityStatus(db, identity_id, { ...change, seen }, origin)
          if (changed === undefined) throw new Error(`there is no identity ${identity_id}`)
          const { status, admin_disabled, user_disabled, summary_status } = changed
          return { identity_id, status, admin_disabled, user_disabled, summary_status }
        },
        says: ({ identity_id: _, ...shown }) => linesOf(shown),
        logs: `identity ${name}`,
      },
    )
}

type Decision = `${keyof typeof CHANGES} <identity_id> [--seen <updated_at>]`

function time(text: string): string {
  try {
    return Temporal.Instant.from(text).toString({ fractionalSecondDigits: 6 })
  } catch {
    throw new InvalidArgumentError('must be an RFC 3339 date-time.')
  }
}

const nameOf = ({ person_details: person, institution_details: institution }: Identity) =>
  institution?.name ?? [person?.first_name, person?.last_name].filter(Boolean).join(' ')
