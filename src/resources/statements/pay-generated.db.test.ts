import { expect, describe, test } from 'vitest'
import { move } from '../../../test/history.ts'
import { newOperatorCaller } from '../../../test/operators.ts'
import { newCustomer, sharedTestService, TEST_ORIGIN } from '../../../test/support.ts'
import { momentAt } from '../../db/ids.ts'
import { generateStatements } from './generate-statements.ts'
import { periodOf } from './period.ts'
import { setRewardRate } from './reward-rates.ts'

const service = await sharedTestService()

describe('Pay Statements', () => {
  test("the statement of a month is paid once, and another customer's is not", async () => {
    const own = await newCustomer(service)
    await setRewardRate(service.db, '2024-01-01', '0.0376', TEST_ORIGIN)
    const at = momentAt('2024-01-01T00:00:00.000000Z')
    await move(service.db, own.customer_id, at, { to: own.profile_id, minor: 1_234_567_890n })
    await generateStatements(service.db, periodOf('2024-01')!, own.customer_id)
    const call = await newOperatorCaller(service, 'OPERATOR', { actFor: own.customer_id })
    const pay = (body: object) => call<{ items: object[] }>('POST', '/v2/operators/statements/pay', body)
    expect(await pay({ period: '2026-13' })).toMatchObject({ status: 400 })
    expect((await pay({ period: '2024-02' })).body.items).toEqual([])
    expect((await pay({ period: '2024-01' })).body.items).toMatchObject([{ customer_id: own.customer_id }])
    expect((await pay({})).body.items).toEqual([])
  })
})
