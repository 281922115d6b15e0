import type { Command } from 'commander'
import { CRYPTO_NETWORKS } from '../contract/assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import {
  describeFreeze,
  freeze,
  FREEZE_REASONS,
  selectFreezes,
  selectFreezesOf,
  subjectOf,
  signingEnds,
  unfreeze,
  type Freeze,
  type FreezeReason,
  type FreezeTarget,
} from '../money/records/freezes.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { selectAuditRecords } from '../audit/audit-record.ts'
import { textUpTo, uuid } from './arguments.ts'
import { inDatabase, requireCustomer, withDatabase, type AtDatabase } from './command-line.ts'
import { define, oneOf, type CommandOutput, type OpenContext } from './define.ts'
import { EXIT } from './exit.ts'
import { ownProcess } from './own-process.ts'

/** How long `bursar freeze` waits for database transactions that are signing a payment. */
export const SIGNING_WAIT_MS = 30_000
const REASON_LENGTH_MAX = 500

const NETWORKS = [...CRYPTO_NETWORKS, 'WIRE']

/** The kinds of freeze: the command's name, its argument, and how the argument becomes a target. */
const TARGETS: {
  name: string
  description: string
  argument?: [name: string, description: string, read: (text: string) => string]
  target: (db: Database, subject: string, options: { customer?: string }) => Promise<FreezeTarget>
}[] = [
  {
    name: 'customer',
    description: 'a customer with all its profiles',
    argument: ['<customer_id>', 'customer', uuid],
    async target(db, customer_id) {
      await requireCustomer(db, customer_id)
      return { kind: 'CUSTOMER', customer_id }
    },
  },
  {
    name: 'profile',
    description: 'one profile',
    argument: ['<profile_id>', 'profile', uuid],
    async target(db, profile_id, { customer }) {
      return { kind: 'PROFILE', customer_id: await customerOf(db, profile_id, customer), profile_id }
    },
  },
  {
    name: 'network',
    description: 'the withdrawals, replacements and sweeps of a network, or all wires',
    argument: ['<network>', `one of ${NETWORKS.join(', ')}`, oneOf(NETWORKS)],
    target: async (_, name) => ({ kind: 'NETWORK', network: name }),
  },
  { name: 'all', description: 'everything', target: async () => ({ kind: 'ALL' }) },
]

export function freezeCommands(program: Command): void {
  const freezing = define(
    program,
    'freeze',
    'stop payments that are not signed yet: withdrawals wait, a frozen customer or profile cannot create new ones, and deposits are still credited',
  )
  const unfreezing = define(program, 'unfreeze', 'end a freeze')
  for (const { name, description, argument, target } of TARGETS) {
    const stop = define(freezing, name, `freeze ${description}`)
    const go = define(unfreezing, name, `unfreeze ${description}`)
    for (const command of [stop, go]) {
      if (argument !== undefined) command.argument(...argument)
      if (name === 'profile')
        command.option(
          '--customer <id>',
          "the profile's customer: on a cluster, only the customer's node is asked then",
          uuid,
        )
    }
    stop
      .option(
        '--reason <text>',
        `reason, for other operators${name === 'all' ? '; live mode demands it' : ''}`,
        textUpTo(REASON_LENGTH_MAX),
      )
      .answer(onTarget, async (at, ...args: unknown[]) => {
        const [subject, options] = argumentsOf<{ reason?: string; customer?: string }>(args)
        return freezeTarget(at, await target(at.db, subject, options), options.reason)
      })
    go.option(
      '--cause <cause>',
      `end only the freeze with this cause: ${FREEZE_REASONS.join(', ')}`,
      oneOf(FREEZE_REASONS),
    ).answer(onTarget, async (at, ...args: unknown[]) => {
      const [subject, options] = argumentsOf<{ cause?: FreezeReason; customer?: string }>(args)
      return unfreezeTarget(at, await target(at.db, subject, options), options.cause)
    })
  }
  define(freezing, 'list', 'list the freezes and their reasons, oldest first').list(inDatabase, {
    key: 'freezes',
    none: 'Nothing is frozen.',
    read: ({ db }) => selectFreezes(db),
    columns: ['kind', 'subject', 'reason', 'created_at', 'detail'],
  })
}

/** Opens the database. The command's target checks the option `--customer` itself. */
const onTarget: OpenContext<AtDatabase> = (work) => withDatabase({}, work)

