import assert from 'node:assert/strict'
import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Network, OneOf, Text, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction } from '../../db/database.ts'
import { payableAddress } from '../../money/movements/crypto-withdrawal.ts'
import { operation } from '../operation.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import {
  DestinationAddress,
  destinationAddressToWire,
  TravelRuleMetadata,
} from '../../money/records/destination-address.ts'
import { findEntry, insertEntry, updateEntry } from '../../money/records/address-book.ts'
import { requireHolders } from '../../money/records/holders.ts'
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
      const row = await transaction(db, (tx) => updateEntry(tx, { customerId, origin }, id, changes))
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
      const known = await findEntry(tx, customerId, entry)
      if (known !== undefined) return updateEntry(tx, { customerId, origin }, known, changes)
      await requireRoom(tx, customerId, 'destination_addresses')
      const policy = await policies.newest(tx, customerId)
      const coolingSeconds = policy?.document.address_book?.cooling_seconds ?? 0
      // Another request may have inserted the entry meanwhile.
      return (
        (await insertEntry(tx, rowMacs, { customerId, origin }, entry, { ...changes, coolingSeconds })) ??
        (await updateEntry(tx, { customerId, origin }, (await findEntry(tx, customerId, entry))!, changes))
      )
    })
    assert(row !== undefined, 'entries are never deleted')
    return { address: destinationAddressToWire(row) }
  },
})
