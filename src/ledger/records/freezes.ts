import type { Queryable } from '../../db/database.ts'

/** What can be frozen: no money leaves it that is not signed yet. */
export type FreezeTarget =
  | { kind: 'ALL' }
  | { kind: 'NETWORK'; network: string }
  | { kind: 'CUSTOMER'; customer_id: string }
  | { kind: 'PROFILE'; customer_id: string; profile_id: string }

/**
 * Why. OPERATOR: a person did it. The others are set by the worker, and an operator lifts them once the cause is known:
 * REORGANISATION, a chain took back blocks deeper than the confirmations; CUSTODY_SHORT, more is credited than is in custody;
 * NETWORK_FEES, a day's network fees are out of proportion to the fees taken; NODES_DISAGREE, two nodes tell different things.
 */
export type FreezeReason = 'OPERATOR' | 'REORGANISATION' | 'CUSTODY_SHORT' | 'NETWORK_FEES' | 'NODES_DISAGREE'

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

function subjectOf(target: FreezeTarget): string {
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
