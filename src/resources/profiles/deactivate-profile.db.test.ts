import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  DESTINATION,
  everyTable,
  fund,
  newCustomer,
  withdrawalOf,
  ownTestService,
  newProfile,
} from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { LedgerTransaction } from '../../money/ledger/ledger-transaction.ts'
import { standingBeside } from '../../money/records/standing.ts'
import { verify } from '../../money/verify/verify.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
await fund(customer, '1000')

async function post<T extends object = { id: string }>(url: string, body: object): Promise<T> {
  const answer = await customer.call<T>('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}
const deactivate = (id: string) => customer.call('PUT', `/v2/profiles/${id}/deactivate`)
const move = (from_profile_id: string, to_profile_id: string, amount = '10') =>
  customer.call('POST', '/v2/transfer/internal', { asset: 'USD', amount, from_profile_id, to_profile_id })
const usdOf = async (id: string) =>
  (await customer.call<{ available: string }>('GET', `/v2/profiles/${id}/balances/USD`)).body.available

const ruleOf = (profile_id: string, changes: object = {}) => ({
  ref_id: crypto.randomUUID(),
  profile_id,
  source_asset: 'USD',
  destination_asset: 'USDP',
  source: { profile: { profile_id } },
  ...changes,
})
const instructionsOf = (profile_id: string) => ({ profile_id, fiat_network: 'WIRE' })

describe('Deactivate Profile', () => {
  test('a profile that is empty and not in use is deactivated once; it stays in the list', async () => {
    const id = await newProfile(customer)
    const { status, body } = await deactivate(id)
    expect(status).toBe(200)
    expect(body).toMatchObject({ id, type: 'NORMAL', deactivated_at: expect.any(String) as string })
    const before = await everyTable(service.db)
    expect(await deactivate(id)).toMatchObject({ status: 200, body })
    expect((await customer.call('GET', `/v2/profiles/${id}`)).body).toEqual(body)
    expect((await customer.call('GET', `/v2/profiles?ids=${id}`)).body).toEqual({ items: [body] })
    expect(await everyTable(service.db)).toEqual(before)
  })

  describe('a profile in use is not deactivated, and the reason is named:', () => {
    test.each<[string, (id: string) => Promise<unknown>, string]>([
      ['a balance', (id) => move(customer.profile_id, id), 'it holds USD; move it to another profile first'],
      [
        'a pending withdrawal',
        async (id) => {
          await move(customer.profile_id, id, '11')
          await post('/v2/transfer/crypto-withdrawals', withdrawalOf(customer, { profile_id: id }))
        },
        'is PENDING',
      ],
      [
        'a rule of the profile',
        (id) => post('/v2/orchestration/rules', ruleOf(id)),
        'is ACTIVE; delete it first',
      ],
      [
        'a rule that pays to the profile',
        (id) =>
          post(
            '/v2/orchestration/rules',
            ruleOf(customer.profile_id, {
              source: { fiat: {} },
              destination: { profile: { profile_id: id } },
            }),
          ),
        'is ACTIVE; delete it first',
      ],
      [
        'an orchestration under way to the profile',
        async (id) => {
          const { rule } = await post<{ rule: { id: string; source: { fiat: { memo_id: string } } } }>(
            '/v2/orchestration/rules',
            ruleOf(customer.profile_id, {
              source: { fiat: {} },
              destination: { profile: { profile_id: id } },
            }),
          )
          await post('/v2/sandbox/fiat-deposits', {
            amount: '1',
            asset: 'USD',
            memo_id: rule.source.fiat.memo_id,
            fiat_network_instructions: { wire: {} },
          })
          await customer.call('DELETE', `/v2/orchestration/rules/${rule.id}`)
        },
        'pays to it',
      ],
    ])('%s', async (_, use, reason) => {
      const id = await newProfile(customer)
      await use(id)
      const before = await everyTable(service.db)
      const { status, body } = await deactivate(id)
      expect({ status, detail: body.detail }).toEqual({
        status: 400,
        detail: expect.stringMatching(`^profile ${id} cannot be deactivated: .*${reason}$`) as string,
      })
      expect(await everyTable(service.db)).toEqual(before)
    })
  })

  test('a deactivated profile gets no withdrawals, addresses, instructions, rules or transfers', async () => {
    const id = await newProfile(customer)
    await deactivate(id)
    const before = await everyTable(service.db)
    const orchestration = {
      ref_id: 'from deactivated',
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '1',
    }
    for (const [url, body] of [
      ['/v2/transfer/crypto-withdrawals', withdrawalOf(customer, { profile_id: id })],
      ['/v2/transfer/deposit-addresses', { profile_id: id, crypto_network: 'ETHEREUM' }],
      ['/v2/transfer/fiat-deposit-instructions', instructionsOf(id)],
      ['/v2/orchestration/rules', ruleOf(id)],
      [
        '/v2/orchestration/rules',
        ruleOf(customer.profile_id, { destination: { profile: { profile_id: id } } }),
      ],
      ['/v2/orchestration/orchestrations', { ...orchestration, source: { profile: { profile_id: id } } }],
      [
        '/v2/orchestration/orchestrations',
        {
          ...orchestration,
          source: { profile: { profile_id: customer.profile_id } },
          destination: { profile: { profile_id: id } },
        },
      ],
      [
        '/v2/transfer/internal',
        { asset: 'USD', amount: '1', from_profile_id: customer.profile_id, to_profile_id: id },
      ],
    ] as const)
      expect(await customer.call('POST', url, body), url).toMatchObject({
        status: 403,
        body: { meta: { id, status: 'DEACTIVATED' } },
      })
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('a deposit after the deactivation is credited, and an internal transfer moves it out', async () => {
    const id = await newProfile(customer)
    const { memo_id } = await post<{ memo_id: string }>(
      '/v2/transfer/fiat-deposit-instructions',
      instructionsOf(id),
    )
    expect((await deactivate(id)).status).toBe(200)
    await post('/v2/sandbox/fiat-deposits', {
      amount: '7',
      asset: 'USD',
      memo_id,
      fiat_network_instructions: { wire: {} },
    })
    expect(await usdOf(id)).toBe('7')
    const withdrawal = withdrawalOf(customer, {
      profile_id: id,
      amount: '5',
      destination_address: DESTINATION,
    })
    expect(await customer.call('POST', '/v2/transfer/crypto-withdrawals', withdrawal)).toMatchObject({
      status: 403,
    })
    expect((await move(id, customer.profile_id, '7')).status).toBe(200)
    expect(await usdOf(id)).toBe('0')
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('a concurrent transfer to the profile is posted before the deactivation or refused', async () => {
    for (let round = 1; round <= 10; round++) {
      const id = await newProfile(customer)
      // Both requests lock this balance of 0.
      await move(customer.profile_id, id, '1')
      await move(id, customer.profile_id, '1')
      const [ended, moved] = await Promise.all([deactivate(id), move(customer.profile_id, id, '1')])
      expect([ended.status, moved.status]).toSatisfy(
        ([first, second]) => (first === 200 && second === 403) || (first === 400 && second === 200),
      )
      expect(await usdOf(id)).toBe(moved.status === 200 ? '1' : '0')
    }
  })

  test('a movement reads only the deactivated profiles that it names, however many there are', async () => {
    const [named, other] = [await newProfile(customer), await newProfile(customer)]
    await deactivate(named)
    await deactivate(other)
    const deactivatedAmong = (...profiles: string[]) =>
      transaction(service.db, async (tx) => {
        const keys = profiles.map((profile_id) => ({ profile_id, asset: 'USD' }))
        const { read, standing } = standingBeside()
        await LedgerTransaction.open(tx, customer.customer_id, keys, { readBeside: read })
        return [...standing.deactivated]
      })
    expect(await deactivatedAmong(customer.profile_id)).toEqual([])
    expect(await deactivatedAmong(customer.profile_id, named)).toEqual([named])
  })

  describe('a new rule during a deactivation waits and is refused:', () => {
    test.each<[string, (id: string) => object]>([
      ['from the profile', (id) => ruleOf(id)],
      [
        'to the profile',
        (id) =>
          ruleOf(customer.profile_id, { source_asset: 'USDG', destination: { profile: { profile_id: id } } }),
      ],
    ])('%s', async (_where, rule) => {
      const id = await newProfile(customer)
      // The operation does the same: it locks the profile, checks whether it is in use, and then writes.
      const deactivation = await service.db.connect()
      try {
        await deactivation.query('begin')
        await deactivation.query(
          'select 1 from profiles where customer_id = $1 and id = $2 for no key update',
          [customer.customer_id, id],
        )
        const making = customer.call('POST', '/v2/orchestration/rules', rule(id))
        // Without the lock, the rule would be ACTIVE by now.
        const first = await Promise.race([making, setTimeout(300, 'it waits')])
        await deactivation.query(
          'update profiles set deactivated_at = (select clock_timestamp()) where id = $1',
          [id],
        )
        await deactivation.query('commit')
        expect(first).toBe('it waits')
        expect(await making).toMatchObject({ status: 403, body: { meta: { id, status: 'DEACTIVATED' } } })
      } finally {
        deactivation.release()
      }
    })
  })
})
