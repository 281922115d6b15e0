import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import type { Queryable } from '../../db/database.ts'
import { firstIdAt, momentAt } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import {
  APPROVAL_COLUMNS,
  approvalToWire,
  selectDecisions,
  type ApprovalRow,
} from '../../governance/approvals/approval.ts'
import { describeFreeze, freezesOf } from '../../money/records/freezes.ts'
import { nameInitiators } from '../../access/audit-log/actor-names.ts'
import {
  EVENT_COLUMNS,
  eventsOfRecord,
  eventToWire,
  type Event,
  type EventRow,
} from '../../money/records/event.ts'
import { OrchestrationStatus } from '../../money/records/orchestration.ts'
import {
  attemptToWire,
  deliveryToWire,
  SELECT_DELIVERIES,
  WebhookAttempt,
  WebhookDelivery,
  type WebhookAttemptRow,
  type WebhookDeliveryRow,
} from '../../money/records/webhook-delivery.ts'
import type { Approval } from '../../contract/approval.ts'

/** The records that tell what happened to a transfer (API behaviour, Transfer history). Each part is found by an index. */

const SIGNED = Type.String({
  description: 'Change of the account: negative for a debit.',
  examples: ['-25.5'],
})

/** An entry of the ledger, on a profile's balance or on an account of the platform. */
export const LedgerEntry = NamedObject('LedgerEntry', {
  event: OneOf(
    ['CREATED', 'SETTLED', 'REFUNDED'],
    'CREATED: the transfer was made. SETTLED: it ended. REFUNDED: it failed, and the money came back.',
  ),
  position: Type.Integer({ minimum: 1, description: 'Its place among the entries of the event.' }),
  account: Type.String({
    description: '`profile`, or the account of the platform that is the other side.',
    examples: ['in_flight:ETHEREUM'],
  }),
  profile_id: Type.Optional(Uuid('The profile, for `profile`.')),
  asset: AssetSymbol,
  amount: SIGNED,
  balance_before: Type.Optional(Amount('Available balance of the profile before the entry.')),
  balance_after: Type.Optional(Amount('Available balance of the profile after the entry.')),
  sequence: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Place among the changes of this balance.' }),
  ),
  created_at: Timestamp('Time of the entry.'),
})
export type LedgerEntry = Static<typeof LedgerEntry>

export const NetworkTransaction = NamedObject('NetworkTransaction', {
  crypto_tx_hash: Type.String({ description: 'Hash of the transaction.' }),
  state: OneOf(
    ['SIGNED', 'BROADCAST', 'REPLACED', 'ENDED'],
    'SIGNED: kept, not accepted by the network yet. BROADCAST: waits for the network. REPLACED: signed again for a higher fee; either may be mined. ENDED: the transfer has ended with it.',
  ),
  signed_at: Type.Optional(Timestamp('When it was signed.')),
  broadcast_at: Type.Optional(Timestamp('When the network accepted it first.')),
  confirmations: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'While it is in a block and not confirmed: the blocks from its own to the newest.',
    }),
  ),
  confirmations_needed: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'How many make it final. Absent where the node decides, as with `finalized`.',
    }),
  ),
  replaced_at: Type.Optional(Timestamp('When another took its place.')),
})

/** A delivery of one of the transfer's events, with its attempts. */
export const DeliveryWithAttempts = NamedObject('DeliveryWithAttempts', {
  delivery: WebhookDelivery,
  webhook_name: Type.String({ description: 'Name of the webhook.' }),
  attempts: Type.Array(WebhookAttempt, { description: 'The latest attempts, oldest first.' }),
})

export const OrchestrationOfTransfer = NamedObject('OrchestrationOfTransfer', {
  id: Uuid('The orchestration.'),
  status: OrchestrationStatus,
  role: OneOf(['SOURCE', 'DESTINATION'], 'Whether the transfer brought the money, or took it on.'),
  source_transfer_id: Type.Optional(Uuid('The transfer that brought the money.')),
  destination_transfer_id: Type.Optional(Uuid('The transfer that took the money on.')),
})

interface EntryRow {
  event: LedgerEntry['event']
  position: number
  account: string
  profile_id: string | null
  asset: string
  amount: string
  balance_after: string | null
  version: string | null
  created_at: string
}

