import { describe, expect, test } from 'vitest'
import { credit, newCustomer, withdraw as order, ownTestService } from '../../../test/support.ts'
import { settle } from '../../../test/work-off.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { magicAddress } from '../../networks/simulated/magic-addresses.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
await credit(service.ledger, customer, 'USD', '1000')

const read = (id: string, of = customer) => of.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)

const withdraw = (changes?: Record<string, unknown>) => order(customer, changes)

describe('Get Transfer', () => {
  test('a withdrawal is read as it was created, and with its transaction once the network has confirmed it', async () => {
    const created = await withdraw({ metadata: { order: '1041' } })
    expect(await read(created.id)).toMatchObject({ status: 200, body: created })
    expect((await read(created.id.toUpperCase())).body).toEqual(created)
    await settle(service)
    expect((await read(created.id)).body).toEqual({
      ...created,
      status: 'COMPLETED',
      crypto_tx_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/) as string,
      crypto_tx_index: '0',
      updated_at: expect.any(String) as string,
    })
  })

  test('a refused withdrawal has the details of its failure, and the money is back', async () => {
    const balance = async () =>
      (await customer.call('GET', `/v2/profiles/${customer.profile_id}/balances/USD`)).body.available
    const before = await balance()
    const destination_address = magicAddress('ETHEREUM', 'INVALID_DESTINATION_ADDRESS')!
    const { id } = await withdraw({ destination_address })
    await settle(service)
    const { body } = await read(id)
    expect(body).toMatchObject({
      status: 'FAILED',
      status_details: { invalid_destination_address: { destination_address } },
    })
    expect(body).not.toHaveProperty('crypto_tx_hash')
    expect(await balance()).toBe(before)
  })

  test('an id that is not a UUID is a 400', async () => {
    expect(await read('1041')).toMatchObject({ status: 400, body: { detail: 'id must be a UUID' } })
  })
})
