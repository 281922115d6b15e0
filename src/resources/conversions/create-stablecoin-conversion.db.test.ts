import { describe, expect, test } from 'vitest'
import { credit, everyTable, newCustomer, type TestCustomer, ownTestService } from '../../../test/support.ts'
import { verify } from '../../money/verify/verify.ts'
import type { StablecoinConversion } from './conversion.ts'
import { availableOf } from '../../../test/payouts.ts'

const CONVERSIONS = '/v2/conversion/stablecoins'

const service = await ownTestService()
const customer = await newCustomer(service)

const convert = (by: TestCustomer, source_asset: string, target_asset: string, changes: object = {}) =>
  by.call<StablecoinConversion & { detail: string }>('POST', CONVERSIONS, {
    ...{ profile_id: by.profile_id, amount: '1', source_asset, target_asset },
    ...changes,
  })

describe('Create Stablecoin Conversion', () => {
  test('converts one to one at once; a repeat, or more than the balance, changes nothing', async () => {
    await credit(service.ledger, customer, 'USD', '10')
    const asked = { amount: '2.50', ref_id: 'a', metadata: { order: '1' } }
    const { status, body: made } = await convert(customer, 'USD', 'USDG', asked)
    const { id, created_at } = made
    expect({ status, made }).toEqual({
      status: 200,
      made: {
        ...{ id, profile_id: customer.profile_id, amount: '2.5', source_asset: 'USD', target_asset: 'USDG' },
        ...{ status: 'SETTLED', ref_id: 'a', metadata: { order: '1' } },
        ...{ created_at, updated_at: created_at, settled_at: created_at },
      },
    })
    expect([await availableOf(customer, 'USD'), await availableOf(customer, 'USDG')]).toEqual(['7.5', '2.5'])
    const before = await everyTable(service.db)
    expect((await convert(customer, 'USD', 'USDG', asked)).status).toBe(409)
    expect((await convert(customer, 'USD', 'USDG', { amount: '7.51' })).status).toBe(403)
    expect(await everyTable(service.db)).toEqual(before)
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('USDC converts in a sandbox, and in live mode where the operator says so', async () => {
    await credit(service.ledger, customer, 'USDC', '5')
    expect((await convert(customer, 'USDC', 'USD')).status).toBe(200)
    expect((await convert(customer, 'USDC', 'USDG')).status).toBe(200)
    expect((await verify(service.db)).disagreements).toEqual([])
    for (const [allowed, status] of [
      ['false', 400],
      ['true', 403],
    ] as const) {
      const live = await ownTestService({ BURSAR_MODE: 'live', BURSAR_CONVERT_USDC: allowed })
      const answer = await convert(await newCustomer(live), 'USDC', 'USD')
      expect({ status: answer.status, detail: answer.body.detail }).toEqual({
        status,
        detail: expect.stringMatching(status === 400 ? /cannot be converted/ : /are needed/) as string,
      })
    }
  })
})

describe('Get Stablecoin Conversion', () => {
  test("answers the record as it was made; another customer's is a 404", async () => {
    await credit(service.ledger, customer, 'USD', '1')
    const { body: made } = await convert(customer, 'USD', 'USDG')
    const path = `${CONVERSIONS}/${made.id}`
    expect((await customer.call('GET', path)).body).toEqual(made)
    expect((await (await newCustomer(service)).call('GET', path)).status).toBe(404)
  })
})

describe('List Stablecoin Conversions', () => {
  test('filters by profile, ref_id and time; other transfers are none', async () => {
    const by = await newCustomer(service)
    await credit(service.ledger, by, 'USD', '10')
    const { body: made } = await convert(by, 'USD', 'USDG', { ref_id: 'a' })
    const { body: second } = await convert(by, 'USDG', 'PYUSD')
    for (const [query, expected] of [
      ['', [second, made]],
      ['?order=ASC', [made, second]],
      ['?ref_id=a', [made]],
      [`?profile_id=${by.profile_id}&limit=1`, [second]],
      [`?created_at.gt=${made.created_at}`, [second]],
    ] as const)
      expect((await by.call('GET', CONVERSIONS + query)).body.items, query).toEqual(expected)
  })
})