/** Reads the entries of a transfer, in the order in which they were posted. */
export async function selectLedgerEntries(
  db: Queryable,
  customerId: string,
  transferId: string,
): Promise<LedgerEntry[]> {
  const { rows } = await db.query<EntryRow>(
    `
    select event, position, account, profile_id, asset, amount, balance_after, version, created_at
    from entries
    where customer_id = $1 and transfer_id = $2
    order by created_at, event, position`,
    [customerId, transferId],
  )
  return rows.map(({ version, amount, balance_after, profile_id, ...row }) => {
    const decimals = decimalsOf(row.asset)
    const change = parseStoredAmount(amount, decimals)
    const after = balance_after === null ? undefined : parseStoredAmount(balance_after, decimals)
    return {
      ...row,
      ...presentOf({ profile_id }),
      amount: formatAmount(change, decimals),
      ...(after !== undefined && {
        balance_before: formatAmount(after - change, decimals),
        balance_after: formatAmount(after, decimals),
        sequence: Number(version),
      }),
    }
  })
}

interface PayoutRow {
  network: string
  state: 'HELD' | 'ASKED' | 'SIGNED' | 'BROADCAST' | 'DONE'
  crypto_tx_hash: string | null
  signed_at: string | null
  broadcast_at: string | null
  confirmations: number | null
  confirmations_needed: number | null
  waiting_code: string | null
  waiting_detail: string | null
  waiting_since: string | null
}

interface ReplacedRow {
  crypto_tx_hash: string
  signed_at: string | null
  broadcast_at: string | null
  replaced_at: string
}

const STATE_OF = {
  HELD: 'SIGNED',
  ASKED: 'SIGNED',
  SIGNED: 'SIGNED',
  BROADCAST: 'BROADCAST',
  DONE: 'ENDED',
} as const

/** The transaction that pays a withdrawal now. */
const currentOf = (
  { state, signed_at, broadcast_at, confirmations, confirmations_needed }: PayoutRow,
  crypto_tx_hash: string,
): Static<typeof NetworkTransaction> => ({
  crypto_tx_hash,
  state: STATE_OF[state],
  ...presentOf({ signed_at, broadcast_at, confirmations, confirmations_needed }),
})

/** Reads how far the payment of a withdrawal is: its transactions, oldest first, and why it waits: a freeze before all else. */
export async function selectPayout(
  db: Queryable,
  { customer_id: customerId, id: transferId, type, status, direction, profile_id, crypto_network }: Transfer,
): Promise<{
  transactions: Static<typeof NetworkTransaction>[]
  waiting: { code: string; detail: string; since: string | null } | undefined
}> {
  const { rows } = await db.query<PayoutRow>(
    `
    select network, state, crypto_tx_hash, signed_at, broadcast_at, confirmations, confirmations_needed, waiting_code, waiting_detail, waiting_since
    from outgoing_transfers
    where customer_id = $1 and transfer_id = $2`,
    [customerId, transferId],
  )
  const replaced = await db.query<ReplacedRow>(
    `
    select crypto_tx_hash, signed_at, broadcast_at, replaced_at
    from replaced_transactions
    where customer_id = $1 and transfer_id = $2
    order by replaced_at`,
    [customerId, transferId],
  )
  const [payout] = rows
  // The worker may look at a payment later, and it is held at once. No freeze holds a signed payment.
  const isUnsigned = status === 'PENDING' && direction === 'DEBIT' && (payout?.state ?? 'HELD') === 'HELD'
  const network = type === 'WIRE_WITHDRAWAL' ? 'WIRE' : (crypto_network ?? '')
  const signs = { network, customer_id: customerId, profile_ids: [profile_id] }
  const [freeze] = isUnsigned ? await freezesOf(db, signs) : []
  const { crypto_tx_hash = null, waiting_code = null, waiting_detail = '' } = payout ?? {}
  return {
    transactions: [
      ...replaced.rows
        .filter((transaction) => transaction.crypto_tx_hash !== crypto_tx_hash)
        .map(({ signed_at, broadcast_at, ...transaction }) => ({
          ...transaction,
          ...presentOf({ signed_at, broadcast_at }),
          state: 'REPLACED' as const,
        })),
      // A wire has no transaction: its hash is that of the order that an operator took.
      ...(payout === undefined || payout.network === 'WIRE' || crypto_tx_hash === null
        ? []
        : [currentOf(payout, crypto_tx_hash)]),
    ],
    waiting:
      freeze !== undefined
        ? { code: 'FROZEN', detail: describeFreeze(freeze), since: freeze.created_at }
        : waiting_code === null
          ? undefined
          : { code: waiting_code, detail: waiting_detail ?? '', since: payout?.waiting_since ?? null },
  }
}

/** Reads the approval of a withdrawal; undefined where it needed none. */
export async function selectApprovalOf(
  db: Queryable,
  customerId: string,
  transferId: string,
  allOperators: boolean,
): Promise<Approval | undefined> {
  const { rows } = await db.query<ApprovalRow>(
    `select ${APPROVAL_COLUMNS} from approvals a where a.customer_id = $1 and a.transfer_id = $2`,
    [customerId, transferId],
  )
  if (rows[0] === undefined) return undefined
  const approval = approvalToWire(rows[0], await selectDecisions(db, customerId, [rows[0].id]))
  const [named] = await nameInitiators(db, customerId, [approval], allOperators)
  return named
}

