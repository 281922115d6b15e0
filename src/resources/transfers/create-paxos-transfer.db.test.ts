/*
 * Invariants of transfers between customers, also of many at once and of connections that break:
 * 1. a debit and a credit with one group, both or none;
 * 2. the amount that leaves one customer arrives at the other;
 * 3. a refused request changes nothing.
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { placesOf, seededRandom } from '../../../test/seed.ts'
import { setPolicy } from '../../../test/policies.ts'
import {
  credit,
  everyTable,
  newCustomer,
  TEST_ORIGIN,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import type { Database } from '../../db/database.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { transferToCustomer } from '../../money/movements/platform-transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { availableOf } from '../../../test/payouts.ts'

const PAXOS = '/v2/transfer/paxos'

const service = await ownTestService()
const sender = await newCustomer(service)
const receiver = await newCustomer(service)

const between = (from: TestCustomer, to: TestCustomer, changes: object = {}) => ({
  ...{ asset: 'USD', amount: '1', from_profile_id: from.profile_id, to_profile_id: to.profile_id },
  ...changes,
})
const transfersOf = async ({ call }: TestCustomer, type: string) =>
  (await call<{ items: Transfer[] }>('GET', `/v2/transfer/transfers?type=${type}&limit=1000`)).body.items
const requireClean = async () => expect((await verify(service.db)).disagreements).toEqual([])

describe('Create Paxos Transfer', () => {
  test('moves the amount at once, and each customer sees its own side alone', async () => {
    await credit(service.ledger, sender, 'USD', '10')
    const body = between(sender, receiver, {
      ...{
        amount: '2.50',
        ref_id: 'first',
        metadata: { of: 'sender' },
        recipient_metadata: { of: 'receiver' },
      },
    })
    const { status, body: debit } = await sender.call<Transfer>('POST', PAXOS, body)
    expect({ status, debit }).toMatchObject({
      status: 200,
      debit: {
        ...{ type: 'PAXOS_TRANSFER_DEBIT', direction: 'DEBIT', status: 'COMPLETED', amount: '2.5', fee: '0' },
        ...{ customer_id: sender.customer_id, ref_id: 'first', metadata: { of: 'sender' } },
      },
    })
    expect(await transfersOf(sender, 'PAXOS_TRANSFER_DEBIT')).toEqual([debit])
    const [credited, ...none] = await transfersOf(receiver, 'PAXOS_TRANSFER_CREDIT')
    expect(none).toEqual([])
    expect(credited).toMatchObject({
      ...{ customer_id: receiver.customer_id, profile_id: receiver.profile_id, amount: '2.5' },
      ...{ group_id: debit.group_id, metadata: { of: 'receiver' } },
    })
    expect(credited!.ref_id).toBeUndefined()
    expect([await availableOf(sender), await availableOf(receiver)]).toEqual(['7.5', '2.5'])
    expect((await receiver.call('GET', `/v2/transfer/transfers/${debit.id}`)).status).toBe(404)

    const { rows } = await service.db.query<{ actor_type: string }>(
      'select actor_type from audit_log where customer_id = $1',
      [receiver.customer_id],
    )
    expect(rows).toEqual([{ actor_type: 'WORKER' }])

    const before = await everyTable(service.db)
    expect(await sender.call('POST', PAXOS, body)).toMatchObject({
      status: 409,
      body: { meta: { existing: debit } },
    })
    expect(await sender.call('POST', `${PAXOS}?dry_run=true`, { ...body, ref_id: 'dry' })).toMatchObject({
      status: 200,
      body: { ref_id: 'dry' },
    })
    expect(await everyTable(service.db)).toEqual(before)
    await requireClean()
  })

  test('whether a profile of somebody else exists shows only to a customer who could pay it', async () => {
    const poor = await newCustomer(service)
    const deactivated = await receiver.call('POST', '/v2/profiles', { nickname: randomUUID() })
    await receiver.call('PUT', `/v2/profiles/${String(deactivated.body.id)}/deactivate`)
    const before = await everyTable(service.db)
    const details = new Set<string>()
    for (const to_profile_id of [receiver.profile_id, randomUUID(), String(deactivated.body.id)]) {
      const { status, body } = await poor.call('POST', PAXOS, between(poor, receiver, { to_profile_id }))
      expect(status).toBe(403)
      details.add(String(body.detail))
    }
    expect(details.size).toBe(1)
    for (const to_profile_id of [randomUUID(), String(deactivated.body.id)])
      expect(await sender.call('POST', PAXOS, between(sender, receiver, { to_profile_id }))).toMatchObject({
        status: 404,
        body: { detail: `profile ${to_profile_id} not found` },
      })
    expect(await everyTable(service.db)).toEqual(before)
  })

  test("the sender's policy, its limits and its freezes apply; those of the receiver do not", async () => {
    const [from, to] = [await newCustomer(service), await newCustomer(service)]
    await credit(service.ledger, from, 'USD', '10')
    const match = { transfer_types: ['PAXOS_TRANSFER_DEBIT' as const] }
    const limit = { asset: 'USD', amount: '3', period_seconds: 86_400, per: 'CUSTOMER' as const }
    await setPolicy(service.db, from.customer_id, {
      rules: [
        { id: 'daily', match, action: 'ALLOW', limit },
        { id: 'rest', match, action: 'BLOCK' },
      ],
    })
    await setPolicy(service.db, to.customer_id, { rules: [{ id: 'none', match, action: 'BLOCK' }] })
    const pay = (amount: string) => from.call('POST', PAXOS, between(from, to, { amount }))
    expect((await pay('2')).status).toBe(200)
    expect(await pay('2')).toMatchObject({ status: 403, body: { meta: { rule_id: 'rest' } } })
    expect((await pay('1')).status).toBe(200)
    expect([await availableOf(from), await availableOf(to)]).toEqual(['7', '3'])
    await requireClean()
  })

  test('many at once, in both directions, move exactly what fits', async () => {
    const [one, other] = [await newCustomer(service), await newCustomer(service)]
    for (const customer of [one, other]) await credit(service.ledger, customer, 'USD', '5')
    const random = seededRandom()
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => {
        const [from, to] = random() < 0.5 ? [one, other] : [other, one]
        return from.call('POST', PAXOS, between(from, to, { amount: String(1 + Math.floor(random() * 3)) }))
      }),
    )
    expect(new Set(answers.map(({ status }) => status))).toSatisfy((seen: Set<number>) =>
      [...seen].every((status) => status === 200 || status === 403),
    )
    expect(Number(await availableOf(one)) + Number(await availableOf(other))).toBe(10)
    await requireClean()
  })

  test('a connection that breaks at any statement leaves both sides or none', async () => {
    await credit(service.ledger, sender, 'USD', '100')
    const asked = {
      ...{ customer_id: sender.customer_id, origin: TEST_ORIGIN, requireCaller: () => undefined },
      ...{ from_profile_id: sender.profile_id, to_profile_id: receiver.profile_id, asset: 'USD', minor: 1n },
    }
    /** Ends the session of the transfer before this statement of it, as a process or server that dies does. */
    const breaking = (at: number) => {
      let sent = 0
      const { db } = service
      return {
        query: (...args: [string]) => db.query(...args),
        async connect() {
          const tx = await db.connect()
          const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
          const query = tx.query.bind(tx) as (...args: unknown[]) => Promise<unknown>
          return Object.assign(Object.create(tx) as typeof tx, {
            query: async (...args: unknown[]) => {
              if (++sent === at) await service.owner.query('select pg_terminate_backend($1)', [rows[0]!.pid])
              return query(...args)
            },
          })
        },
      } as unknown as Database
    }
    const sides = async () => [
      (await transfersOf(sender, 'PAXOS_TRANSFER_DEBIT')).map(({ group_id }) => group_id).sort(),
      (await transfersOf(receiver, 'PAXOS_TRANSFER_CREDIT')).map(({ group_id }) => group_id).sort(),
    ]
    for (const step of placesOf(30)) {
      await transferToCustomer(breaking(step + 1), service.ledger, asked).catch(() => undefined)
      const [debits, credits] = await sides()
      expect(debits, `step ${step}`).toEqual(credits)
    }
    await requireClean()
  })
})
