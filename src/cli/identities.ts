import { InvalidArgumentError, Option, type Command } from 'commander'
import { Temporal } from 'temporal-polyfill'
import { listAllIdentities, IDENTITIES_MAX } from '../resources/identities/list-all-identities.ts'
import type { Identity } from '../resources/identities/identity.ts'
import { IDENTITY_DECISIONS, setIdentityStatus } from '../resources/identities/set-identity-status.ts'
import { STATUSES, type HolderStatus } from '../money/records/holders.ts'
import { uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { define } from './define.ts'
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

export function identityCommands(program: Command): void {
  const identity = define(program, 'identity', 'identities: only APPROVED identities may withdraw')
  define(identity, 'list', `list the identities, oldest first, at most ${IDENTITIES_MAX}`)
    .option('--customer <id>', 'only identities of this customer', uuid)
    .addOption(new Option('--status <status>', 'only identities with this summary_status').choices(STATUSES))
    .option('--after <id>', 'only identities after this one, for the next page', uuid)
    .list(inDatabase, {
      key: 'identities',
      read: async ({ db }, options: { customer?: string; status?: HolderStatus; after?: string }) => {
        const { customer: customerId, status: summaryStatus, after } = options
        return listAllIdentities(db, { customerId, summaryStatus, after })
      },
      columns: [
        ['identity_id', ({ id }) => id],
        ...(['customer_id', 'ref_id', 'type', 'summary_status'] as const),
        ['name', nameOf],
        ...(['created_at', 'updated_at'] as const),
      ],
    })
  for (const [name, [change, description]] of Object.entries(CHANGES)) {
    const command = define(identity, name, description).argument('<identity_id>', 'identity', uuid)
    if (name === 'approve')
      command.option('--seen <updated_at>', 'refuse when the identity was updated after this time', time)
    command.answer(
      inDatabase,
      async ({ db, did, origin }, identity_id: string, { seen }: { seen?: string }) => {
        const changed = await setIdentityStatus(db, identity_id, { ...change, seen }, origin)
        if (changed === undefined) throw new Error(`there is no identity ${identity_id}`)
        did(`identity ${name}`, { identity_id, customer_id: changed.customer_id })
        const { status, admin_disabled, user_disabled, summary_status } = changed
        const shown = { status, admin_disabled, user_disabled, summary_status }
        return [{ identity_id, ...shown }, linesOf(shown)]
      },
    )
  }
}

function time(text: string): string {
  try {
    return Temporal.Instant.from(text).toString({ fractionalSecondDigits: 6 })
  } catch {
    throw new InvalidArgumentError('must be an RFC 3339 date-time.')
  }
}

const nameOf = ({ person_details: person, institution_details: institution }: Identity) =>
  institution?.name ?? [person?.first_name, person?.last_name].filter(Boolean).join(' ')
