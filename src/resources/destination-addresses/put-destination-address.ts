import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { Type, type Static } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Network, OneOf, Text, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { insertEvents } from '../../money/ledger/events.ts'
import { payableAddress } from '../../money/movements/crypto-withdrawal.ts'
import { operation } from '../operation.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import {
  addressEvent,
  DESTINATION_ADDRESS_COLUMNS,
  DestinationAddress,
  destinationAddressToWire,
  TravelRuleMetadata,
  type DestinationAddressRow,
} from '../../money/records/destination-address.ts'
import type { RowMacs } from '../../audit/row-macs.ts'
import { requireHolders } from '../../money/records/holders.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'
import { requireRoom } from '../../money/records/record-limits.ts'

const PutBody = Closed({
  id: Type.Optional(Uuid('The address to update. Instead of crypto_network, address and identity_id.')),
  crypto_network: Type.Optional(Network),
  address: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'The address to create or update.',
      examples: ['0x52908400098527886E0F7030069857D2E4169EE7'],
    }),
  ),
  identity_id: Type.Optional(Uuid('Identity that owns the address.')),
  nickname: Type.Optional(Text(100, 'Display name. A new address without one is named after itself.', 1)),
  bookmarked_status: Type.Optional(Type.Boolean({ description: 'Marks the address; false by default.' })),
  travelrule_metadata: Type.Optional(TravelRuleMetadata),
  status: Type.Optional(
    OneOf(['REJECTED'], 'Rejects the address for good: it can never be paid by its id again.'),
  ),
})
type PutBody = Static<typeof PutBody>
type Changes = Pick<PutBody, 'nickname' | 'bookmarked_status' | 'travelrule_metadata' | 'status'>

/**
 * Creates or updates an address of the address book (API behaviour, Crypto destination addresses). Address, network and
 * identity of an entry never change: a payment to its id goes to the address that was checked. A new entry is PENDING
 * for the cooling time of the customer's policy; a REJECTED one stays so.
 */
export const putDestinationAddress = operation({
  method: 'PUT',
  url: '/v2/transfer/crypto-destination-address',
  scope: 'transfer:write_crypto_destination_address',
  tag: 'Transfers',
  summary: 'Put Crypto Destination Address',
  description:
    'Creates an address of the address book, or updates the given fields of one. An address is found by its id, or by crypto_network, address and identity_id. A new address is PENDING for the cooling time of the policy, if it has one, and APPROVED then.',
  query: ApprovalQuery,
  body: PutBody,
  example: {
    bodies: {
      'A supplier on Ethereum': {
        crypto_network: 'ETHEREUM',
        address: '0x52908400098527886E0F7030069857D2E4169EE7',
        nickname: 'Supplier',
      },
      'Of an identity, marked': {
        crypto_network: 'SOLANA',
        address: '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA',
        identity_id: EXAMPLE.identity_id,
        bookmarked_status: true,
      },
    },
  },
  reply: Type.Object({ address: DestinationAddress }),
  problems: ['unsupported-address', 'not-found', 'approval-required', 'approval-ended'],
  async run({ query: { approval_id }, body, customerId, origin, db, networks, settings, policies, rowMacs }) {
    const { id, crypto_network, address, identity_id, ...changes } = body
    if (id !== undefined) {
      if (crypto_network !== undefined || address !== undefined || identity_id !== undefined)
        throw problem.badRequest(
          'id cannot be given together with crypto_network, address or identity_id',
          'id',
        )
      const row = await transaction(db, (tx) => update(tx, { customerId, origin }, id, changes))
      if (row === undefined) throw problem.notFound('crypto destination address', id)
      return { address: destinationAddressToWire(row) }
    }
    if (crypto_network === undefined) throw problem.badRequest('crypto_network is required', 'crypto_network')
    if (address === undefined) throw problem.badRequest('address is required', 'address')
    const place = { crypto_network, destination_address: address }
    const canonical = payableAddress(place, { networks, settings }, 'address')
    const entry = { crypto_network, address, canonical, ...(identity_id && { identity_id }) }
    const change = {
      subject: 'ADDRESS_BOOK',
      operation: 'PUT /v2/transfer/crypto-destination-address',
      target: { type: 'destination_address', id: `${crypto_network} ${canonical}` },
      values: body,
    } as const
    const asked = { ...change, customer_id: customerId, origin, approval_id }
    const row = await withApprovedChange(db, policies, asked, async (tx) => {
      await requireHolders(tx, customerId, { identity_id })
      const known = await find(tx, customerId, entry)
      if (known !== undefined) return update(tx, { customerId, origin }, known, changes)
      await requireRoom(tx, customerId, 'destination_addresses')
      const policy = await policies.newest(tx, customerId)
      const coolingSeconds = policy?.document.address_book?.cooling_seconds ?? 0
      // Another request may have inserted the entry meanwhile.
      return (
        (await insert(tx, rowMacs, { customerId, origin }, entry, { ...changes, coolingSeconds })) ??
        (await update(tx, { customerId, origin }, (await find(tx, customerId, entry))!, changes))
      )
    })
    assert(row !== undefined, 'entries are never deleted')
    return { address: destinationAddressToWire(row) }
  },
})

/** Whose entry is changed, and by whom. */
interface EntryOwner {
  customerId: string
  origin: Origin
}

interface AddressEntry {
  crypto_network: string
  address: string
  canonical: string
  identity_id?: string
}

/** Inserts an entry; undefined when there is one with this network, address and identity. */
async function insert(
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

async function find(
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
async function update(
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
