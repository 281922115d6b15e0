import { isDeepStrictEqual } from 'node:util'
import { audited, recordNow } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { Origin } from '../../contract/actor.ts'
import type { Transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { insertEvents } from '../ledger/events.ts'
import {
  addressEvent,
  DESTINATION_ADDRESS_COLUMNS,
  type DestinationAddress,
  type DestinationAddressRow,
} from './destination-address.ts'

/** Writes the entries of a customer's address book. Their address, network and identity never change. */

/** What a request changes of an entry: the fields that it gives. */
interface Changes extends Partial<Pick<DestinationAddress, 'nickname' | 'travelrule_metadata'>> {
  bookmarked_status?: boolean
  status?: 'REJECTED'
}

/** Whose entry is changed, and by whom. */
export interface EntryOwner {
  customerId: string
  origin: Origin
}

export interface AddressEntry {
  crypto_network: string
  address: string
  canonical: string
  identity_id?: string
}

/** Inserts an entry; undefined when there is one with this network, address and identity. */
export async function insertEntry(
  tx: Transaction,
  macs: RowMacs,
  { customerId, origin }: EntryOwner,
  { crypto_network, address, canonical, identity_id }: AddressEntry,
  {
    nickname,
    bookmarked_status,
    travelrule_metadata,
    status: asked,
    coolingSeconds,
  }: Changes & { coolingSeconds: number },
): Promise<DestinationAddressRow | undefined> {
  const now = await readClock(tx)
  const status = asked ?? (coolingSeconds > 0 ? 'PENDING' : 'APPROVED')
  const { rows } = await tx.query<DestinationAddressRow>(
    `
    insert into crypto_destination_addresses (customer_id, id, created_at, updated_at, identity_id, crypto_network,
                                              address, canonical_address, nickname, bookmarked,
                                              travelrule_metadata, status, cooling_until, approved_at, rejected_at)
    values ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $3::timestamptz + make_interval(secs => $12),
            case when $11 = 'APPROVED' then $3::timestamptz end, case when $11 = 'REJECTED' then $3::timestamptz end)
    on conflict do nothing
    returning ${DESTINATION_ADDRESS_COLUMNS}`,
    [
      customerId,
      newId(now),
      now.text,
      identity_id,
      crypto_network,
      address,
      canonical,
      nickname ?? `${crypto_network} ${address.slice(0, 8)}…${address.slice(-4)}`,
      bookmarked_status ?? false,
      travelrule_metadata,
      status,
      coolingSeconds,
    ],
  )
  const [made] = rows
  if (made === undefined) return undefined
  // An entry that is rejected from the start gets no MAC, so that it never counts as approved.
  if (made.status !== 'REJECTED') await macs.seal(tx, 'crypto_destination_addresses', customerId, made.id)
  if (made.status !== 'PENDING') await insertEvents(tx, customerId, now, [addressEvent(made)])
  recordChanges(tx, customerId, now, [audited(origin, 'destination_address.create', made.id)])
  return made
}

/** The id of the entry with this network, address and identity. */
export async function findEntry(
  tx: Transaction,
  customerId: string,
  { crypto_network, canonical, identity_id }: AddressEntry,
): Promise<string | undefined> {
  const { rows } = await tx.query<{ id: string }>(
    `
    select id from crypto_destination_addresses
    where customer_id = $1 and crypto_network = $2 and canonical_address = $3
      and identity_id is not distinct from $4::uuid`,
    [customerId, crypto_network, canonical, identity_id],
  )
  return rows[0]?.id
}

/** Changes the given fields; undefined when there is no such address. A repeat changes nothing. */
export async function updateEntry(
  tx: Transaction,
  { customerId, origin }: EntryOwner,
  id: string,
  { nickname, bookmarked_status, travelrule_metadata, status }: Changes,
): Promise<DestinationAddressRow | undefined> {
  const { rows: before } = await tx.query<DestinationAddressRow>(
    `select ${DESTINATION_ADDRESS_COLUMNS} from crypto_destination_addresses
     where customer_id = $1 and id = $2 for update`,
    [customerId, id],
  )
  const { rows } = await tx.query<DestinationAddressRow>(
    `
    update crypto_destination_addresses
    set nickname = coalesce($3, nickname),
        bookmarked = coalesce($4, bookmarked),
        travelrule_metadata = coalesce($5, travelrule_metadata),
        updated_at = case
          when (nickname, bookmarked, travelrule_metadata) is distinct from
               (coalesce($3, nickname), coalesce($4, bookmarked), coalesce($5, travelrule_metadata))
          then (select clock_timestamp()) else updated_at end
    where customer_id = $1 and id = $2
    returning ${DESTINATION_ADDRESS_COLUMNS}`,
    [customerId, id, nickname, bookmarked_status, travelrule_metadata],
  )
  if (!isDeepStrictEqual(rows, before))
    await recordNow(tx, customerId, audited(origin, 'destination_address.update', id))
  const [known] = rows
  if (known === undefined || status === undefined || known.status === status) return known
  return reject(tx, { customerId, origin }, id)
}

async function reject(
  tx: Transaction,
  { customerId, origin }: EntryOwner,
  id: string,
): Promise<DestinationAddressRow> {
  const now = await readClock(tx)
  const { rows } = await tx.query<DestinationAddressRow>(
    `
    update crypto_destination_addresses set status = 'REJECTED', rejected_at = $3, updated_at = $3
    where customer_id = $1 and id = $2
    returning ${DESTINATION_ADDRESS_COLUMNS}`,
    [customerId, id, now.text],
  )
  await insertEvents(tx, customerId, now, rows.map(addressEvent))
  recordChanges(tx, customerId, now, [audited(origin, 'destination_address.reject', id)])
  return rows[0]!
}
