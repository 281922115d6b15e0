import { Type, type Static } from 'typebox'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { Free, NamedObject, Network, OneOf, Text, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { type Queryable } from '../../db/database.ts'
import { arrayLiteral } from '../../db/array-literal.ts'
import { presentOf } from '../../db/rows.ts'
import type { NewEvent } from '../ledger/events.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'

/** Facts about the owner of an address, for the travel rule. They are kept as they were sent. */
export const TravelRuleMetadata = Type.Object({}, { ...Free, description: 'Facts for the travel rule.' })

export const DestinationAddress = NamedObject('CryptoDestinationAddress', {
  id: Uuid('Id of the address.'),
  customer_id: Uuid('Customer.'),
  crypto_network: Network,
  address: Type.String({ description: 'The address, as it was sent.' }),
  nickname: Text(100, 'Display name.'),
  bookmarked: Type.Boolean({ description: 'Whether the customer has marked it.' }),
  status: OneOf(['PENDING', 'APPROVED', 'REJECTED'], 'Only an APPROVED address can be paid by its id.'),
  cooling_until: Type.Optional(
    Timestamp('Of a PENDING address: when it is APPROVED, unless it is rejected before.'),
  ),
  identity_id: Type.Optional(Uuid('Identity that owns the address.')),
  travelrule_metadata: Type.Optional(TravelRuleMetadata),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
})
export type DestinationAddress = Static<typeof DestinationAddress>

type Absent = 'cooling_until' | 'identity_id' | 'travelrule_metadata'
export type DestinationAddressRow = Omit<DestinationAddress, Absent> & {
  [K in Absent]: DestinationAddress[K] | null
}

export const DESTINATION_ADDRESS_COLUMNS = `id, customer_id, crypto_network, address, nickname, bookmarked, status,
  case when status = 'PENDING' then cooling_until end as cooling_until, identity_id, travelrule_metadata, created_at,
  updated_at`

export const destinationAddressToWire = (row: DestinationAddressRow): DestinationAddress => presentOf(row)

/** An entry of the address book, as far as a policy reads it. */
export interface KnownEntry {
  id: string
  status: DestinationAddress['status']
}

/**
 * In SQL: whether the address of this row may be paid by its id. The service's role can write the status. It can neither write
 * the end of the cooling time, which is fixed when the address is made, nor remove the record of a rejection. The MAC of the row
 * proves that Bursar made it. The customer is `$1` (rule 1 of src/db/distribution.ts).
 */
export const isPayable = (row: string): string => `(
  ${row}.status = 'APPROVED' and coalesce(${row}.cooling_until <= clock_timestamp(), true)
  and not exists (
    select 1 from audit_log l
    where l.customer_id = $1 and l.subject_id = ${row}.id::text and l.action = 'destination_address.reject'))`

/** The status of an entry. An APPROVED entry whose MAC is wrong counts as REJECTED, so that it is not paid. */
const statusOf = (
  { status, sealed, mac }: KnownEntry & Seal,
  id: string,
  macs: RowMacs,
): KnownEntry['status'] =>
  status === 'APPROVED' && !macs.isGenuine('crypto_destination_addresses', id, { sealed, mac })
    ? 'REJECTED'
    : status

/** Reads the entries with these canonical addresses, by `<network> <address>`. An address may have one for each identity. */
export async function entriesAt(
  db: Queryable,
  macs: RowMacs,
  customerId: string,
  places: readonly { crypto_network: string; address: string }[],
): Promise<Map<string, KnownEntry[]>> {
  if (places.length === 0) return new Map()
  const { rows } = await db.query<KnownEntry & Seal & { place: string }>({
    name: 'entries of the address book',
    text: `
    select r.id, case when r.status = 'APPROVED' and not ${isPayable('r')} then 'PENDING' else r.status end as status,
           r.crypto_network || ' ' || r.canonical_address as place, ${sealOf('crypto_destination_addresses')}
    from (select distinct * from unnest($2::text[], $3::text[]) as place (crypto_network, address)) wanted
    join crypto_destination_addresses r
      on r.customer_id = $1 and r.crypto_network = wanted.crypto_network and r.canonical_address = wanted.address`,
    values: [
      customerId,
      arrayLiteral(places.map(({ crypto_network }) => crypto_network)),
      arrayLiteral(places.map(({ address }) => address)),
    ],
  })
  const known = new Map<string, KnownEntry[]>()
  for (const { place, ...row } of rows)
    known.set(place, [...(known.get(place) ?? []), { id: row.id, status: statusOf(row, row.id, macs) }])
  return known
}

/** Returns the event of an entry that has this status now. No event tells that an entry is PENDING. */
export const addressEvent = ({
  id,
  crypto_network,
  address,
  status,
}: Pick<DestinationAddressRow, 'id' | 'crypto_network' | 'address' | 'status'>): NewEvent => ({
  type: `crypto_destination_address.${status.toLowerCase()}`,
  object_id: id,
  object: { id, crypto_network, address, status },
})

/** A crypto destination as a request names it: by address and network, by its id in the address book, or by both. */
interface NamedDestination {
  address?: string
  network?: CryptoNetwork
  address_id?: string
  crypto_address_id?: string
}

export const namedBoth = (id: string) => ({ address_id: id, crypto_address_id: id })

/**
 * Returns the address and network of a crypto destination. Throws bad-request for a missing member, for an address that
 * is not APPROVED, and where the address book has another address or network under the id; not-found for an unknown id.
 */
export async function addressAsked(
  db: Queryable,
  macs: RowMacs,
  customerId: string,
  { address, network, crypto_address_id, address_id = crypto_address_id }: NamedDestination,
): Promise<{ address: string; network: CryptoNetwork; address_id?: string; crypto_address_id?: string }> {
  const field = (name: string) => `destination.crypto.${name}`
  if (crypto_address_id !== undefined && crypto_address_id !== address_id)
    throw problem.badRequest(
      `${field('crypto_address_id')} must equal ${field('address_id')}: they are names of the same member`,
      field('crypto_address_id'),
    )
  if (address_id === undefined) {
    if (address === undefined) throw problem.badRequest(`${field('address')} is required`, field('address'))
    if (network === undefined) throw problem.badRequest(`${field('network')} is required`, field('network'))
    return { address, network }
  }
  const { rows } = await db.query<KnownEntry & Seal & { address: string; crypto_network: CryptoNetwork }>(
    `select id, address, crypto_network,
            case when status = 'APPROVED' and not ${isPayable('r')} then 'PENDING' else status end as status,
            ${sealOf('crypto_destination_addresses')}
     from crypto_destination_addresses r where r.customer_id = $1 and r.id = $2`,
    [customerId, address_id],
  )
  const [known] = rows
  if (known === undefined) throw problem.notFound('crypto destination address', address_id)
  const status = statusOf(known, address_id, macs)
  if (status !== 'APPROVED')
    throw problem.badRequest(
      `${field('address_id')} ${address_id} is ${status}: only an APPROVED address can be paid`,
      field('address_id'),
    )
  if (network !== undefined && network !== known.crypto_network)
    throw problem.badRequest(
      `${field('network')} must be ${known.crypto_network}, the network of address_id, or be left out`,
      field('network'),
    )
  const canonical = (text: string) => canonicalAddress(known.crypto_network, text, { testNetworks: true })
  if (address !== undefined && canonical(address) !== canonical(known.address))
    throw problem.badRequest(
      `${field('address')} must be the address of address_id, or be left out`,
      field('address'),
    )
  return { address: known.address, network: known.crypto_network, ...namedBoth(address_id) }
}
