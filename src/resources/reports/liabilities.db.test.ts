import { setTimeout } from 'node:timers/promises'
import { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { verifyLiability, type Liability, type LiabilityProof } from '../../../client/src/index.ts'
import { makeBooks, randomOf } from '../../../test/book-history.ts'
import { SEED } from '../../../test/seed.ts'
import { fund, newCustomer, newProfile, ownTestService, withdraw } from '../../../test/support.ts'

const service = await ownTestService()
const customers = [await newCustomer(service), await newCustomer(service)]
const holders = await Promise.all(
  customers.map(async (customer) => ({
    customer_id: customer.customer_id,
    profile_ids: [customer.profile_id, await newProfile(customer), await newProfile(customer)],
  })),
)
await makeBooks(service.db, holders, 1_000, randomOf(SEED))
const [customer] = customers

interface Liabilities {
  at: string
  items: Liability[]
}

const liabilitiesAt = async (at?: string) =>
  (await customer!.call<Liabilities>('GET', `/v2/reports/liabilities${at === undefined ? '' : `?at=${at}`}`))
    .body

const proofsAt = async (place: number, profile: string, at: string) =>
  (
    await customers[place]!.call<{ at: string; items: LiabilityProof[] }>(
      'GET',
      `/v2/profiles/${profile}/liability-proof?at=${at}`,
    )
  ).body

/** Verifies the proofs of all profiles, and that they are all the leaves. */
async function verifyAll({ at, items }: Liabilities): Promise<void> {
  const found = new Map(items.map(({ asset }) => [asset, 0]))
  for (const [place, { profile_ids }] of holders.entries())
    for (const profile of profile_ids) {
      const proofs = await proofsAt(place, profile, at)
      expect(proofs.at).toBe(at)
      for (const proof of proofs.items) {
        expect(proof.profile_id).toBe(profile)
        await verifyLiability(
          proof,
          items.find(({ asset }) => asset === proof.asset)!,
        )
        found.set(proof.asset, found.get(proof.asset)! + 1)
      }
    }
  expect([...found.values()]).toEqual(items.map(({ leaves }) => leaves))
}

describe('List Liabilities', () => {
  test(`the totals are those of the ledger, now and at a moment (TEST_SEED=${SEED})`, async () => {
    for (const asked of [undefined, '2024-12-01T00:00:00Z']) {
      const { at, items } = await liabilitiesAt(asked)
      const { rows } = await service.db.query<{ asset: string; total: string }>(
        `select asset, trim_scale(sum(amount))::text as total from entries
         where account = 'profile' and created_at < $1 group by asset order by asset`,
        [at],
      )
      expect(items.map(({ asset, total }) => ({ asset, total }))).toEqual(rows)
    }
  })

  test('a moment has one root, although money moves on', async () => {
    const before = await liabilitiesAt()
    await fund(customer!, '100')
    await withdraw(customer!, { amount: '5' })
    const now = await liabilitiesAt()
    expect(now.items).not.toEqual(before.items)
    expect(await liabilitiesAt(before.at)).toEqual(before)
    await verifyAll(before)
    expect((await liabilitiesAt('2200-01-01T00:00:00Z')).at > before.at).toBe(true)
  })
})

test('a customer who asks for many moments has one made at a time', async () => {
  const { at } = await liabilitiesAt()
  let [underWay, most] = [0, 0]
  const query = Reflect.get(Pool.prototype, 'query') as (...given: unknown[]) => Promise<unknown>
  async function counted(this: Pool, ...given: unknown[]) {
    if (!String(given[0]).includes('from balances b')) return query.apply(this, given)
    most = Math.max(most, ++underWay)
    await setTimeout(50)
    return query.apply(this, given).finally(() => (underWay -= 1))
  }
  Reflect.set(Pool.prototype, 'query', counted)
  const moments = [1, 2, 3, 4].map((before) => new Date(Date.parse(at) - before * 1_000).toISOString())
  const found = await Promise.all(moments.map((moment) => liabilitiesAt(moment)))
  Reflect.set(Pool.prototype, 'query', query)
  expect(found.map((one) => Date.parse(one.at))).toEqual(moments.map((moment) => Date.parse(moment)))
  expect(most).toBe(1)
})

describe('Get Liability Proof', () => {
  test('every profile verifies its balances with the client alone', async () => {
    await verifyAll(await liabilitiesAt('2024-06-01T00:00:00Z'))
    const { at, items } = await liabilitiesAt()
    expect(items.length).toBeGreaterThan(15)
    await verifyAll({ at, items })
  })

  test('salts differ by moment, profile and asset', async () => {
    const [profile] = holders[0]!.profile_ids
    const { at } = await liabilitiesAt()
    const proofs = [
      ...(await proofsAt(0, profile!, at)).items,
      ...(await proofsAt(0, profile!, '2025-06-01T00:00:00Z')).items,
    ]
    expect(new Set(proofs.map(({ salt }) => salt)).size).toBe(proofs.length)
  })

  test('a profile of another customer is not found', async () => {
    const url = `/v2/profiles/${holders[1]!.profile_ids[0]}/liability-proof`
    expect((await customer!.call('GET', url)).status).toBe(404)
  })
})
