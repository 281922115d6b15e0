import { strict as assert } from 'node:assert'
import { formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { problem } from '../../contract/problems.ts'
import { inOrder, type Transaction } from '../../db/database.ts'
import { idsAt, type Moment } from '../../db/ids.ts'
import type { Entry, Posting } from '../ledger/entries.ts'
import { LedgerTransaction } from '../ledger/ledger-transaction.ts'
import { selectTransfersByRefId, type Transfer } from '../ledger/transfer.ts'
import { Holders } from '../records/holders.ts'
import type { AnyKind, Change, KnownRecords, Need } from '../records/need.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import { standingBeside } from '../records/standing.ts'
import { insertTraces, type NewTrace } from '../records/traces.ts'
import {
  isGoverned,
  legsOf,
  type Decision,
  type Leg,
  type Movement,
  type Outcome,
  type View,
} from './decision.ts'
import type { Govern, Governor } from './governor.ts'
import { preferExisting, refIdsOf, requireNew } from './repeated-ref-id.ts'
import { addMacs } from './accepted-withdrawals.ts'

export interface PostOptions {
  /** Makes the MACs of withdrawals. Withdrawals accepted without it are never signed. */
  macs?: RowMacs | undefined
  /** Judges payments by policies. Without it, payments of a customer with a policy are refused. */
  govern?: Govern | undefined
  /** Backdates the movements, for invented history. */
  at?: Moment
  /**
   * Looks up existing ref_ids before the movements are decided. Without the look-up, a repeated ref_id violates
   * `transfers_ref_id`, and the caller retries with the look-up.
   */
  lookUpRefIds?: boolean
  /**
   * Sends the commit right after the last write, without waiting for that write. `moved` is false when nothing is
   * written.
   */
  end?: (moved: boolean) => Promise<unknown>
}

/**
 * Moves money in a transaction: reads the records that the movements need, decides the movements in turn, and writes
 * the accepted ones (the one pipeline of every movement; ARCHITECTURE, "How money moves"). Each decision sees the
 * effects of the movements before it. A refusal is an outcome and changes nothing. Returns one outcome per movement,
 * in order, and the moment of all of them. Throws the database's errors; then the transaction must be rolled back.
 */
export async function post(
  tx: Transaction,
  customerId: string,
  movements: readonly Movement[],
  { macs, govern, at, lookUpRefIds = false, end = () => Promise.resolve() }: PostOptions = {},
): Promise<{ outcomes: Outcome[]; now: Moment }> {
  const batch = await readFor(tx, customerId, movements, { govern, at, lookUpRefIds })
  const legs: Leg[] = []
  const changes: Change[] = []
  const traces: NewTrace[] = []
  let moved = false
  const outcomes = movements.map((movement): Outcome => {
    try {
      const decision = decide(batch, movement)
      if (movement.dryRun === true) return { decision }
      moved = true
      if (decision.isOnRecord !== true) legs.push(...legsOf(decision))
      if (decision.changes !== undefined) changes.push(...decision.changes)
      const { traceparent } = movement.origin
      if (traceparent !== undefined) traces.push({ transfer_id: decision.transfer.id, traceparent })
      return { decision }
    } catch (refusal) {
      return { refusal }
    }
  })
  if (!lookUpRefIds) await preferExisting(tx, customerId, movements, outcomes)
  const { ledger, governor } = batch
  if (!moved) await end(false)
  // Sent together: if one statement fails, the commit that follows is a rollback.
  else
    await inOrder([
      handled(governor?.write()),
      handled(ledger.write(addMacs(legs, macs))),
      ...writesOf(tx, customerId, changes, macs).map(handled),
      traces.length === 0 ? undefined : handled(insertTraces(tx, customerId, ledger.now, traces)),
      end(true),
    ])
  return { outcomes, now: ledger.now }
}

/** Where a later write throws before it is sent, nobody waits for the earlier ones, which then fail with the transaction. */
function handled<T extends Promise<unknown> | undefined>(sent: T): T {
  sent?.catch(() => undefined)
  return sent
}

/** The records by which the movements of a batch are decided. */
interface Batch {
  ledger: LedgerTransaction
  holders: Holders
  isGoverned: boolean
  governor: Governor | undefined
  /** The transfers that already have a ref_id of the batch. */
  existing: Map<string, Transfer>
  known: Reads
  view: View
}

type Reads = ReadonlyMap<AnyKind, KnownRecords<unknown, unknown, unknown>>

async function readFor(
  tx: Transaction,
  customerId: string,
  movements: readonly Movement[],
  { govern, at, lookUpRefIds }: Pick<PostOptions, 'govern' | 'at' | 'lookUpRefIds'>,
): Promise<Batch> {
  const keys = movements.flatMap((movement) => movement.balances)
  let known: Reads = NOTHING_READ
  const get: View['get'] = (kind, key) => knownOf(known, kind).get(key) as never
  const governor = govern?.({ tx, customerId, movements, get })
  const beside = standingBeside()
  const [ledger, , needed, existing] = await inOrder([
    LedgerTransaction.open(tx, customerId, keys, { at, readBeside: beside.read }),
    governor?.readEarly(),
    readNeeds(tx, customerId, movements),
    selectTransfersByRefId(
      tx,
      customerId,
      refIdsOf(lookUpRefIds === true ? movements : movements.filter(isDryRun)),
    ),
  ])
  known = needed
  const holders = await Holders.read(tx, customerId, {
    locked: { profileIds: ledger.balances.profileIds, ...beside.standing },
    profileIds: keys.map((key) => key.profile_id),
    holders: movements.flatMap(({ payment }) => payment ?? []),
    receivers: movements.flatMap(({ receiver }) => receiver ?? []),
  })
  const view: View = {
    now: ledger.now,
    newId: idsAt(ledger.now),
    requireOpen: (id) => holders.requireOpen(id),
    get,
  }
  const { policy } = beside.standing
  if (policy !== undefined) await governor?.read(policy, holders)
  return { ledger, holders, isGoverned: policy !== undefined, governor, existing, known, view }
}

const NOTHING_READ: Reads = new Map()

/** Reads the needed records of the whole batch, with one statement per kind. */
async function readNeeds(
  tx: Transaction,
  customerId: string,
  movements: readonly Movement[],
): Promise<Reads> {
  const keysOf = new Map<AnyKind, unknown[]>()
  const add = ({ kind, key }: Need) => {
    const keys = keysOf.get(kind)
    if (keys === undefined) keysOf.set(kind, [key])
    else keys.push(key)
  }
  for (const { needs, existing } of movements) {
    needs?.forEach(add)
    if (existing !== undefined) add(existing)
  }
  if (keysOf.size === 0) return NOTHING_READ
  const kinds = [...keysOf]
  const reads = await inOrder(kinds.map(([kind, keys]) => kind.read(tx, customerId, keys)))
  return new Map(kinds.map(([kind], index) => [kind, reads[index]!]))
}

function knownOf(known: Reads, kind: AnyKind): KnownRecords<unknown, unknown, unknown> {
  const read = known.get(kind)
  assert(read !== undefined, 'a movement must declare the records it needs: only declared records are read')
  return read
}

const isDryRun = ({ dryRun }: Movement): boolean => dryRun === true

/** Decides one movement, in the contract's order, and posts it in memory. Throws its refusal. */
function decide(batch: Batch, movement: Movement): Decision {
  const { ledger, holders, existing, known, view } = batch
  const { ref_id, payment } = movement
  movement.requireCaller?.()
  requireNew(ref_id === undefined ? undefined : existing.get(ref_id))
  if (movement.existing !== undefined)
    requireNew(knownOf(known, movement.existing.kind).get(movement.existing.key) as object | undefined)
  if (payment !== undefined) holders.requireMayWithdraw(payment)
  if (movement.receiver !== undefined) holders.requireReceiver(movement.receiver)
  const decided = movement.decide(view)
  const verdict =
    batch.isGoverned && isGoverned(decided.transfer, movement)
      ? governorOf(batch).judge(movement, decided, view)
      : undefined
  const decision = verdict?.decision ?? decided
  if (movement.dryRun === true) {
    requireFunds(ledger, decision.entries)
    return decision
  }
  apply(ledger, movement, decision)
  verdict?.count()
  if (ref_id !== undefined) existing.set(ref_id, decision.transfer)
  for (const { kind, value } of decision.changes ?? []) known.get(kind)?.note?.(value)
  return decision
}

function governorOf({ governor }: Batch): Governor {
  if (governor !== undefined) return governor
  throw problem.unavailable('this customer has a policy, and this process has no master key to check it with')
}

/**
 * Posts a decision in memory: both legs or nothing. Throws insufficient-funds for the first balance that it would
 * take below zero. Throws an assertion when it moves a balance that the movement did not name: only named balances
 * are locked.
 */
function apply(ledger: LedgerTransaction, { balances, origin }: Movement, decision: Decision): void {
  const isNamed = ({ profile_id, asset }: Entry) =>
    profile_id === null || balances.some((key) => key.profile_id === profile_id && key.asset === asset)
  const postings = legsOf(decision).map(({ transfer: { id }, entries }): Posting => {
    assert(
      entries.every(isNamed),
      'a movement must name the balances it moves: only named balances are locked',
    )
    const action = decision.isOnRecord === true ? 'transfer.complete' : undefined
    return { transfer_id: id, event: 'CREATED', entries, origin, action }
  })
  requireFunds(ledger, decision.entries)
  ledger.post(...postings)
}

function requireFunds(ledger: LedgerTransaction, entries: Entry[]): void {
  const short = ledger.shortOf(entries)
  if (short === undefined) return
  const { profile_id, asset, available, needed } = short
  throw problem.insufficientFunds({
    profile_id,
    asset,
    available: formatAmount(available, decimalsOf(asset)),
    needed: formatAmount(needed, decimalsOf(asset)),
  })
}

/** Returns the statements that write the accepted movements' changes, one per kind. */
function writesOf(
  tx: Transaction,
  customerId: string,
  changes: readonly Change[],
  macs: RowMacs | undefined,
): Promise<unknown>[] {
  if (changes.length === 0) return []
  const byKind = new Map<AnyKind, unknown[]>()
  for (const { kind, value } of changes) {
    const values = byKind.get(kind)
    if (values === undefined) byKind.set(kind, [value])
    else values.push(value)
  }
  return [...byKind].flatMap(([kind, values]) => kind.write?.(tx, customerId, values, macs) ?? [])
}
