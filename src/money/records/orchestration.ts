import { Type, type Static } from 'typebox'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { momentAt, UUID, type Moment } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import { orchestrationEventType } from '../../contract/event-types.ts'
import { insertEvents, type NewEvent } from '../ledger/events.ts'
import { TransferStatus } from '../ledger/transfer.ts'
import type { RecordKind } from './need.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import {
  Amount,
  AssetSymbol,
  Metadata,
  NamedObject,
  Network,
  OneOf,
  RefId,
  Text,
  Timestamp,
  Uuid,
  WIRE_MEMO_LENGTH_MAX,
} from '../../contract/fields.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'

export const OrchestrationStatus = OneOf(['PROCESSING', 'COMPLETED', 'FAILED'], 'Status.')

const TransferLink = (description: string) =>
  Type.Optional(
    Type.Object(
      { transfer_id: Uuid('Transfer id.'), status: Type.Optional(TransferStatus) },
      { description },
    ),
  )
/** A blockchain address at the end of an orchestration. */
export const CryptoEnd = Type.Object({
  address_id: Type.Optional(Uuid("Id of the customer's own deposit address, or of the address book.")),
  crypto_address_id: Type.Optional(Uuid('The same as address_id.')),
  address: Type.String({ description: 'Crypto address.' }),
  network: Network,
})
const ProfileEnd = Type.Object({ profile_id: Uuid('Profile.') })

export const Orchestration = NamedObject('Orchestration', {
  id: Uuid('Orchestration id.'),
  profile_id: Uuid('Target profile: whose balance the money is taken from.'),
  identity_id: Type.Optional(Uuid('Identity.')),
  account_id: Type.Optional(Uuid('Account.')),
  customer_id: Uuid('Customer.'),
  ref_id: Type.Optional(RefId),
  status: OrchestrationStatus,
  source_asset: AssetSymbol,
  destination_asset: AssetSymbol,
  source_amount: Amount('Amount of the source asset.'),
  source_transfer: TransferLink(
    'The deposit that started it, or the transfer that debits its source profile.',
  ),
  destination_transfer: TransferLink('The transfer to the destination, once it is made.'),
  fail_reason: Type.Optional(
    Type.Object({ detail: Type.String() }, { description: 'Why the orchestration failed.' }),
  ),
  source: Type.Object(
    {
      crypto: Type.Optional(CryptoEnd),
      fiat: Type.Optional(
        Type.Object({
          deposit_instructions_id: Uuid('Deposit instructions.'),
          memo: Type.String({ description: 'The memo_id of the deposit instructions.' }),
        }),
      ),
      profile: Type.Optional(ProfileEnd),
    },
    { minProperties: 1, maxProperties: 1, description: 'Where the money comes from.' },
  ),
  destination: Type.Object(
    {
      crypto: Type.Optional(CryptoEnd),
      fiat: Type.Optional(
        Type.Object({
          bank_account_id: Uuid('Fiat account that is paid.'),
          memo: Type.Optional(Text(WIRE_MEMO_LENGTH_MAX, 'Memo that goes with the money.')),
        }),
      ),
      profile: Type.Optional(ProfileEnd),
    },
    { minProperties: 1, maxProperties: 1, description: 'Where the money goes.' },
  ),
  orchestration_rule_id: Type.Optional(Uuid('Rule that initiated it.')),
  metadata: Type.Optional(Metadata),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
})
export type Orchestration = Static<typeof Orchestration>

export interface NewOrchestration extends Orchestration {
  /** The number of orchestrations that its deposit has passed through (default: 0). */
  hops?: number
  /** Who starts it. Not a member of its record. */
  origin: Origin
}

type Linked = 'source_transfer' | 'destination_transfer' | 'fail_reason'
/** A row of `orchestrations`: the record with nulls for absent fields, and links and fail reason as plain values. */
export type OrchestrationRow = { [K in keyof Omit<Orchestration, Linked>]: Orchestration[K] } & {
  source_transfer_id: string | null
  source_transfer_status: Status | null
  destination_transfer_id: string | null
  destination_transfer_status: Status | null
  fail_reason: string | null
}
type Status = Static<typeof TransferStatus>

