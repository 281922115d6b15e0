import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { transaction } from '../../db/database.ts'
import { originOfLoop } from '../../contract/actor.ts'
import { Ledger } from '../../money/movements/queue.ts'
import type { PayoutNetwork, NetworkAdapter } from '../../networks/network.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { problem } from '../../contract/problems.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { faultsOf } from '../../../test/schema-faults.ts'
import {
  everyTable,
  fund,
  MASTER_KEYS,
  newCustomer,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { createCryptoWithdrawals, WithdrawalOfMany } from './create-crypto-withdrawals.ts'
import { atEnd } from '../../../test/at-end.ts'
import { refusedWith } from '../../../test/matchers.ts'
import { availableOf } from '../../../test/payouts.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
await fund(customer, '100000')
afterAll(async () => {
  // The ledger agrees with its entries after all tests, also after killed and refused requests.
  expect((await verify(service.db)).disagreements).toEqual([])
})

const ONE = '/v2/transfer/crypto-withdrawals'
const ORIGIN = originOfLoop('test')
const MANY = `${ONE}/bulk`

interface Item {
  transfer?: Transfer
  problem?: { status: number; type: string; detail: string; meta?: Record<string, unknown> }
}

const sent = (by: TestCustomer, withdrawals: unknown) =>
  by.call<{ items: Item[]; detail: string }>('POST', MANY, { withdrawals })

async function itemsOf(by: TestCustomer, withdrawals: unknown[]): Promise<Item[]> {
  const { status, body } = await sent(by, withdrawals)
  expect({ status, detail: body.detail }).toEqual({ status: 200, detail: undefined })
  expect(body.items).toHaveLength(withdrawals.length)
  for (const { transfer, problem: refused } of body.items)
    expect([transfer, refused].filter((one) => one !== undefined)).toHaveLength(1)
  return body.items
}

const manyOf = (by: TestCustomer, count: number, prefix: string, changes: Record<string, unknown> = {}) =>
  Array.from({ length: count }, (_, index) => ({
    ...withdrawalOf(by, changes),
    ref_id: `${prefix}-${index}`,
  }))

describe('Create Crypto Withdrawals', () => {
  describe('a thousand withdrawals', () => {
    test('are created in order, and a repeat answers each item with the first record', async () => {
      const by = await newCustomer(service)
      await fund(by, '11000')
      const withdrawals = manyOf(by, 1_000, 'thousand')
      const items = await itemsOf(by, withdrawals)
      expect(items.map(({ transfer }) => transfer?.ref_id)).toEqual(withdrawals.map(({ ref_id }) => ref_id))
      // The withdrawals are also created in this order: ids sort by creation.
      const ids = items.map(({ transfer }) => transfer!.id)
      expect([...ids].sort()).toEqual(ids)
      expect(await availableOf(by)).toBe('0')

      const again = await itemsOf(by, withdrawals)
      for (const [index, { problem: refused }] of again.entries()) {
        expect(refused).toMatchObject({ status: 409, meta: { existing: items[index]!.transfer } })
        expect(refused!.type).toMatch(/already-exists$/)
      }
      expect(await availableOf(by)).toBe('0')
    })

    test('are refused from the first item that the balance cannot pay', async () => {
      const by = await newCustomer(service)
      // Each withdrawal takes 11 USD.
      await fund(by, `${11 * 640 + 10}`)
      const items = await itemsOf(by, manyOf(by, 1_000, 'poor'))
      expect(items.findIndex(({ problem: refused }) => refused !== undefined)).toBe(640)
      for (const { problem: refused } of items.slice(640))
        expect(refused).toMatchObject({ status: 403, meta: { available: '10', needed: '11' } })
      // The remaining balance is enough for a smaller withdrawal afterwards.
      const [last] = await itemsOf(by, manyOf(by, 1, 'small', { amount: '9' }))
      expect(last!.transfer).toMatchObject({ total: '10' })
      expect(await availableOf(by)).toBe('0')
    })
  })

  test('each item is answered like a single request, and affects no other item', async () => {
    const by = await newCustomer(service)
    const twin = await newCustomer(service)
    for (const each of [by, twin]) await fund(each, '100')
    const bodiesOf = (of: TestCustomer) => [
      withdrawalOf(of, { ref_id: 'a' }),
      withdrawalOf(of, { ref_id: 'b', amount: '5000' }),
      withdrawalOf(of, { ref_id: 'c', destination_address: 'x' }),
      withdrawalOf(of, { ref_id: 'd', amount: '10.123' }),
      withdrawalOf(of, { ref_id: 'e', amount: undefined }),
      withdrawalOf(of, { ref_id: 'f', crypto_network: 'BITCOIN' }),
      withdrawalOf(of, { ref_id: 'g', profile_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f' }),
      withdrawalOf(of, { ref_id: 'h', fee_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f' }),
      withdrawalOf(of, { ref_id: 'i', nothing: 1 }),
      withdrawalOf(of, { ref_id: 'j', memo: 'x\0' }),
      withdrawalOf(of, { ref_id: 'a', amount: '12' }),
      withdrawalOf(of, { ref_id: 'k', profile_id: of.profile_id.toUpperCase() }),
    ]
    const items = await itemsOf(by, bodiesOf(by))
    const plain = (value: unknown, of: TestCustomer) =>
      JSON.stringify(value)
        .replaceAll(of.profile_id, '<profile>')
        .replaceAll(of.customer_id, '<customer>')
        .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
        .replaceAll(/\d{4}-\d\d-\d\dT[0-9:.]+Z/g, '<time>')
    for (const [index, body] of bodiesOf(twin).entries()) {
      const alone = await twin.call('POST', ONE, body)
      const { transfer, problem: refused } = items[index]!
      expect(transfer === undefined).toBe(alone.status !== 200)
      expect(plain(transfer ?? refused, by)).toBe(plain(alone.body, twin))
    }
    expect(await availableOf(by)).toBe(await availableOf(twin))
  })

  test('an item that violates its schema gets its own problem', async () => {
    const faults = faultsOf(WithdrawalOfMany)
    const before = await everyTable(service.db)
    for (let next = 0; next < faults.length; next += 50) {
      const part = faults.slice(next, next + 50)
      const items = await itemsOf(
        customer,
        part.map(({ value }) => value),
      )
      for (const [index, { at, rule }] of part.entries()) {
        const { problem: refused } = items[index]!
        expect(refused).toMatchObject({ status: 400, type: 'about:blank' })
        expect(refused!.detail).toContain(rule)
        expect(refused!.detail).toContain(at.length === 0 ? 'the ' : at.join('.'))
      }
    }
    for (const none of [null, [], 5, 'x'])
      expect((await itemsOf(customer, [none]))[0]!.problem!.detail).toBe('the item must be an object')
    const [without] = await itemsOf(customer, [withdrawalOf(customer)])
    expect(without!.problem).toMatchObject({ status: 400, detail: 'ref_id is required' })
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('an empty list, more than a thousand items, or a missing list refuses the whole request', async () => {
    const before = await everyTable(service.db)
    for (const [withdrawals, detail] of [
      [[], 'withdrawals must have at least 1 value'],
      [manyOf(customer, 1_001, 'too many'), 'withdrawals must have at most 1000 values'],
      [{}, 'withdrawals must be an array'],
      [undefined, 'withdrawals is required'],
    ] as const)
      expect(await sent(customer, withdrawals)).toMatchObject({ status: 400, body: { detail } })
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('a client that is disabled during its request moves no money for the remaining items', async () => {
    const by = await newCustomer(service)
    await fund(by, '1000')
    let asked = 0
    const requireCaller = () => {
      if (++asked > 3) throw problem.unauthorized('the client is disabled', 'Bearer')
    }
    const { db, ledger, networks, settings } = service
    const { items } = (await createCryptoWithdrawals.run({
      ...{ db, ledger, networks, settings, requireCaller, origin: ORIGIN, customerId: by.customer_id },
      asker: { destroyed: false },
      body: { withdrawals: manyOf(by, 10, 'disabled') },
      problemOf: (error: unknown) => error,
    } as never)) as { items: { transfer?: unknown; problem?: unknown }[] }
    expect(items.map(({ transfer }) => transfer !== undefined)).toEqual(
      Array.from({ length: 10 }, (_, index) => index < 3),
    )
    expect(items[3]!.problem).toMatchObject({ slug: 'unauthorized' })
    expect(await availableOf(by)).toBe(`${1000 - 3 * 11}`)
  })

  test('a repeat after the process died between the batches of a request pays nothing twice', async () => {
    const by = await newCustomer(service)
    await fund(by, '11000')
    const withdrawals = manyOf(by, 1_000, 'killed')
    // The process is gone after its first batch is durable: no statement of the second one reaches the database.
    let commits = 0
    const dying = new Proxy(service.db, {
      get(target, name, receiver) {
        if (name !== 'connect') return Reflect.get(target, name, receiver) as unknown
        return () => (commits++ === 0 ? target.connect() : new Promise(() => undefined))
      },
    })
    const ledger = new Ledger(dying, { macs: new RowMacs(MASTER_KEYS) })
    const { db, networks, settings } = service
    void createCryptoWithdrawals.run({
      ...{
        db,
        ledger,
        networks,
        settings,
        requireCaller: () => undefined,
        origin: ORIGIN,
        customerId: by.customer_id,
        asker: { destroyed: false },
      },
      body: { withdrawals },
    } as never)
    await expect.poll(() => availableOf(by), { timeout: 10_000 }).toBe(`${11 * (1_000 - 512)}`)

    const items = await itemsOf(by, withdrawals)
    expect(items.filter(({ problem: refused }) => refused?.status === 409)).toHaveLength(512)
    expect(items.filter(({ transfer }) => transfer !== undefined)).toHaveLength(488)
    expect(await availableOf(by)).toBe('0')
  })

  test('two equal requests at once create each withdrawal once', async () => {
    const by = await newCustomer(service)
    await fund(by, '6600')
    const withdrawals = manyOf(by, 300, 'twice')
    const answers = await Promise.all([itemsOf(by, withdrawals), itemsOf(by, [...withdrawals].reverse())])
    const made = answers.flat().flatMap(({ transfer }) => transfer?.ref_id ?? [])
    expect(made.sort()).toEqual(withdrawals.map(({ ref_id }) => ref_id).sort())
    expect(await availableOf(by)).toBe('3300')
  })

  describe('on a network whose node estimates fees', () => {
    let asked = 0
    let underWay = 0
    let mostUnderWay = 0
    const networks = () => service.networks as Map<PayoutNetwork, NetworkAdapter>
    let simulated: NetworkAdapter
    beforeAll(() => {
      simulated = networks().get('ETHEREUM')!
      const estimateFee = async () => {
        asked += 1
        underWay += 1
        mostUnderWay = Math.max(mostUnderWay, underWay)
        await pause(20)
        underWay -= 1
        return { asset: 'ETH', amount: '0.000001' }
      }
      networks().set('ETHEREUM', { ...simulated, estimateFee })
    })
    afterAll(() => void networks().set('ETHEREUM', simulated))
    beforeEach(() => {
      asked = mostUnderWay = 0
    })
    /** Each to an address of its own, so that no estimate is known. */
    const toNew = (by: TestCustomer, count: number, prefix: string) =>
      manyOf(by, count, prefix).map((one) => ({
        ...one,
        destination_address: `0x${randomBytes(20).toString('hex')}`,
      }))

    test('what its balance cannot pay is refused by the first check that fails, and no node is asked', async () => {
      const poor = await newCustomer(service)
      const withdrawals = toNew(poor, 100, 'poor')
      withdrawals[7]!.profile_id = customer.profile_id
      withdrawals[8]!.amount = '0.01'
      const items = await itemsOf(poor, withdrawals)
      const slugs = items.map(({ problem: refused }) => refused!.type.split('/').at(-1))
      expect(slugs[7]).toBe('about:blank')
      expect(items[7]!.problem!.status).toBe(404)
      expect(slugs[8]).toBe('below-min-withdraw-limit')
      expect(new Set(slugs.toSpliced(7, 2))).toEqual(new Set(['insufficient-funds']))
      expect(asked).toBe(0)
      // A single one is not asked about again, either, until there is money.
      const one = async () => (await poor.call('POST', ONE, toNew(poor, 1, `one ${asked}`)[0])).status
      expect([await one(), await one(), await one(), asked]).toEqual([403, 403, 403, 1])
      await fund(poor, '1000')
      expect([await one(), asked]).toEqual([200, 2])
    })

    test('a customer has eight questions under way, and none once its client has left', async () => {
      const [by, leaving] = [await newCustomer(service), await newCustomer(service)]
      await fund(by, '10000')
      await fund(leaving, '100000')
      expect((await itemsOf(by, toNew(by, 40, 'few'))).every(({ transfer }) => transfer !== undefined)).toBe(
        true,
      )
      expect([asked, mostUnderWay]).toEqual([40, 8])
      asked = 0
      const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
      const control = new AbortController()
      const answer = fetch(`${address}${MANY}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${leaving.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ withdrawals: toNew(leaving, 500, 'left') }),
        signal: control.signal,
      }).catch((error: Error) => error.name)
      await expect.poll(() => asked, { interval: 5, timeout: 20_000 }).toBeGreaterThan(0)
      control.abort()
      expect(await answer).toBe('AbortError')
      await expect.poll(() => underWay, { timeout: 20_000 }).toBe(0)
      expect(asked).toBeLessThan(400)
      expect(await availableOf(leaving)).toBe('100000')
    })
  })

  describe('limits', () => {
    test('a request counts as many requests as it has items', async () => {
      const limited = await startTestService({
        BURSAR_RATE_LIMIT_PER_SECOND: '1',
        BURSAR_RATE_LIMIT_BURST: '10',
      })
      atEnd(() => limited.close())
      const [by, large, other] = [
        await newCustomer(limited),
        await newCustomer(limited),
        await newCustomer(limited),
      ]
      expect((await sent(by, manyOf(by, 6, 'six'))).status).toBe(200)
      const refused = await sent(by, manyOf(by, 6, 'six more'))
      expect(refused).toMatchObject(refusedWith(429, 'rate'))
      // Three tokens of the rate limit are left.
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(2)
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(4)

      // A request with more items than the bucket holds needs a full bucket, and leaves a debt.
      expect((await sent(large, manyOf(large, 30, 'large'))).status).toBe(200)
      const after = await large.call('GET', '/v2/profiles')
      expect(after.status).toBe(429)
      expect(Number(after.headers['retry-after'])).toBeGreaterThanOrEqual(19)
      expect((await other.call('GET', '/v2/profiles')).status).toBe(200)
    })

    test('a client may have four bulk requests under way, and other clients are served meanwhile', async () => {
      const by = await newCustomer(service)
      await fund(by, '1')
      const ended: number[] = []
      const busy = await transaction(service.db, async (tx) => {
        // While its balance is locked, no request of the client ends but the refused ones.
        await tx.query('select from balances where customer_id = $1 for update', [by.customer_id])
        const busy = Array.from({ length: 6 }, async (_, index) => {
          const { status } = await sent(by, manyOf(by, 1_000, `busy ${index}`))
          ended.push(status)
        })
        expect((await customer.call('POST', ONE, withdrawalOf(customer))).status).toBe(200)
        await vi.waitFor(() => expect(ended).toEqual([429, 429]), { timeout: 15_000 })
        return busy
      })
      await Promise.all(busy)
      expect(ended).toEqual([429, 429, 200, 200, 200, 200])
      // The places of the answered requests are free again.
      expect((await sent(by, manyOf(by, 1, 'free'))).status).toBe(200)
    })

    test('items that do not fit into the queue of the ledger are answered as unavailable', async () => {
      const by = await newCustomer(service)
      await fund(by, '100')
      const stuck = new Ledger(
        new Proxy(service.db, {
          get: (target, name, receiver) =>
            name === 'connect'
              ? () => new Promise(() => undefined)
              : (Reflect.get(target, name, receiver) as unknown),
        }),
      )
      const { db, networks, settings } = service
      const run = (prefix: string) =>
        createCryptoWithdrawals.run({
          ...{
            db,
            ledger: stuck,
            networks,
            settings,
            requireCaller: () => undefined,
            customerId: by.customer_id,
          },
          asker: { destroyed: false },
          body: { withdrawals: manyOf(by, 1_000, prefix) },
          problemOf: (error: unknown) => error,
        } as never)
      // The first batch never ends; at most 5,000 other movements may wait.
      void stuck.submit(by.customer_id, {} as never)
      await expect.poll(() => stuck.waiting).toBe(0)
      while (stuck.waiting < 5_000) void stuck.submit(by.customer_id, {} as never)
      const { items } = (await run('full')) as { items: { problem: unknown }[] }
      expect(items).toHaveLength(1_000)
      for (const { problem: refused } of items) expect(refused).toMatchObject({ slug: 'unavailable' })
    })

    test('a body may have 1 MiB', async () => {
      const padded = (bytes: number) => {
        const body = JSON.stringify({ withdrawals: manyOf(customer, 1, `padded ${bytes}`) })
        return customer.call<{ detail: string }>('POST', MANY, undefined, {
          payload: body + ' '.repeat(bytes - Buffer.byteLength(body)),
          headers: { 'content-type': 'application/json' },
        })
      }
      expect((await padded(1024 * 1024)).status).toBe(200)
      expect(await padded(1024 * 1024 + 1)).toMatchObject({
        status: 413,
        body: { detail: 'the body is larger than 1048576 bytes' },
      })
    })
  })
})
