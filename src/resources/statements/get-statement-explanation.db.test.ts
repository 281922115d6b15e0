import { describe, expect, test } from 'vitest'
import { insertStatements, newCustomer, sharedTestService } from '../../../test/support.ts'

const service = await sharedTestService()

describe('Explain Statement', () => {
  test('a statement is computed again, a wrong one is told, and none is explained before it is generated', async () => {
    const { customer_id, call } = await newCustomer(service)
    const [paid, generated, initiated] = await insertStatements(service.db, customer_id)
    const explained = async (id: string) => {
      const { status, body } = await call<{ days: object[] }>('GET', `/v2/statements/${id}/explanation`)
      const { days, ...rest } = body
      return { status, days: days?.length, first: days?.[0], ...rest }
    }
    // The customer never held the asset, so a statement of 1.5 is wrong.
    expect(await explained(paid!)).toMatchObject({
      status: 200,
      statement_id: paid,
      holds: false,
      asset: 'USDG',
      stated: '1.5',
      computed: '0',
      products: '0',
      days: 31,
      first: { day: '2026-01-01', balance: '0', reward: '0' },
    })
    await service.owner.query('update statements set total_amount_owed = 0, amount_paid = 0 where id = $1', [
      generated,
    ])
    expect(await explained(generated!)).toMatchObject({ status: 200, holds: true, stated: '0', days: 28 })
    expect(await explained(initiated!)).toMatchObject({ status: 404 })
    const other = await newCustomer(service)
    const { status } = await other.call('GET', `/v2/statements/${paid}/explanation`)
    expect(status).toBe(404)
  })
})