/** The columns of an orchestration `o`; `$1` is its customer (rule 1 of src/db/distribution.ts). */
export const ORCHESTRATION_COLUMNS = `o.id, o.profile_id, o.identity_id, o.account_id, o.customer_id, o.ref_id, o.status,
  o.source_asset, o.destination_asset, o.source_amount, o.source_transfer_id, o.destination_transfer_id,
  (select t.status from transfers t
   where t.customer_id = $1 and t.id = o.source_transfer_id) as source_transfer_status,
  (select t.status from transfers t
   where t.customer_id = $1 and t.id = o.destination_transfer_id) as destination_transfer_status,
  o.fail_reason, o.source, o.destination, o.orchestration_rule_id, o.metadata, o.created_at, o.updated_at`

const REF_ID_OF_RULE = 'orchestration_id.'

/** Returns the ref_id that an orchestration of a rule shows. It is not stored, because no client sent it. */
const refIdOf = (id: string) => `${REF_ID_OF_RULE}${id}`

/** In SQL: the ref_id that an orchestration `o` shows, by the same rule as `orchestrationToWire`. */
export const REF_ID_SHOWN = `case when o.orchestration_rule_id is null then o.ref_id
  else coalesce(o.ref_id, '${REF_ID_OF_RULE}' || o.id) end`

/** Returns the id of the orchestration of a rule that shows this ref_id; undefined for a client's own ref_id. */
export function idOfRefId(refId: string): string | undefined {
  const id = refId.slice(REF_ID_OF_RULE.length)
  return UUID.test(id) && refId === refIdOf(id.toLowerCase()) ? id : undefined
}

export function orchestrationToWire({
  source_transfer_id,
  source_transfer_status,
  destination_transfer_id,
  destination_transfer_status,
  fail_reason,
  ...row
}: OrchestrationRow): Orchestration {
  const record = presentOf(row) as Omit<Orchestration, Linked>
  return {
    ...record,
    ...(record.orchestration_rule_id !== undefined && { ref_id: record.ref_id ?? refIdOf(record.id) }),
    ...linked('source_transfer', source_transfer_id, source_transfer_status),
    ...linked('destination_transfer', destination_transfer_id, destination_transfer_status),
    ...(fail_reason !== null && { fail_reason: { detail: fail_reason } }),
  }
}

const linked = (name: string, transfer_id: string | null, status: Status | null) =>
  transfer_id !== null && { [name]: { transfer_id, ...(status !== null && { status }) } }

/** Orchestrations by ref_id, and the new orchestrations of accepted movements. */
export const ORCHESTRATIONS: RecordKind<string, Orchestration, NewOrchestration> = {
  async read(tx, customerId, refIds) {
    const { rows } = await tx.query<OrchestrationRow>(
      `
    select ${ORCHESTRATION_COLUMNS}
    from orchestrations o
    where o.customer_id = $1 and o.ref_id = any ($2::text[])`,
      [customerId, refIds],
    )
    const known = new Map<string, Orchestration>(rows.map((row) => [row.ref_id!, orchestrationToWire(row)]))
    return {
      get: (refId) => known.get(refId),
      note: (started) => {
        if (started.ref_id !== undefined) known.set(started.ref_id, recordOf(started))
      },
    }
  },
  write(tx, customerId, started, macs) {
    // In the order of the unique key: two processes that insert the same ref_ids then wait for each other without a
    // deadlock.
    const sorted = [...started].sort((a, b) => ((a.ref_id ?? '') < (b.ref_id ?? '') ? -1 : 1))
    const rows = sorted.map((order) => ({ ...order, mac: macs?.of('orchestrations').make(orderOf(order)) }))
    const insert = tx.query({
      name: 'start orchestrations',
      // Selects from a row of the customer (rule 2 of src/db/distribution.ts).
      text: `
      insert into orchestrations (customer_id, id, profile_id, identity_id, account_id, ref_id, source_asset,
                                  destination_asset, source_amount, source_transfer_id, destination_transfer_id,
                                  source, destination, orchestration_rule_id, status, fail_reason, hops, metadata,
                                  created_at, updated_at, mac)
      select h.customer_id, id, profile_id, identity_id, account_id, ref_id, source_asset, destination_asset, source_amount,
             (source_transfer ->> 'transfer_id')::uuid, (destination_transfer ->> 'transfer_id')::uuid,
             source, destination, orchestration_rule_id, status, fail_reason ->> 'detail', coalesce(hops, 0), metadata,
             created_at, updated_at, mac
      from json_to_recordset($2) as new (id uuid, profile_id uuid, identity_id uuid, account_id uuid, ref_id text,
                                         source_asset text, destination_asset text, source_amount numeric,
                                         source_transfer jsonb, destination_transfer jsonb, source jsonb,
                                         destination jsonb, orchestration_rule_id uuid, status text, fail_reason jsonb,
                                         hops smallint, metadata jsonb, created_at timestamptz,
                                         updated_at timestamptz, mac text)
      cross join audit_heads h
      where h.customer_id = $1`,
      values: [customerId, JSON.stringify(rows)],
    })
    // All orchestrations of a batch are made at the batch's moment.
    const now = momentAt(sorted[0]!.created_at)
    const records = sorted.map(({ id, origin }) => audited(origin, 'orchestration.create', id))
    recordChanges(tx, customerId, now, records)
    return [insert, insertEvents(tx, customerId, now, sorted.map(orchestrationEvent))]
  },
}

