/* One search finds a record by each of its names, and nothing of a type that the token may not read. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  ROW_MACS,
  caller,
  fund,
  fetchToken,
  newCustomer,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from '../../../test/support.ts'
import { hurry, workOff } from '../../../test/work-off.ts'
import { createApiClient } from '../../access/tokens/api-clients.ts'

let service: TestService
let customer: TestCustomer
let other: TestCustomer

beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
  other = await newCustomer(service)
  await fund(customer, '1000')
})
afterAll(() => service.close())

type Found = { type: string; id: string; found_by: string; status?: string }[]
const search = async (q: string, call = customer.call): Promise<Found> =>
  (await call<{ items: Found }>('GET', `/v2/search?q=${encodeURIComponent(q)}`)).body.items

describe('Search Records', () => {
  test('a withdrawal by id, ref_id and hash, also while it is under way and in another case', async () => {
    const { body } = await customer.call<{ id: string }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, { ref_id: 'Invoice 7, part 2' }),
    )
    const expected = (found_by: string): unknown => [
      expect.objectContaining({ type: 'transfer', id: body.id, found_by }),
    ]
    expect(await search(body.id)).toEqual(expected('ID'))
    expect(await search(body.id.toUpperCase())).toEqual(expected('ID'))
    expect(await search(' Invoice 7, part 2 ')).toEqual(expected('REF_ID'))
    await workOff(service, () => hurry(service.db))
    const { body: ended } = await customer.call<{ crypto_tx_hash: string }>(
      'GET',
      `/v2/transfer/transfers/${body.id}`,
    )
    expect(await search(ended.crypto_tx_hash)).toEqual(expected('HASH'))
    expect(await search(ended.crypto_tx_hash, other.call)).toEqual([])
    await service.owner.query(
      `insert into replaced_transactions (customer_id, transfer_id, crypto_tx_hash, replaced_at)
       values ($1, $2, '0xreplaced', now())`,
      [customer.customer_id, body.id],
    )
    expect(await search('0xREPLACED')).toEqual(expected('HASH'))
  })

  test('an address in any spelling, and a memo', async () => {
    const { body: address } = await customer.call<{ id: string; address: string }>(
      'POST',
      '/v2/transfer/deposit-addresses',
      { profile_id: customer.profile_id, crypto_network: 'ETHEREUM', ref_id: 'an address' },
    )
    for (const q of [address.address, address.address.toLowerCase()])
      expect(await search(q)).toEqual([
        expect.objectContaining({ type: 'deposit_address', id: address.id, found_by: 'ADDRESS' }),
      ])
    const { body: instructions } = await customer.call<{ id: string; memo_id: string }>(
      'POST',
      '/v2/transfer/fiat-deposit-instructions',
      { profile_id: customer.profile_id, fiat_network: 'WIRE' },
    )
    expect(await search(instructions.memo_id)).toEqual([
      expect.objectContaining({ type: 'fiat_deposit_instructions', id: instructions.id, found_by: 'MEMO' }),
    ])
  })

  test('a withdrawal by its destination in any spelling and by its memo, once a worker has begun it', async () => {
    const destination_address = '0x52908400098527886E0F7030069857D2E4169EE7'
    const { body, status } = await customer.call<{ id: string }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, {
        ref_id: 'to one address',
        destination_address: destination_address.toLowerCase(),
      }),
    )
    expect(status).toBe(200)
    await workOff(service, () => hurry(service.db))
    for (const q of [destination_address, destination_address.toLowerCase()]) {
      expect(await search(q)).toContainEqual(expect.objectContaining({ id: body.id, found_by: 'ADDRESS' }))
      expect(await search(q, other.call)).toEqual([])
    }
    // Of any number of withdrawals to one address, the newest are found.
    const { rows } = await service.owner.query<{ id: string }>(
      `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total, created_at, updated_at)
       select customer_id, gen_random_uuid(), profile_id, type, direction, 'FAILED', asset, amount, fee, total, now(), now()
       from transfers, generate_series(1, 60) where customer_id = $1 and id = $2
       returning id`,
      [customer.customer_id, body.id],
    )
    await service.owner.query(
      `insert into withdrawal_names select $1, 'a memo', id, 'MEMO' from unnest($2::uuid[]) as t (id)`,
      [customer.customer_id, rows.map(({ id }) => id)],
    )
    const found = await search('a memo')
    expect(found).toHaveLength(50)
    expect(new Set(found.map(({ found_by }) => found_by))).toEqual(new Set(['MEMO']))
  })

  test('types that the token may not read are left out', async () => {
    expect(await search(customer.profile_id)).toEqual([
      expect.objectContaining({ type: 'profile', id: customer.profile_id }),
    ])
    const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, [
      'transfer:read_transfer',
    ])
    const call = caller(service.app, await fetchToken(service.app, client))
    expect(await search(customer.profile_id, call)).toEqual([])
  })

  test('text that names nothing finds nothing', async () => {
    for (const q of ['nothing has this name', "'; drop table transfers", '%', '🪙'])
      expect(await search(q), q).toEqual([])
  })
})
