import { InvalidArgumentError, Option, type Command } from 'commander'
import { Temporal } from 'temporal-polyfill'
import { listAllIdentities, IDENTITIES_MAX } from '../identities/list-all-identities.ts'
import type { Identity } from '../identities/identity.ts'
import { setIdentityStatus } from '../identities/set-identity-status.ts'
import { STATUSES, type Status } from '../records/holders.ts'
import { logOperator, originOfCommand, requireCustomer, uuid, withDatabase } from './command-line.ts'
import { print, table } from './output.ts'

/** The change that each command makes, and its description. */
const CHANGES = {
  approve: [{ status: 'APPROVED' }, 'mark an identity as verified; it may withdraw'],
  deny: [{ status: 'DENIED' }, 'mark the verification of an identity as failed; it may not withdraw'],
  reopen: [
    { status: 'PENDING' },
    'require a new verification of an identity; it may not withdraw until it is approved',
  ],
  disable: [{ admin_disabled: true }, "stop an identity's withdrawals, as the platform's administrator"],
  enable: [{ admin_disabled: false }, 'undo disable; an identity that its API user disabled stays disabled'],
} as const

/** Defines `bursar identity`. */
export function identityCommands(program: Command): void {
  const identity = program
    .command('identity')
    .description('identities: only APPROVED identities may withdraw')
  identity
    .command('list')
    .description(`list the identities, oldest first, at most ${IDENTITIES_MAX}`)
    .option('--customer <id>', 'only identities of this customer', uuid)
    .addOption(new Option('--status <status>', 'only identities with this summary_status').choices(STATUSES))
    .option('--after <id>', 'only identities after this one, for the next page', uuid)
    .option('--json', 'print JSON')
    .action((options: { customer?: string; status?: Status; after?: string; json?: true }) =>
      withDatabase(async (db) => {
        const { customer: customerId, status: summaryStatus, after } = options
        if (customerId !== undefined) await requireCustomer(db, customerId)
        const identities = await listAllIdentities(db, { customerId, summaryStatus, after })
        if (options.json) return print({ identities })
        const columns = [
          'identity_id',
          'customer_id',
          'ref_id',
          'type',
          'summary_status',
          'name',
          'created_at',
          'updated_at',
        ]
        print(
          table(
            columns,
            identities.map((one) => [
              one.id,
              one.customer_id,
              one.ref_id,
              one.type,
              one.summary_status,
              nameOf(one),
              one.created_at,
              one.updated_at,
            ]),
          ),
        )
      }),
    )
  for (const [name, [change, description]] of Object.entries(CHANGES)) {
    const command = identity
      .command(name)
      .description(description)
      .argument('<identity_id>', 'identity', uuid)
      .option('--json', 'print JSON')
    if (name === 'approve')
      command.option('--seen <updated_at>', 'refuse when the identity was updated after this time', time)
    command.action((identity_id: string, { json, seen }: { json?: true; seen?: string }) =>
      withDatabase(async (db, settings) => {
        const changed = await setIdentityStatus(db, identity_id, { ...change, seen }, originOfCommand())
        if (changed === undefined) throw new Error(`there is no identity ${identity_id}`)
        logOperator(settings, `identity ${name}`, { identity_id, customer_id: changed.customer_id })
        const { status, admin_disabled, user_disabled, summary_status } = changed
        print(
          json
            ? { identity_id, status, admin_disabled, user_disabled, summary_status }
            : `status:         ${status}\nadmin_disabled: ${admin_disabled}\nuser_disabled:  ${user_disabled}\nsummary_status: ${summary_status}`,
        )
      }),
    )
  }
}

/** Reads a time. For commander. */
function time(text: string): string {
  try {
    return Temporal.Instant.from(text).toString({ fractionalSecondDigits: 6 })
  } catch {
    throw new InvalidArgumentError('must be an RFC 3339 date-time.')
  }
}

const nameOf = ({ person_details: person, institution_details: institution }: Identity) =>
  institution?.name ?? `${person?.first_name} ${person?.last_name}`
