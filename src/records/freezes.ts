import type { Origin } from '../contract/actor.ts'
import { inTransaction, type Database, type Queryable, type Transaction } from '../db/database.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { audited, recordNow } from './audited.ts'

/** A target that can be frozen: no new payment of it is signed. */
export type FreezeTarget =
  | { kind: 'ALL' }
  | { kind: 'NETWORK'; network: string }
  | { kind: 'CUSTOMER'; customer_id: string }
  | { kind: 'PROFILE'; customer_id: string; profile_id: string }

/**
 * The reason of a freeze. OPERATOR: a person froze it. DISABLED: the customer is disabled, and gets no access tokens
 * either. The worker sets the other reasons, and an operator lifts them once the cause is known. REORGANISATION: a
 * chain removed blocks deeper than the required confirmations. CUSTODY_SHORT: more is credited than is in custody.
 * NETWORK_FEES: a day's network fees are out of proportion to the fees taken. NODES_DISAGREE: two nodes report
 * different data.
 */
export const FREEZE_REASONS = [
  'OPERATOR',
  'DISABLED',
  'REORGANISATION',
  'CUSTODY_SHORT',
  'NETWORK_FEES',
  'NODES_DISAGREE',
] as const
export type FreezeReason = (typeof FREEZE_REASONS)[number]

export interface Freeze {
  kind: FreezeTarget['kind']
  /** Empty for ALL; the network's name, the customer's id, or `<customer id>/<profile id>`. */
  subject: string
  reason: FreezeReason
  detail: string
  created_at: string
}

/** Freezes a target for a reason. Freezing it again for the same reason keeps the first detail and changes nothing. */
export async function freeze(
  db: Database | Transaction,
  origin: Origin,
  target: FreezeTarget,
  reason: FreezeReason,
  detail: string,
): Promise<void> {
  await inTransaction(db, async (tx) => {
    const { rowCount } = await tx.query(
      `
      insert into freezes (kind, subject, reason, detail, created_at)
      values ($1, $2, $3, $4, clock_timestamp())
      on conflict (kind, subject, reason) do nothing`,
      [target.kind, subjectOf(target), reason, detail],
    )
    if (rowCount! > 0) await recordFreeze(tx, origin, target, reason, 'after')
  })
}

/** Lifts one reason of a target's freezes, or all of them. Returns the number of lifted freezes. */
export async function unfreeze(
  db: Database | Transaction,
  origin: Origin,
  target: FreezeTarget,
  reason: FreezeReason | null = null,
): Promise<number> {
  return inTransaction(db, async (tx) => {
    const { rows } = await tx.query<{ reason: FreezeReason }>(
      `delete from freezes where kind = $1 and subject = $2 and ($3::text is null or reason = $3)
       returning reason`,
      [target.kind, subjectOf(target), reason],
    )
    for (const lifted of rows) await recordFreeze(tx, origin, target, lifted.reason, 'before')
    return rows.length
  })
}

/** Records a freeze, or its end where the reason held `before`. The operator's own words are not in the audit log. */
async function recordFreeze(
  tx: Transaction,
  origin: Origin,
  target: FreezeTarget,
  reason: FreezeReason,
  held: 'before' | 'after',
): Promise<void> {
  const verb = held === 'after' ? 'freeze' : 'unfreeze'
  const changes = { [held]: { reason } }
  if (target.kind === 'CUSTOMER' && reason === 'DISABLED') {
    const action = held === 'after' ? 'customer.disable' : 'customer.enable'
    return recordNow(tx, target.customer_id, audited(origin, action, target.customer_id))
  }
  if (target.kind === 'CUSTOMER')
    return recordNow(tx, target.customer_id, audited(origin, `customer.${verb}`, target.customer_id, changes))
  if (target.kind === 'PROFILE')
    return recordNow(tx, target.customer_id, audited(origin, `profile.${verb}`, target.profile_id, changes))
  if (target.kind === 'NETWORK')
    return recordNow(tx, PLATFORM_ID, audited(origin, `network.${verb}`, target.network, changes))
  return recordNow(tx, PLATFORM_ID, audited(origin, `platform.${verb}`, PLATFORM_ID, changes))
}

/** Reads all freezes, oldest first. */
export async function selectFreezes(db: Queryable): Promise<Freeze[]> {
  const { rows } = await db.query<Freeze>(
    'select kind, subject, reason, detail, created_at from freezes order by created_at, kind, subject',
  )
  return rows
}

/**
 * Held shared by each signing transaction until it ends. So a freeze can wait for transactions that read the freezes
 * before it was added.
 */
const SIGNING_UNDER_FREEZES_LOCK = 7_311_016

/** The scope of a transaction's signing: a network, a customer and profiles. Treasury transfers name no customer. */
export interface Signs {
  network: string
  customer_id?: string
  profile_ids?: string[]
}

/**
 * Reads the freezes that block signing on a network, for a customer, for profiles; ALL comes first. A freeze that is
 * added later waits for this transaction (`waitForSigning`). So nothing is signed once the freeze command has
 * returned.
 */
export async function freezesOfSigning(
  tx: Transaction,
  { network, customer_id, profile_ids = [] }: Signs,
): Promise<Freeze[]> {
  // Two statements: the second sees everything that was committed while the first waited.
  await tx.query('select pg_advisory_xact_lock_shared($1)', [SIGNING_UNDER_FREEZES_LOCK])
  const { rows } = await tx.query<Freeze>(
    `
    select kind, subject, reason, detail, created_at
    from freezes
    where (kind, subject) in (
      select 'ALL', ''
      union all select 'NETWORK', $1
      union all select 'CUSTOMER', $2
      union all select 'PROFILE', $2 || '/' || id from unnest($3::text[]) as p (id)
    )
    order by kind, created_at`,
    [network, customer_id ?? '', profile_ids],
  )
  return rows
}

/**
 * Waits until every transaction that may have missed a freeze has ended: then its signatures are stored, and nothing
 * more is signed. Throws when that takes longer than `timeoutMs` (`tookTooLong`).
 */
export async function waitForSigning(tx: Transaction, timeoutMs: number): Promise<void> {
  await tx.query("select set_config('lock_timeout', $1, true)", [String(timeoutMs)])
  await tx.query('select pg_advisory_xact_lock($1)', [SIGNING_UNDER_FREEZES_LOCK])
}

/** Describes a freeze for operators: its target and its reason. */
export function describeFreeze({ kind, subject, reason, detail }: Omit<Freeze, 'created_at'>): string {
  const what = { ALL: 'everything', NETWORK: 'network', CUSTOMER: 'customer', PROFILE: 'profile' }[kind]
  const id = kind === 'PROFILE' ? subject.slice(subject.indexOf('/') + 1) : subject
  const subjectText = id === '' ? what : `${what} ${id}`
  if (reason === 'DISABLED') return `${subjectText} is disabled: ${detail}`
  return `${subjectText} is frozen (${reason}): ${detail}`
}

/** Returns a target's subject as the row stores it (`Freeze.subject`). */
export function subjectOf(target: FreezeTarget): string {
  switch (target.kind) {
    case 'ALL':
      return ''
    case 'NETWORK':
      return target.network
    case 'CUSTOMER':
      return target.customer_id
    case 'PROFILE':
      return `${target.customer_id}/${target.profile_id}`
  }
}