/** The text that an orchestration's MAC covers. `numeric` may have trailing zeros that the decimal string did not have. */
const orderOf = (order: Orchestration): string => {
  const { crypto, fiat, profile } = order.destination
  return JSON.stringify([
    order.customer_id,
    order.id,
    order.profile_id,
    order.identity_id ?? null,
    order.account_id ?? null,
    order.source_asset,
    order.destination_asset,
    order.source_amount.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, ''),
    order.source_transfer?.transfer_id ?? null,
    order.orchestration_rule_id ?? null,
    crypto
      ? [crypto.network, crypto.address]
      : fiat
        ? [fiat.bank_account_id, fiat.memo ?? null]
        : // A row without any was changed in the database.
          (profile?.profile_id ?? null),
  ])
}

/** Why an orchestration is not what was ordered; undefined when it is. */
export const objectionToOrder = (
  macs: RowMacs,
  order: Orchestration,
  mac: string | null,
): string | undefined =>
  mac === null ? 'it has no MAC' : macs.of('orchestrations').objectionTo(orderOf(order), mac)

/** The orchestrations of a customer that are still to be paid, with what is wrong with their MACs. */
async function openOrders(
  db: Queryable,
  customerId: string,
  macs: RowMacs,
): Promise<{ order: Orchestration; mac: string | null; objection: string | undefined }[]> {
  const { rows } = await db.query<OrchestrationRow & { mac: string | null }>(
    `select ${ORCHESTRATION_COLUMNS}, o.mac from orchestrations o
     where o.customer_id = $1 and o.status = 'PROCESSING' and o.destination_transfer_id is null
     order by o.id`,
    [customerId],
  )
  return rows.map(({ mac, ...row }) => {
    const order = orchestrationToWire(row)
    return { order, mac, objection: objectionToOrder(macs, order, mac) }
  })
}

/** For `bursar verify`: the orchestrations of a customer that would not be paid, because nobody ordered them as they are. */
export async function forgedOrders(
  db: Queryable,
  customerId: string,
  macs: RowMacs,
): Promise<{ id: string; objection: string }[]> {
  const orders = await openOrders(db, customerId, macs)
  return orders.flatMap(({ order: { id }, objection }) =>
    objection === undefined ? [] : [{ id, objection }],
  )
}

/**
 * Makes MACs of orchestrations that are still to be paid, with the current master key. OF_OLDER_KEYS: of those with the MAC of an
 * older key. WITHOUT: of those that have no MAC, as they are, after the loss of a master key. Returns their number.
 */