/** Reads the events of a transfer, oldest first. Retention drops old ones. */
export async function selectEventsOf(
  db: Queryable,
  customerId: string,
  transferId: string,
): Promise<Event[]> {
  const ranges = await eventsOfRecord(db, customerId, transferId)
  const { rows } = await db.query<EventRow>(
    `
    select ${EVENT_COLUMNS}
    from unnest($3::uuid[], $4::uuid[]) as ranges (id_from, id_to)
    join events e on e.customer_id = $1 and e.id >= ranges.id_from and e.id < ranges.id_to and e.object_id = $2
    order by e.id`,
    [customerId, transferId, ranges.map(({ from }) => from), ranges.map(({ to }) => to)],
  )
  return rows.map(eventToWire)
}

/** Most attempts that are shown of each delivery. One round has twelve. */
const ATTEMPTS_MAX = 24

/** Reads the deliveries of these events to the webhooks that exist, with their latest attempts. */
export async function selectDeliveriesOf(
  db: Queryable,
  customerId: string,
  eventIds: readonly string[],
): Promise<Static<typeof DeliveryWithAttempts>[]> {
  if (eventIds.length === 0) return []
  const webhooks = await db.query<{ id: string; name: string }>(
    'select id, name from webhooks where customer_id = $1 order by id',
    [customerId],
  )
  const names = new Map(webhooks.rows.map(({ id, name }) => [id, name]))
  const { rows } = await db.query<WebhookDeliveryRow>(
    `
    ${SELECT_DELIVERIES}
    where d.customer_id = $1 and d.webhook_id = any ($2::uuid[]) and d.id = any ($3::uuid[])
    order by d.id, d.webhook_id`,
    [customerId, [...names.keys()], eventIds],
  )
  const attempts = await db.query<WebhookAttemptRow & { webhook_id: string; event_id: string }>(
    `
    select a.*
    from unnest($2::uuid[], $3::uuid[]) as d (webhook_id, event_id)
    cross join lateral (
      select webhook_id, event_id, id, attempt, status_code, error, duration_ms, response, created_at
      from webhook_attempts
      where customer_id = $1 and webhook_id = d.webhook_id and event_id = d.event_id
      order by id desc
      limit ${ATTEMPTS_MAX}
    ) a
    order by a.id`,
    [customerId, rows.map(({ webhook_id }) => webhook_id), rows.map(({ id }) => id)],
  )
  return rows.map((row) => ({
    delivery: deliveryToWire(row),
    webhook_name: names.get(row.webhook_id)!,
    attempts: attempts.rows
      .filter(({ webhook_id, event_id }) => webhook_id === row.webhook_id && event_id === row.id)
      .map(({ webhook_id: _w, event_id: _e, ...attempt }) => attemptToWire(attempt)),
  }))
}

/**
 * Reads the orchestrations that a transfer belongs to. A deposit's orchestration is created in the transaction of the
 * deposit, so that its id begins with the time at which the deposit was created or updated.
 */
export async function selectOrchestrationsOf(
  db: Queryable,
  customerId: string,
  { id, created_at, updated_at }: Pick<Transfer, 'id' | 'created_at' | 'updated_at'>,
): Promise<Static<typeof OrchestrationOfTransfer>[]> {
  const moments = [...new Set([created_at, updated_at])].map((text) => momentAt(text).micros)
  const { rows } = await db.query<{
    id: string
    status: 'PROCESSING' | 'COMPLETED' | 'FAILED'
    source_transfer_id: string | null
    destination_transfer_id: string | null
  }>(
    `
    select id, status, source_transfer_id, destination_transfer_id
    from orchestrations
    where customer_id = $1 and destination_transfer_id = $2
    union
    select o.id, o.status, o.source_transfer_id, o.destination_transfer_id
    from unnest($3::uuid[], $4::uuid[]) as ranges (id_from, id_to)
    join orchestrations o
      on o.customer_id = $1 and o.id >= ranges.id_from and o.id < ranges.id_to and o.source_transfer_id = $2
    order by id`,
    [
      customerId,
      id,
      moments.map((micros) => firstIdAt(micros)),
      moments.map((micros) => firstIdAt(micros + 1)),
    ],
  )
  return rows.map(({ source_transfer_id, destination_transfer_id, ...row }) => ({
    ...row,
    role: destination_transfer_id === id ? ('DESTINATION' as const) : ('SOURCE' as const),
    ...presentOf({ source_transfer_id, destination_transfer_id }),
  }))
}
