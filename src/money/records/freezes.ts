import { setTimeout as pause } from 'node:timers/promises'
import type { Origin } from '../../contract/actor.ts'
import {
  connectionLost,
  inOrder,
  inTransaction,
  transaction,
  type Database,
  type Queryable,
  type Transaction,
} from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { orElse, warn, type Finding } from '../../finding.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { holds } from '../../audit/freeze-ends.ts'
import { ownRowMacs, RowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'
import { holdersOf, shareLock } from '../../db/locks.ts'

/** A target that can be frozen: no new payment of it is signed. */
export type FreezeTarget =
  | { kind: 'ALL' }
  | { kind: 'NETWORK'; network: string }
  | { kind: 'CUSTOMER'; customer_id: string }
  | { kind: 'PROFILE'; customer_id: string; profile_id: string }

/**
 * The reason of a freeze. OPERATOR: a person froze it. DISABLED: the customer is disabled, and gets no access tokens either.
 * The worker sets the other reasons, and an operator lifts them once the cause is known. REORGANISATION: a chain removed
 * blocks deeper than the required confirmations. CUSTODY_SHORT: more is credited than is in custody. NETWORK_FEES: they are out
 * of proportion to the fees taken. WITHDRAWALS_FAIL: transactions have failed, and no recipient can have caused that.
 */
export const FREEZE_REASONS = [
  'OPERATOR',
  'DISABLED',
  'REORGANISATION',
  'CUSTODY_SHORT',
  'NETWORK_FEES',
  'NODES_DISAGREE',
  'WITHDRAWALS_FAIL',
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

/**
 * Freezes a target. Freezing it again for the same reason keeps the first detail. A freeze of a network or of everything waits
 * for no customer's part of the database: `recordWaitingFreezes` puts it into the audit log later.
 */
export async function freeze(
  db: Database | Transaction,
  origin: Origin,
  target: FreezeTarget,
  reason: FreezeReason,
  detail: string,
): Promise<void> {
  try {
    await inTransaction(db, async (tx) => {
      const rowCount = await insert(tx, target, reason, detail)
      if (rowCount > 0) await recordFreeze(tx, origin, target, reason, 'after')
    })
  } catch (error) {
    if ('release' in db || isOfCustomer(target) || !connectionLost(error)) throw error
    // The freeze matters more than its audit record. On a plain database this insert fails, too: it goes to the same server.
    await insert(db, target, reason, detail, origin)
  }
}

type OfCustomer = Extract<FreezeTarget, { customer_id: string }>
type OfPlatform = Exclude<FreezeTarget, OfCustomer>

const isOfCustomer = (target: FreezeTarget): target is OfCustomer => 'customer_id' in target

const idOf = (target: OfCustomer) => (target.kind === 'PROFILE' ? target.profile_id : target.customer_id)

/** The beginning of a target's key in its table. */
const keyOf = (target: FreezeTarget): string[] =>
  isOfCustomer(target) ? [target.customer_id, idOf(target)] : [target.kind, subjectOf(target)]

async function insert(
  db: Queryable,
  target: FreezeTarget,
  reason: FreezeReason,
  detail: string,
  unrecorded?: Origin,
): Promise<number> {
  const key = [...keyOf(target), reason, detail]
  const { rowCount } = isOfCustomer(target)
    ? await db.query(
        `insert into customer_freezes (customer_id, subject, reason, detail, created_at)
         values ($1, $2, $3, $4, clock_timestamp())
         on conflict (customer_id, subject, reason) where lifted_at is null do nothing`,
        key,
      )
    : await db.query(
        `insert into freezes (kind, subject, reason, detail, created_at, unrecorded)
         values ($1, $2, $3, $4, clock_timestamp(), $5)
         on conflict (kind, subject, reason) where lifted_at is null do nothing`,
        [...key, unrecorded === undefined ? null : JSON.stringify(unrecorded)],
      )
  return rowCount!
}

/**
 * Lifts a target's freezes for one reason, or all of them, and gives each end its MAC. An end that was written without the
 * master key did not lift its freeze, and now does. Returns the number of lifted freezes.
 */
export async function unfreeze(
  db: Database | Transaction,
  macs: RowMacs,
  origin: Origin,
  target: FreezeTarget,
  reason: FreezeReason | null = null,
): Promise<number> {
  return inTransaction(db, async (tx) => {
    const kept = await lock(tx, target)
    const held = kept.filter(
      (freeze) => (reason === null || freeze.reason === reason) && isHeld(freeze, macs),
    )
    for (const freeze of held) {
      await lift(tx, macs, target, freeze)
      if (freeze.unrecorded) await recordFreeze(tx, freeze.unrecorded, target, freeze.reason, 'after')
      await recordFreeze(tx, origin, target, freeze.reason, 'before')
    }
    return held.length
  })
}

/** A freeze, with its end where it has one. */
interface KeptFreeze extends Freeze, Seal {
  lifted_at: string | null
}
type Locked = Pick<KeptFreeze, 'kind' | 'reason' | 'created_at' | 'lifted_at' | 'sealed' | 'mac'> & {
  unrecorded: Origin | null
}

const isHeld = (
  freeze: Pick<KeptFreeze, 'kind' | 'lifted_at' | keyof Seal>,
  macs: RowMacs | null | undefined,
) => {
  const table = freeze.kind === 'ALL' || freeze.kind === 'NETWORK' ? 'freezes' : 'customer_freezes'
  return holds(freeze, (end) => !macs || macs.objectionTo(table, end) === undefined)
}

async function lock(tx: Transaction, target: FreezeTarget): Promise<Locked[]> {
  const { rows } = await tx.query<Omit<Locked, 'kind'>>(
    isOfCustomer(target)
      ? `select reason, created_at, null::jsonb as unrecorded, lifted_at, ${sealOf('customer_freezes')} from customer_freezes r
         where customer_id = $1 and subject = $2
         for update`
      : `select reason, created_at, unrecorded, lifted_at, ${sealOf('freezes')} from freezes r
         where kind = $1 and subject = $2
         for update`,
    keyOf(target),
  )
  return rows.map((row) => ({ ...row, kind: target.kind }))
}

async function lift(
  tx: Transaction,
  macs: RowMacs,
  target: FreezeTarget,
  { reason, created_at }: Locked,
): Promise<void> {
  const key = [...keyOf(target), reason, created_at]
  if (isOfCustomer(target)) {
    await tx.query(
      `update customer_freezes set lifted_at = (select clock_timestamp())
       where customer_id = $1 and subject = $2 and reason = $3 and created_at = $4`,
      key,
    )
    return macs.seal(tx, 'customer_freezes', target.customer_id, reason, created_at, idOf(target))
  }
  await tx.query(
    `update freezes set lifted_at = (select clock_timestamp()), unrecorded = null
     where kind = $1 and subject = $2 and reason = $3 and created_at = $4`,
    key,
  )
  return macs.seal(tx, 'freezes', reason, created_at, target.kind, subjectOf(target))
}

/**
 * Records in the audit log the freezes that were placed while the node of the platform's audit log was unreachable. Returns
 * their number.
 */
export async function recordWaitingFreezes(db: Database): Promise<number> {
  return transaction(db, async (tx) => {
    const { rows } = await tx.query<{
      kind: OfPlatform['kind']
      network: string
      reason: FreezeReason
      origin: Origin
    }>(
      `select kind, subject as network, reason, unrecorded as origin from freezes
       where unrecorded is not null and lifted_at is null
       for update`,
    )
    for (const { kind, network, reason, origin } of rows) {
      const target: OfPlatform = kind === 'ALL' ? { kind } : { kind, network }
      await tx.query(
        'update freezes set unrecorded = null where kind = $1 and subject = $2 and reason = $3 and lifted_at is null',
        [kind, network, reason],
      )
      await recordFreeze(tx, origin, target, reason, 'after')
    }
    return rows.length
  })
}

/** Records a freeze, or its end where the reason held `before`. The audit log does not get the operator's own words. */
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

const COLUMNS_OF_CUSTOMER = `
  case when subject = customer_id then 'CUSTOMER' else 'PROFILE' end as kind,
  customer_id || case when subject = customer_id then '' else '/' || subject end as subject,
  reason, detail, created_at`

const SELECT = `select kind, subject, reason, detail, created_at, lifted_at, ${sealOf('freezes')} from freezes r`
const SELECT_OF_CUSTOMERS = `select ${COLUMNS_OF_CUSTOMER}, lifted_at, ${sealOf('customer_freezes')} from customer_freezes r`

interface FreezeFilter {
  /** Of the platform, by subject: '' is everything. Absent: none. */
  platform?: readonly string[]
  /** Of these customers. Absent: none. */
  customerIds?: readonly string[]
  /** Of these customers and profiles; by default all of `customerIds`. */
  ids?: readonly string[] | undefined
}

/**
 * Reads the freezes that hold, oldest first; without a filter, all. An end counts with its MAC alone, and the detail says if
 * it is forged. The freezes of a customer are in its part of the database. With `macs: null`, a process without a master key
 * takes each end.
 */
export async function selectFreezes(
  db: Queryable,
  filter?: FreezeFilter,
  macs?: RowMacs | null,
): Promise<Freeze[]> {
  const { platform = [], customerIds = [], ids } = filter ?? {}
  const none = { rows: [] as KeptFreeze[] }
  const [{ rows }, { rows: ofCustomers }] = await inOrder([
    filter === undefined
      ? db.query<KeptFreeze>(SELECT)
      : platform.length === 0
        ? none
        : db.query<KeptFreeze>(`${SELECT} where kind in ('ALL', 'NETWORK') and subject = any ($1)`, [
            platform,
          ]),
    filter === undefined
      ? db.query<KeptFreeze>(SELECT_OF_CUSTOMERS)
      : customerIds.length === 0
        ? none
        : db.query<KeptFreeze>(
            `${SELECT_OF_CUSTOMERS}
            where r.customer_id ${customerIds.length === 1 ? '= $1' : '= any ($1::uuid[])'}
              and ($2::uuid[] is null or r.subject = any ($2::uuid[]))`,
            [customerIds.length === 1 ? customerIds[0] : customerIds, ids ?? null],
          ),
  ])
  const orderOf = ({ created_at, kind, subject }: Freeze) => `${created_at} ${kind} ${subject}`
  return (await held([...rows, ...ofCustomers], macs)).sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
}

export const isFrozenFor = async (
  db: Queryable,
  target: FreezeTarget,
  reason: FreezeReason,
): Promise<boolean> => (await selectFreezesOf(db, target)).some((freeze) => freeze.reason === reason)

/** Reads the freezes of one target (`selectFreezes`). */
export const selectFreezesOf = (db: Queryable, target: FreezeTarget): Promise<Freeze[]> =>
  selectFreezes(
    db,
    isOfCustomer(target)
      ? { customerIds: [target.customer_id], ids: [idOf(target)] }
      : { platform: [subjectOf(target)] },
  )

/** Returns the freezes that hold. The detail of a freeze says if its end is forged. */
async function held(rows: readonly KeptFreeze[], macs?: RowMacs | null): Promise<Freeze[]> {
  const hasEnd = rows.some(({ lifted_at }) => lifted_at !== null)
  const own = macs === undefined && hasEnd ? await ownRowMacs() : macs
  return rows.flatMap((row) => {
    if (!isHeld(row, own)) return []
    const { kind, subject, reason, detail, created_at, lifted_at } = row
    const forged = lifted_at === null ? '' : `; it was ended at ${lifted_at} without the master key`
    return { kind, subject, reason, detail: detail + forged, created_at }
  })
}

/** What a transaction signs for: a network, a customer and profiles. Treasury transfers name no customer. */
export interface Signs {
  network: string
  customer_id?: string
  profile_ids?: string[]
}

/**
 * Reads the freezes that block signing (`freezesOf`). A freeze that is added later waits for this transaction
 * (`signingEnds`). So nothing is signed once the freeze command has returned.
 */
export async function freezesOfSigning(tx: Transaction, signs: Signs): Promise<Freeze[]> {
  // The statements after this one see everything that was committed while this one waited.
  const lock = shareLock(tx, 'signingUnderFreezes')
  return (await inOrder([lock, freezesOf(tx, signs)]))[1]
}

/** Reads the freezes on a network, of a customer and of profiles. ALL comes first, and each kind is oldest first. */
export async function freezesOf(
  db: Queryable,
  { network, customer_id, profile_ids = [] }: Signs,
): Promise<Freeze[]> {
  const ofCustomer =
    customer_id === undefined ? {} : { customerIds: [customer_id], ids: [customer_id, ...profile_ids] }
  const freezes = await selectFreezes(db, { platform: ['', network], ...ofCustomer })
  return freezes.sort((a, b) => a.kind.localeCompare(b.kind))
}

/** Rest between the first two looks whether signing transactions have ended, and the longest. */
const SIGNING_LOOK_MS = 50
const SIGNING_LOOK_MS_MAX = 1_000

/**
 * Waits until every transaction that may have missed a freeze has ended: then its signatures are stored, and nothing more is
 * signed. Others sign meanwhile: they see the freeze. False when it takes longer than `timeoutMs`.
 */
export async function signingEnds(db: Database, timeoutMs: number): Promise<boolean> {
  const until = performance.now() + timeoutMs
  let open = await holdersOf(db, 'signingUnderFreezes')
  for (let rest = SIGNING_LOOK_MS; open.length > 0 && performance.now() < until; rest *= 2) {
    await pause(Math.min(rest, SIGNING_LOOK_MS_MAX))
    const now = await holdersOf(db, 'signingUnderFreezes')
    open = open.filter((holder) => now.includes(holder))
  }
  return open.length === 0
}

export function describeFreeze({ kind, subject, reason, detail }: Omit<Freeze, 'created_at'>): string {
  const what = { ALL: 'everything', NETWORK: 'network', CUSTOMER: 'customer', PROFILE: 'profile' }[kind]
  const id = kind === 'PROFILE' ? subject.slice(subject.indexOf('/') + 1) : subject
  const subjectText = id === '' ? what : `${what} ${id}`
  if (reason === 'DISABLED') return `${subjectText} is disabled: ${detail}`
  return `${subjectText} is frozen (${reason}): ${detail}`
}

const TOLD_MAX = 5

export async function checkFreezes(db: Queryable, masterKeys: MasterKeys | undefined): Promise<Finding[]> {
  const freezes = await selectFreezes(db, undefined, masterKeys ? new RowMacs(masterKeys) : null)
  const told = freezes.slice(0, TOLD_MAX).map((kept) => `${describeFreeze(kept)} (since ${kept.created_at})`)
  const more = freezes.length - told.length
  const says = more === 0 ? told : [...told, `${more} more freezes`]
  const advice = 'bursar freeze list; bursar unfreeze, once the cause is known'
  return orElse(
    says.map((line) => warn(line, advice)),
    'nothing is frozen',
  )
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
