import { formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { type Transaction } from '../../db/database.ts'
import { arrayLiteral } from '../../db/array-literal.ts'
import { bind, columnsOf, insertOf, sendTogether, type StatementPart } from '../../db/together.ts'
import type { AuditAction } from '../../contract/audit-actions.ts'
import { transferEventType } from '../../contract/event-types.ts'
import { momentAt, PLATFORM_ID, type Moment } from '../../db/ids.ts'
import { recordMoneyMoved, type MoneyMoved, type LedgerEvent } from '../../audit/audit.ts'
import { ownRowMacs } from '../../audit/sealed-rows.ts'
import {
  Balances,
  lockBalances,
  type BalanceKey,
  type MadeBalance,
  type MovedBalances,
  type ReadBeside,
} from './balances.ts'
import { EVENT_COLUMNS, eventRows, type NewEvent } from './events.ts'
import { requireBalanced } from './balanced.ts'
import type { Entry, Posting } from './entries.ts'
import { metadataOf } from './transfer-metadata.ts'
import { byRefId, NEW_TRANSFER_COLUMNS, type NewTransfer, type Transfer } from './transfer.ts'

/**
 * The ledger inside one transaction: balances are locked, movements applied in memory, then everything is written at
 * once.
 */
export class LedgerTransaction {
  readonly balances: Balances
  /** The time of everything posted in this transaction. It is never before an earlier entry of a balance, or in a closed day. */
  readonly now: Moment
  #tx: Transaction
  #customerId: string
  /** The transfers posted so far, by actor, action and event, for the audit log. */
  #moved: MoneyMoved[] = []
  #entries: EntryRow[] = []

  private constructor(tx: Transaction, customerId: string, balances: Balances, now: Moment) {
    this.#tx = tx
    this.#customerId = customerId
    this.balances = balances
    this.now = now
  }

  /**
   * Locks the balances of `keys` and reads the clock after the locks, in one round trip. `at` backdates the transaction, for
   * invented history, but never to before the last entry of the balances. `readBeside` reads more in that round trip.
   */
  static async open(
    tx: Transaction,
    customerId: string,
    keys: BalanceKey[],
    { at, readBeside }: { at?: Moment | undefined; readBeside?: ReadBeside } = {},
  ): Promise<LedgerTransaction> {
    const { rows, profileIds, clock, closed } = await lockBalances(tx, customerId, keys, readBeside)
    // After the clock was set back, a new entry must still not precede the last one, nor be within a closed day. Timestamps of
    // one format sort as text.
    const now = [closed ?? '', ...rows.map(({ updated_at }) => updated_at)].reduce(
      (latest, time) => (time > latest ? time : latest),
      at?.text ?? clock,
    )
    // A transaction that locks no balance moves none.
    const sealing = keys.length === 0 ? undefined : { macs: await ownRowMacs(), customerId }
    return new LedgerTransaction(tx, customerId, new Balances(rows, profileIds, sealing), momentAt(now))
  }

  /** Returns the first profile balance that these entries would take below zero, with the amount needed. */
  shortOf(
    entries: Entry[],
  ): { profile_id: string; asset: string; available: bigint; needed: bigint } | undefined {
    for (const { profile_id, asset, amount } of entries) {
      if (profile_id === null || amount >= 0n) continue
      const available = this.balances.available(profile_id, asset)
      let change = 0n
      for (const entry of entries)
        if (entry.profile_id === profile_id && entry.asset === asset) change += entry.amount
      if (available + change < 0n) return { profile_id, asset, available, needed: -change }
    }
    return undefined
  }

  /**
   * Adds postings, all or none. Throws an assertion when a posting does not balance, and unavailable for a balance that was
   * changed in the database.
   */
  post(...postings: Posting[]): void {
    for (const { entries } of postings) {
      requireBalanced(entries)
      for (const { profile_id, asset } of entries)
        if (profile_id !== null) this.balances.requireGenuine(profile_id, asset)
    }
    postings.forEach((posting) => this.#add(posting))
  }

  #add(posting: Posting): void {
    const { transfer_id, event, entries } = posting
    const moved = this.#audit(posting)
    let position = 0
    for (const { account, profile_id, asset, amount } of entries) {
      // Entries of zero are not recorded.
      if (amount === 0n) continue
      const after = profile_id === null ? undefined : this.balances.move(profile_id, asset, amount)
      const decimals = decimalsOf(asset)
      this.#entries.push({
        created_at: this.now.text,
        transfer_id,
        event,
        position: ++position,
        account,
        profile_id: profile_id === null ? null : profile_id.toLowerCase(),
        asset,
        amount: formatAmount(amount, decimals),
        balance_after: after === undefined ? null : formatAmount(after.available, decimals),
        version: after === undefined ? null : after.version,
        moved,
      })
    }
  }

  /** Notes who makes a posting. Returns the changes of this actor and action. */
  #audit({
    transfer_id,
    event,
    origin: { actor, request_id, ip },
    action = ACTION_OF[event],
  }: Posting): MoneyMoved {
    const isSame = (open: MoneyMoved) =>
      open.actor.id === actor.id &&
      open.actor.type === actor.type &&
      open.action === action &&
      open.event === event
    let moved = this.#moved.find(isSame)
    if (moved === undefined) {
      moved = { actor, action, event, transferIds: [], requestIds: [], ips: [] }
      this.#moved.push(moved)
    }
    moved.transferIds.push(transfer_id)
    moved.requestIds.push(request_id)
    moved.ips.push(ip)
    return moved
  }

  /** Hands the postings to the audit log, each actor's and action's with the columns of their entries. */
  #recordMoved(columns: readonly string[]): void {
    for (const moved of this.#moved) {
      const own =
        this.#moved.length === 1
          ? columns
          : columnsOfEntries(this.#entries.filter((entry) => entry.moved === moved))
      recordMoneyMoved(
        this.#tx,
        this.#customerId,
        this.now,
        moved,
        own.filter((_, index) => index !== EVENT),
      )
    }
  }

  /**
   * Sends everything in one round trip: also new transfers, and an event for each of them and for each of `changed`, whose status
   * this transaction changes. It fails on any inconsistency, so the caller may send the commit without waiting for the result.
   */
  async write(transfers: NewTransfer[] = [], changed: ChangedTransfer[] = []): Promise<void> {
    // Nobody reads the events of the platform's own transfers.
    const told =
      this.#customerId === PLATFORM_ID ? [] : [...transfers.map(({ transfer }) => transfer), ...changed]
    const now = this.now.text
    const columns = columnsOfEntries(this.#entries)
    const parts = [
      bind(INSERT_BALANCES, this.balances.made(now)),
      bind(MOVE_BALANCES, this.balances.moved(now)),
      bind(INSERT_ENTRIES, this.#entries, [now, ...columns]),
      bind(INSERT_TRANSFERS, byRefId(transfers)),
      ...metadataOf(transfers.map(({ transfer }) => transfer)),
      bind(INSERT_EVENTS, eventRows(told.map(eventOf), this.now)),
    ]
    const sent = sendTogether(
      this.#tx,
      this.#customerId,
      parts.filter(({ rows }) => rows.length > 0),
    )
    this.#recordMoved(columns)
    await sent
  }
}

const ACTION_OF = {
  CREATED: 'transfer.create',
  SETTLED: 'transfer.complete',
  REFUNDED: 'transfer.fail',
  SWEPT: 'sweep.settle',
} as const satisfies Record<LedgerEvent, AuditAction>

export type ChangedTransfer = Pick<Transfer, 'id' | 'type' | 'status'>

const eventOf = ({ id, type, status }: ChangedTransfer): NewEvent => ({
  type: transferEventType(type, status),
  object_id: id,
})

const ENTRY_TYPES = {
  transfer_id: 'uuid',
  event: 'text',
  position: 'smallint',
  account: 'text',
  profile_id: 'uuid',
  asset: 'text',
  amount: 'numeric',
  balance_after: 'numeric',
  version: 'bigint',
}
type EntryRow = Record<keyof typeof ENTRY_TYPES, string | number | null> & {
  created_at: string
  moved: MoneyMoved
}
const ENTRY_COLUMNS = columnsOf<EntryRow>(ENTRY_TYPES)
/** The audit record has the event itself: this column is not hashed. */
const EVENT = ENTRY_COLUMNS.findIndex(({ name }) => name === 'event')
const columnsOfEntries = (entries: readonly EntryRow[]) =>
  ENTRY_COLUMNS.map(({ of }) => arrayLiteral(entries.map(of)))

const INSERT_BALANCES = insertOf<MadeBalance>('insert into balances', [
  ...columnsOf<MadeBalance>({ updated_at: 'timestamptz' }, true),
  ...columnsOf<MadeBalance>({
    profile_id: 'uuid',
    asset: 'text',
    available: 'numeric',
    version: 'bigint',
    mac: 'text',
  }),
])
const INSERT_ENTRIES = insertOf<EntryRow>('insert into entries', [
  ...columnsOf<EntryRow>({ created_at: 'timestamptz' }, true),
  ...ENTRY_COLUMNS,
])
const INSERT_TRANSFERS = insertOf('insert into transfers', NEW_TRANSFER_COLUMNS)
const INSERT_EVENTS = insertOf('insert into events', EVENT_COLUMNS, { fixed: { is_test: 'false' } })

// Without a join, the statement looks each balance up by its key whatever the statistics. All of
// these balances exist and are locked. Where a version is not the one that was read, a division by zero ends the transaction.
const MOVE_BALANCES: StatementPart<MovedBalances> = {
  // The name is short: PostgreSQL cuts the names of joined parts after 63 characters.
  name: 'balances',
  inserts: false,
  columns: columnsOf<MovedBalances>({
    moved_at: 'timestamptz',
    profile_ids: 'text',
    assets: 'text',
    by_key: 'jsonb',
  }),
  text: ({ customer, value, from }) => {
    const [movedAt, byKey] = [value('moved_at'), `${value('by_key')}::jsonb`]
    const member = (index: number) => `${byKey} -> (profile_id || '/' || asset) ->> ${index}`
    return `
    update balances
    set available = (${member(0)})::numeric, updated_at = ${movedAt}::timestamptz, mac = ${member(3)},
        version = (${member(1)})::bigint / (version = (${member(2)})::bigint)::int
    ${from}
    where customer_id = ${customer} and profile_id = any (${value('profile_ids')}::uuid[])
      and asset = any (${value('assets')}::text[]) and ${byKey} ? (profile_id || '/' || asset)`
  },
}
