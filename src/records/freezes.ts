import type { Queryable, Transaction } from '../db/database.ts'

/** What can be frozen: no money leaves it that is not signed yet. */
export type FreezeTarget =
  | { kind: 'ALL' }
  | { kind: 'NETWORK'; network: string }
  | { kind: 'CUSTOMER'; customer_id: string }
  | { kind: 'PROFILE'; customer_id: string; profile_id: string }

/**
 * Why. OPERATOR: a person did it. DISABLED: the customer is disabled, so that it gets no access tokens either. The others are set by the worker, and an operator lifts them once the cause is known:
 * REORGANISATION, a chain took back blocks deeper than the confirmations; CUSTODY_SHORT, more is credited than is in custody;
 * NETWORK_FEES, a day's network fees are out of proportion to the fees taken; NODES_DISAGREE, two nodes tell different things.
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
  db: Queryable,
  target: FreezeTarget,
  reason: FreezeReason,
  detail: string,
): Promise<void> {
  await db.query(
    `
    insert into freezes (kind, subject, reason, detail, created_at)
    values ($1, $2, $3, $4, clock_timestamp())
    on conflict (kind, subject, reason) do nothing`,
    [target.kind, subjectOf(target), reason, detail],
  )
}

/** Lifts one reason of a target, or all of them. Gives how many there were. */
export async function unfreeze(
  db: Queryable,
  target: FreezeTarget,
  reason: FreezeReason | null = null,
): Promise<number> {
  const { rowCount } = await db.query(
    'delete from freezes where kind = $1 and subject = $2 and ($3::text is null or reason = $3)',
    [target.kind, subjectOf(target), reason],
  )
  return rowCount!
}

/** Everything that is frozen, oldest first. */
export async function selectFreezes(db: Queryable): Promise<Freeze[]> {
  const { rows } = await db.query<Freeze>(
    'select kind, subject, reason, detail, created_at from freezes order by created_at, kind, subject',
  )
  return rows
}

/**
 * Held by each transaction that signs, shared, until it ends. So a freeze can wait for the transactions that read the
 * freezes before it was there.
 */
const SIGNING_UNDER_FREEZES_LOCK = 7_311_016

/** What a transaction is about to sign for: a network, and of whom. Treasury moves name no customer. */
export interface Signs {
  network: string
  customer_id?: string
  profile_ids?: string[]
}

/**
 * The freezes that hold up signing on a network, for a customer, for profiles; ALL comes first. A freeze that is not
 * among them waits for this transaction (`waitForSigning`), so that nothing is signed once its command has returned.
 */
export async function freezesOfSigning(
  tx: Transaction,
  { network, customer_id, profile_ids = [] }: Signs,
): Promise<Freeze[]> {
  // Two statements: the second one sees what was committed while the first waited.
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
 * Waits until every transaction that may have missed a freeze has ended: what it signed is kept by then, and nothing
 * more is signed. Throws when that takes longer than `timeoutMs` (`tookTooLong`).
 */
export async function waitForSigning(tx: Transaction, timeoutMs: number): Promise<void> {
  await tx.query("select set_config('lock_timeout', $1, true)", [String(timeoutMs)])
  await tx.query('select pg_advisory_xact_lock($1)', [SIGNING_UNDER_FREEZES_LOCK])
}

/** A freeze in words, for operators: what is frozen, and why. */
export function describeFreeze({ kind, subject, reason, detail }: Omit<Freeze, 'created_at'>): string {
  const what = { ALL: 'everything', NETWORK: 'network', CUSTOMER: 'customer', PROFILE: 'profile' }[kind]
  const id = kind === 'PROFILE' ? subject.slice(subject.indexOf('/') + 1) : subject
  const subjectText = id === '' ? what : `${what} ${id}`
  if (reason === 'DISABLED') return `${subjectText} is disabled: ${detail}`
  return `${subjectText} is frozen (${reason}): ${detail}`
}

/** A target as its row names it (`Freeze.subject`). */
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