export async function sealOrders(
  db: Queryable,
  which: 'OF_OLDER_KEYS' | 'WITHOUT',
  macs: RowMacs,
): Promise<number> {
  const { rows: customers } = await db.query<{ customer_id: string }>(
    `select distinct customer_id from orchestrations where status = 'PROCESSING' and destination_transfer_id is null`,
  )
  let sealed = 0
  for (const { customer_id } of customers)
    for (const { order, mac, objection } of await openOrders(db, customer_id, macs)) {
      const current = macs.of('orchestrations').make(orderOf(order))
      if (which === 'WITHOUT' ? mac !== null : objection !== undefined || mac === current) continue
      await db.query('update orchestrations set mac = $3 where customer_id = $1 and id = $2', [
        customer_id,
        order.id,
        current,
      ])
      sealed++
    }
  return sealed
}

export const recordOf = ({ hops: _hops, origin: _origin, ...record }: NewOrchestration): Orchestration =>
  record

export const orchestrationEvent = ({ id, status }: Pick<Orchestration, 'id' | 'status'>): NewEvent => ({
  type: orchestrationEventType(status),
  object_id: id,
})

export interface EndedTransfer {
  transfer_id: string
  status: 'COMPLETED' | 'FAILED'
  detail?: string | undefined
}

const END = `
  update orchestrations o
  set status = e.status, fail_reason = e.detail, updated_at = $2
  from json_to_recordset($3) as e (transfer_id uuid, status text, detail text)
  where o.customer_id = $1 and o.destination_transfer_id = any ($4::uuid[]) and o.destination_transfer_id = e.transfer_id
    and o.status = 'PROCESSING' and o.destination_transfer_id is not null
  returning o.id, o.status`

/** Ends the orchestrations of destination transfers, in the transaction that ends the transfers. */
export async function endOrchestrations(
  tx: Transaction,
  customerId: string,
  ended: EndedTransfer[],
  now: Moment,
  origin: Origin,
): Promise<void> {
  if (ended.length === 0) return
  const { rows } = await tx.query<Pick<Orchestration, 'id' | 'status'>>(END, [
    customerId,
    now.text,
    JSON.stringify(ended),
    ended.map(({ transfer_id }) => transfer_id),
  ])
  recordEnds(tx, customerId, now, origin, rows)
  await insertEvents(tx, customerId, now, rows.map(orchestrationEvent))
}

export function recordEnds(
  tx: Transaction,
  customerId: string,
  now: Moment,
  origin: Origin,
  ended: readonly Pick<Orchestration, 'id' | 'status'>[],
): void {
  const records = ended.map(({ id, status }) =>
    audited(origin, status === 'COMPLETED' ? 'orchestration.complete' : 'orchestration.fail', id),
  )
  recordChanges(tx, customerId, now, records)
}

/**
 * A payment by an orchestration: its transaction, its destination, and the number of orchestrations that the money
 * has passed through.
 */
export interface OrchestratedPayment {
  crypto_tx_hash: string
  /** The output's index in a transaction with several payments; else null. */
  crypto_tx_index: string | null
  destination_address: string
  hops: number
}

/** Reads the payments by orchestrations of any customer among these transactions of a network. */
export async function selectOrchestratedPayments(
  db: Queryable,
  network: CryptoNetwork,
  hashes: string[],
): Promise<OrchestratedPayment[]> {
  const { rows } = await db.query<OrchestratedPayment>(
    `
    select sent.crypto_tx_hash, sent.crypto_tx_index, t.destination_address, o.hops + 1 as hops
    from (
      select customer_id, transfer_id, crypto_tx_hash, crypto_tx_index
      from outgoing_transfers
      where network = $1 and crypto_tx_hash = any ($2)
      union all
      select customer_id, transfer_id, crypto_tx_hash, null from replaced_transactions where crypto_tx_hash = any ($2)
    ) sent
    join transfers t on t.customer_id = sent.customer_id and t.id = sent.transfer_id
    join orchestrations o on o.customer_id = t.customer_id and o.id = t.group_id
    where t.crypto_network = $1`,
    [network, hashes],
  )
  return rows
}