/** Commander passes the argument, if the command has one, and then the options. */
const argumentsOf = <O>(args: unknown[]): [subject: string, options: O] =>
  typeof args[0] === 'string' ? [args[0], args[1] as O] : ['', args[0] as O]

async function freezeTarget(
  { db, settings, did, origin }: AtDatabase,
  target: FreezeTarget,
  given: string | undefined,
): Promise<CommandOutput> {
  if (given === undefined && target.kind === 'ALL' && settings.mode === 'live')
    throw new Error('freeze all stops every payment of every customer: say why, with --reason')
  const detail = given ?? 'no reason was given'
  await freeze(db, origin, target, 'OPERATOR', detail)
  did('froze', { ...target, detail })
  const signing_ended = await signingEnds(db, SIGNING_WAIT_MS)
  if (!signing_ended) ownProcess().exitCode = EXIT.failed
  const text = describeFreeze({ kind: target.kind, subject: subjectOf(target), reason: 'OPERATOR', detail })
  const next = signing_ended
    ? 'Nothing more is signed. Withdrawals that are already signed are still broadcast and confirmed.'
    : STILL_SIGNING
  return [{ ...target, reason: 'OPERATOR', detail, signing_ended }, `${capital(text)}\n${next}`]
}

export const STILL_SIGNING = `A worker is still signing after ${SIGNING_WAIT_MS / 1000} s, and that payment may still be sent. Run this again to wait longer.`

async function unfreezeTarget(
  { db, did, origin, rowMacs }: AtDatabase,
  target: FreezeTarget,
  cause: FreezeReason | undefined,
): Promise<CommandOutput> {
  const subject = subjectOf(target)
  const macs = await rowMacs()
  const all = await selectFreezesOf(db, target)
  const found = all.filter(({ reason }) => cause === undefined || reason === cause)
  if (found.length === 0) throw new Error(`not frozen${cause === undefined ? '' : ` for ${cause}`}`)
  if (found.some(({ reason }) => reason === 'DISABLED') && (cause === 'DISABLED' || found.length === 1))
    throw new Error(`the customer is disabled: bursar customer enable ${subject}`)
  if (found.length > 1)
    throw new Error(
      `frozen for ${found.length} causes: name one with --cause\n${found.map(describeFreeze).join('\n')}`,
    )
  const [one] = found as [Freeze]
  const { reason, detail, created_at } = one
  const frozen_by = await whoFroze(db, target, one)
  await unfreeze(db, macs, origin, target, reason)
  did('unfroze', { ...target, reason })
  const remaining = all.filter((one) => one.reason !== reason)
  const still_frozen_for = remaining.map((one) => one.reason)
  return [
    { ...target, reason, detail, created_at, frozen_by, still_frozen_for },
    [
      `The freeze for ${reason} has ended: ${frozen_by} placed it at ${created_at} (${detail}).`,
      ...remaining.map((one) => `Still frozen: ${describeFreeze(one)}`),
    ].join('\n'),
  ]
}

/** Who placed a freeze, from the audit log. */
async function whoFroze(db: Database, target: FreezeTarget, { kind }: Freeze): Promise<string> {
  const [owner, subject] =
    target.kind === 'ALL'
      ? [PLATFORM_ID, PLATFORM_ID]
      : target.kind === 'NETWORK'
        ? [PLATFORM_ID, target.network]
        : [target.customer_id, target.kind === 'PROFILE' ? target.profile_id : target.customer_id]
  const action = `${kind === 'ALL' ? 'platform' : kind.toLowerCase()}.freeze`
  const [placed] = await selectAuditRecords(
    db,
    owner,
    { subject_ids: [subject], actions: [action] },
    { limit: 1, descending: true, from: 0, to: Number.MAX_SAFE_INTEGER },
  )
  return placed?.actor.id ?? 'somebody'
}

async function customerOf(db: Database, profileId: string, customerId: string | undefined): Promise<string> {
  const { rows } = await db.query<{ customer_id: string }>(
    `select customer_id from profiles where id = $1 ${customerId === undefined ? '' : 'and customer_id = $2'}`,
    customerId === undefined ? [profileId] : [profileId, customerId],
  )
  if (rows[0] !== undefined) return rows[0].customer_id
  throw new Error(
    customerId === undefined
      ? `there is no profile ${profileId}`
      : `customer ${customerId} has no profile ${profileId}`,
  )
}

const capital = (text: string) => text.replace(/^./, (first) => first.toUpperCase())
