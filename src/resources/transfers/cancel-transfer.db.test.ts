/*
 * Cancels withdrawals that are not signed, and tests the refusals. src/rails/payouts/cancel-withdrawal.db.test.ts tests a
 * cancellation while a worker signs the same withdrawal.
 */
import { describe, expect, test } from 'vitest'
import {
  ROW_MACS,
  credit,
  newCustomer,
  TEST_ORIGIN,
  type TestCustomer,
  withdraw,
  ownTestService,
  callerWith,
} from '../../../test/support.ts'
import { availableOf, onChain, readTransfer } from '../../../test/payouts.ts'
import { settle } from '../../../test/work-off.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { NodeRefusal } from '../../networks/node-failure.ts'
import { freeze, unfreeze } from '../../money/records/freezes.ts'
import { CANCELLED_BY } from '../../rails/payouts/cancel-withdrawal.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { verify } from '../../money/verify/verify.ts'

const service = await ownTestService()

const requireClean = async () => expect((await verify(service.db)).disagreements).toEqual([])

const cancel = (customer: TestCustomer, id: string, body?: object) =>
  customer.call<Transfer>('POST', `/v2/transfer/transfers/${id}/cancel`, body)
async function wire(customer: TestCustomer): Promise<Transfer> {
  const account = await customer.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { institution_details: { name: 'Acme' } },
    fiat_network_instructions: { wire: { account_number: '000987654321' } },
  })
  const { profile_id } = customer
  const order = { profile_id, asset: 'USD', amount: '10', fiat_account_id: account.body.id }
  return (await customer.call<Transfer>('POST', '/v2/transfer/fiat-withdrawals', order)).body
}

describe('Cancel Transfer', () => {
  test.each([
    ['a crypto withdrawal', withdraw],
    ['a wire', wire],
  ])('%s ends FAILED and is refunded; a repeat answers the same record', async (_, make) => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '100')
    const created = await make(customer)
    const answer = await cancel(customer, created.id)
    expect(answer).toMatchObject({
      status: 200,
      body: {
        ...created,
        status: 'FAILED',
        secondary_status: CANCELLED_BY.client,
        updated_at: expect.any(String) as string,
      },
    })
    expect((await cancel(customer, created.id, {})).body).toEqual(answer.body)
    expect(await readTransfer(customer, created)).toEqual(answer.body)
    expect(await availableOf(customer)).toBe('100')
    await settle(service)
    expect([await availableOf(customer), await onChain(service.db, created.id)]).toEqual(['100', 0])
    await requireClean()
  })

  test.each(['CUSTOMER', 'PROFILE', 'NETWORK'] as const)(
    'a withdrawal can be cancelled while its %s is frozen, and is never paid',
    async (kind) => {
      const customer = await newCustomer(service)
      await credit(service.ledger, customer, 'USD', '100')
      const { id } = await withdraw(customer)
      const { customer_id, profile_id } = customer
      const target = {
        CUSTOMER: { kind: 'CUSTOMER', customer_id },
        PROFILE: { kind: 'PROFILE', customer_id, profile_id },
        NETWORK: { kind: 'NETWORK', network: 'ETHEREUM' },
      } as const
      await freeze(service.db, TEST_ORIGIN, target[kind], 'OPERATOR', 'a leak')
      try {
        await settle(service, 2)
        expect(await cancel(customer, id)).toMatchObject({ status: 200, body: { status: 'FAILED' } })
        expect(await availableOf(customer)).toBe('100')
      } finally {
        await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target[kind])
      }
      await settle(service)
      expect([await availableOf(customer), await onChain(service.db, id)]).toEqual(['100', 0])
      await requireClean()
    },
  )

  test('a transfer that is signed, has ended or is not a withdrawal is refused with its status', async () => {
    const customer = await newCustomer(service)
    const deposit = await credit(service.ledger, customer, 'USD', '100')
    const { id } = await withdraw(customer)
    const refusal = (transferId: string, status: string, why: string) => ({
      status: 409,
      body: {
        type: expect.stringMatching(/\/problems\/not-cancellable$/) as string,
        detail: `transfer ${transferId} ${why}`,
        meta: { id: transferId, status },
      },
    })
    expect(await cancel(customer, deposit.id)).toMatchObject(
      refusal(deposit.id, 'COMPLETED', 'is not a withdrawal'),
    )
    const broadcast = () => Promise.reject(new NodeRefusal('no'))
    await settleWithdrawals(
      service.db,
      new Map([...service.networks].map(([network, one]) => [network, { ...one, broadcast }])),
    )
    expect(await cancel(customer, id)).toMatchObject(
      refusal(id, 'PENDING', 'is signed: it may be paid already'),
    )
    await settle(service)
    expect(await cancel(customer, id)).toMatchObject(refusal(id, 'COMPLETED', 'is COMPLETED'))
    const become = 'update transfers set status = $2 where id = $1'
    await service.db.query(become, [id, 'FAILED'])
    expect(await cancel(customer, id)).toMatchObject(refusal(id, 'FAILED', 'is FAILED'))
    await service.db.query(become, [id, 'COMPLETED'])
    expect(await onChain(service.db, id)).toBe(1)
    await requireClean()
  })

  test('the token needs the scope that matches the type of the withdrawal', async () => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '100')
    const made = { CRYPTO: await withdraw(customer), WIRE: await wire(customer) }
    const SCOPE = {
      CRYPTO: 'transfer:write_crypto_withdrawal',
      WIRE: 'transfer:write_fiat_withdrawal',
    } as const
    const holders = {
      CRYPTO: await callerWith(service, customer, [SCOPE.CRYPTO]),
      WIRE: await callerWith(service, customer, [SCOPE.WIRE]),
    }
    for (const [type, other] of [
      ['CRYPTO', 'WIRE'],
      ['WIRE', 'CRYPTO'],
    ] as const) {
      const path = `/v2/transfer/transfers/${made[type].id}/cancel`
      expect(await holders[other]('POST', path)).toMatchObject({
        status: 403,
        body: { meta: { required_scope: SCOPE[type], found_scopes: [SCOPE[other]] } },
      })
      expect(await readTransfer(customer, { id: made[type].id })).toEqual(made[type])
      expect(await holders[type]('POST', path)).toMatchObject({ status: 200, body: { status: 'FAILED' } })
    }
    expect(await availableOf(customer)).toBe('100')
  })
})
