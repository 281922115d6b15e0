import { afterAll, beforeAll, expect, test } from 'vitest'
import { fund, newCustomer, startTestService, withdrawalOf, type TestService } from '../../test/support.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

test("the last day's transfers of the customer alone, by type, asset and status, with exact sums", async () => {
  const customer = await newCustomer(service)
  const other = await newCustomer(service)
  await fund(other, '5')
  const volumes = async () =>
    (await customer.call<{ since: string; items: object[] }>('GET', '/v2/transfer/volumes')).body
  expect((await volumes()).items).toEqual([])
  await fund(customer, '100.01')
  await fund(customer, '0.02')
  await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer, { amount: '10' }))
  const { since, items } = await volumes()
  expect(Date.parse(since)).toBeGreaterThan(Date.now() - 86_460_000)
  expect(Date.parse(since)).toBeLessThan(Date.now() - 86_340_000)
  expect(items).toEqual([
    expect.objectContaining({ type: 'CRYPTO_WITHDRAWAL', direction: 'DEBIT', count: 1 }),
    {
      type: 'WIRE_DEPOSIT',
      direction: 'CREDIT',
      asset: 'USD',
      status: 'COMPLETED',
      count: 2,
      amount: '100.03',
    },
  ])
  // Yesterday's do not count.
  await service.owner.query(
    `update transfers set id = '0192f3a4-0000-7000-8000-00000000aaaa' where customer_id = $1 and type = 'WIRE_DEPOSIT' and amount = 0.02`,
    [customer.customer_id],
  )
  expect((await volumes()).items[1]).toMatchObject({ count: 1, amount: '100.01' })
})
