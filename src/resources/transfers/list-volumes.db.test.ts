import pg from 'pg'
import { describe, expect, test, vi, type MockInstance } from 'vitest'
import { fund, newCustomer, withdrawalOf, sharedTestService } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'

const service = await sharedTestService()

describe('List Transfer Volumes', () => {
  test("the last day's transfers of the customer alone, by type, asset and status, with exact sums", async () => {
    const customer = await newCustomer(service)
    const other = await newCustomer(service)
    await fund(other, '5')
    // An answer is given again for two seconds.
    const volumes = async () =>
      (await customer.call<{ since: string; items: object[] }>('GET', '/v2/transfer/volumes')).body
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
        fee: '0',
        balance_asset: 'USD',
        total: '100.03',
      },
    ])
    // Yesterday's do not count.
    await service.owner.query(
      `update transfers set id = '0192f3a4-0000-7000-8000-00000000aaaa' where customer_id = $1 and type = 'WIRE_DEPOSIT' and amount = 0.02`,
      [customer.customer_id],
    )
    await expect
      .poll(async () => (await volumes()).items[1], { timeout: 20_000 })
      .toMatchObject({ count: 1, amount: '100.01' })
  })

  test('filters and another time, and what failed is a sum of its own', async () => {
    const customer = await newCustomer(service)
    await fund(customer, '100')
    const { body: made } = await customer.call<{ id: string }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, { amount: '10' }),
    )
    await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer, { amount: '7' }))
    expect((await customer.call('POST', `/v2/transfer/transfers/${made.id}/cancel`)).status).toBe(200)
    const volumes = async (query: string) =>
      (
        await customer.call<{ since: string; items: { status: string; amount: string }[] }>(
          'GET',
          `/v2/transfer/volumes?${query}`,
        )
      ).body
    const sums = async (query: string) =>
      (await volumes(query)).items.map(({ status, amount }) => `${status} ${amount}`)
    expect(await sums('directions=DEBIT')).toEqual(['FAILED 10', 'PENDING 7'])
    expect(await sums('directions=DEBIT&amount.gte=7.5')).toEqual(['FAILED 10'])
    expect(await sums('assets=USD')).toEqual(['COMPLETED 100'])
    expect(await sums('crypto_networks=SOLANA')).toEqual([])
    // Bounds on time take the place of the last 24 hours.
    await service.owner.query(
      `update transfers set id = '0192f3a4-0000-7000-8000-00000000aaaa' where customer_id = $1 and type = 'WIRE_DEPOSIT'`,
      [customer.customer_id],
    )
    expect(await sums('directions=CREDIT')).toEqual([])
    const { since, items } = await volumes('directions=CREDIT&created_at.gte=2024-01-01T00:00:00Z')
    expect(since).toBe('2024-01-01T00:00:00.000000Z')
    expect(items).toMatchObject([{ status: 'COMPLETED', amount: '100', count: 1 }])
    expect(await sums('directions=CREDIT&created_at.lt=2024-01-01T00:00:00Z')).toEqual([])
  })

  test('totals are what the transfers change the balances by, with fees and by the asset of the balance', async () => {
    const customer = await newCustomer(service)
    await fund(customer, '100')
    for (const fields of [
      { amount: '10', balance_asset: 'USD' },
      { total: '20', amount: undefined, balance_asset: 'USD' },
    ])
      expect(
        (await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer, fields)))
          .status,
      ).toBe(200)
    const { body } = await customer.call<{
      items: Record<'direction' | 'asset' | 'balance_asset' | 'total' | 'fee', string>[]
    }>('GET', '/v2/transfer/volumes?directions=DEBIT')
    expect(body.items).toMatchObject([{ asset: 'USDP', balance_asset: 'USD', count: 2 }])
    const { body: balance } = await customer.call('GET', `/v2/profiles/${customer.profile_id}/balances/USD`)
    expect(Number(body.items[0]!.total)).toBeCloseTo(100 - Number(balance.available), 10)
    expect(Number(body.items[0]!.fee)).toBeGreaterThan(0)
  })

  test('requests that ask at once are answered by one sum', async () => {
    const customer = await newCustomer(service)
    await fund(customer, '1')
    const queries = vi.spyOn(pg.Client.prototype, 'query') as unknown as MockInstance<
      (text: string, values?: unknown[]) => unknown
    >
    // The sum waits for the table until all have asked: a sum is kept for two seconds only.
    const answers = await transaction(service.owner, async (tx) => {
      await tx.query('lock table transfers in access exclusive mode')
      const asked = Array.from({ length: 60 }, () => customer.call('GET', '/v2/transfer/volumes'))
      await expect.poll(() => service.app.requests.underWay).toBe(asked.length)
      return asked
    }).then((asked) => Promise.all(asked))
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    const ofCustomer = queries.mock.calls.filter(([, values]) => values?.[0] === customer.customer_id)
    queries.mockRestore()
    expect(ofCustomer.filter(([text]) => text.includes('sum(t.amount)'))).toHaveLength(1)
  })
})
