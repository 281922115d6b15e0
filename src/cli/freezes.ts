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
import { selectAuditRecords } from '../access/audit-log/audit-records.ts'
import { COMMON, textUpTo, uuid } from './arguments.ts'
import { inDatabase, requireCustomer, type AtDatabase } from './command-line.ts'
import { group, oneOf } from './define.ts'

/** How long `bursar freeze` waits for database transactions that are signing a payment. */
export const SIGNING_WAIT_MS = 30_000
export const STILL_SIGNING = `A worker is still signing after ${SIGNING_WAIT_MS / 1000} s, and that payment may still be sent. Run this again to wait longer.`
const REASON_LENGTH_MAX = 500

const NETWORKS = [...CRYPTO_NETWORKS, 'WIRE']

const WORDS = {
  ...COMMON,
  '<customer_id>': ['customer', uuid],
  '<profile_id>': ["profile; with --customer, only the customer's part of the database is asked", uuid],
  '<network>': [`one of ${NETWORKS.join(', ')}`, oneOf(NETWORKS)],
  '--reason <text>': ['reason, for other operators', textUpTo(REASON_LENGTH_MAX)],
  '--cause <cause>': [
    `end only the freeze with this cause: ${FREEZE_REASONS.join(', ')}`,
    oneOf(FREEZE_REASONS),
  ],
} as const

interface Named {
  customer_id?: string
  profile_id?: string
  customer?: string | undefined
  network?: string
  json?: true
}

/** The kinds of freeze: the usage, and what is frozen. */
const TARGETS = {
  'customer <customer_id>': 'a customer with all its profiles',
  'profile <profile_id> [--customer <id>]': 'one profile',
  'network <network>': 'the withdrawals, replacements and sweeps of a network, or all wires',
  all: 'everything; in live mode with --reason',
} as const

export function freezeCommands(program: Command): void {
  const about =
    'stop payments that are not signed yet: withdrawals wait, a frozen customer or profile cannot create new ones, and deposits are still credited'
  const freezing = group(program, ['freeze', about], inDatabase, WORDS)
  const unfreezing = group(program, ['unfreeze', 'end a freeze'], inDatabase, WORDS)
  for (const [usage, what] of Object.entries(TARGETS) as [keyof typeof TARGETS, string][]) {
    freezing.command(`${usage} [--reason <text>]`, {
      about: `freeze ${what}`,
      run: async (at, { reason, ...named }) => freezeTarget(at, await targetOf(at.db, named), reason),
      says: describeFrozen,
      fails: ({ signing_ended }) => !signing_ended,
      logs: 'froze',
      logged: ({ reason: _, signing_ended: __, ...frozen }) => frozen,
    })
    unfreezing.command(`${usage} [--cause <cause>]`, {
      about: `unfreeze ${what}`,
      run: async (at, { cause, ...named }) => unfreezeTarget(at, await targetOf(at.db, named), cause),
      async says({ reason, detail, created_at, frozen_by, still_frozen_for: _, ...target }, __, { db }) {
        const ended = `The freeze for ${reason} has ended: ${frozen_by} placed it at ${created_at} (${detail}).`
        const others = await selectFreezesOf(db, target)
        return [ended, ...others.map((freeze) => `Still frozen: ${describeFreeze(freeze)}`)].join('\n')
      },
      logs: 'unfroze',
      logged: ({ kind, reason }, { cause: _, ...named }) => ({ kind, ...named, reason }),
    })
  }
  freezing.list('list', {
    about: 'list the freezes and their reasons, oldest first',
    key: 'freezes',
    none: 'Nothing is frozen.',
    run: ({ db }) => selectFreezes(db),
    columns: ['kind', 'subject', 'reason', 'created_at', 'detail'],
  })
}

/** What the arguments name. Throws an Error where it does not exist. */
async function targetOf(
  db: Database,
  { customer_id, profile_id, customer, network }: Named,
): Promise<FreezeTarget> {
  if (network !== undefined) return { kind: 'NETWORK', network }
  if (profile_id !== undefined)
    return { kind: 'PROFILE', customer_id: await customerOf(db, profile_id, customer), profile_id }
  if (customer_id === undefined) return { kind: 'ALL' }
  await requireCustomer(db, customer_id)
  return { kind: 'CUSTOMER', customer_id }
}

async function freezeTarget(
  { db, settings, origin }: AtDatabase,
  target: FreezeTarget,
  given: string | undefined,
) {
  if (given === undefined && target.kind === 'ALL' && settings.mode === 'live')
    throw new Error('freeze all stops every payment of every customer: say why, with --reason')
  const detail = given ?? 'no reason was given'
  await freeze(db, origin, target, 'OPERATOR', detail)
  const signing_ended = await signingEnds(db, SIGNING_WAIT_MS)
  return { ...target, reason: 'OPERATOR' as const, detail, signing_ended }
}

function describeFrozen({ signing_ended, ...frozen }: Awaited<ReturnType<typeof freezeTarget>>): string {
  const text = describeFreeze({ ...frozen, subject: subjectOf(frozen) })
  const next = signing_ended
    ? 'Nothing more is signed. Withdrawals that are already signed are still broadcast and confirmed.'
    : STILL_SIGNING
  return `${capital(text)}\n${next}`
}

async function unfreezeTarget(
  { db, origin, rowMacs }: AtDatabase,
  target: FreezeTarget,
  cause: FreezeReason | undefined,
) {
  const macs = await rowMacs()
  const kept = await selectFreezesOf(db, target)
  const found = kept.filter(({ reason }) => cause === undefined || reason === cause)
  if (found.length === 0) throw new Error(`not frozen${cause === undefined ? '' : ` for ${cause}`}`)
  if (found.some(({ reason }) => reason === 'DISABLED') && (cause === 'DISABLED' || found.length === 1))
    throw new Error(`the customer is disabled: bursar customer enable ${subjectOf(target)}`)
  if (found.length > 1)
    throw new Error(
      `frozen for ${found.length} causes: name one with --cause\n${found.map(describeFreeze).join('\n')}`,
    )
  const [freeze] = found as [Freeze]
  const { reason, detail, created_at } = freeze
  const frozen_by = await whoFroze(db, target, freeze)
  await unfreeze(db, macs, origin, target, reason)
  const still_frozen_for = kept.map((freeze) => freeze.reason).filter((other) => other !== reason)
  return { ...target, reason, detail, created_at, frozen_by, still_frozen_for }
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
