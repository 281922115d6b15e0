import { originOfLoop } from '../../contract/actor.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SEED } from '../../../test/seed.ts'
import { credit, newCustomer, type TestCustomer, sharedTestService } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { idsAt, momentAt } from '../../db/ids.ts'
import { LedgerTransaction } from '../../money/ledger/ledger-transaction.ts'
import { onPlatform, onProfile } from '../../money/ledger/entries.ts'

/*
 * The entries of a profile are the ledger's own history: each change once, in order. The balance at any moment is the
 * sum of the entries up to that moment.
 */

interface Entry {
  transfer_id: string
  event: string
  asset: string
  amount: string
  balance_after: string
  sequence: number
  created_at: string
}
interface Listed {
  items: Entry[]
  next_page_cursor?: string
}

const service = await sharedTestService()
const customer = await newCustomer(service)

const path = (owner: TestCustomer, query = '') => `/v2/profiles/${owner.profile_id}/entries${query}`

async function list(owner: TestCustomer, query = ''): Promise<Listed> {
  const reply = await owner.call<Listed>('GET', path(owner, query))
  expect([reply.status, reply.body]).toEqual([200, expect.anything()])
  return reply.body
}

/** Reads all entries, page by page. */
async function walk(owner: TestCustomer, filters: string): Promise<Entry[]> {
  const found: Entry[] = []
  for (let cursor = ''; ;) {
    const { items, next_page_cursor } = await list(owner, `?${filters}${cursor}`)
    found.push(...items)
    if (next_page_cursor === undefined) return found
    cursor = `&page_cursor=${encodeURIComponent(next_page_cursor)}`
  }
}

/** Posts entries of several assets with the given time, in one ledger transaction. */
async function post(
  owner: TestCustomer,
  at: string,
  amounts: [asset: string, cents: bigint][],
): Promise<void> {
  const { customer_id, profile_id } = owner
  await transaction(service.db, async (tx) => {
    const keys = amounts.map(([asset]) => ({ profile_id, asset }))
    const ledger = await LedgerTransaction.open(tx, customer_id, keys, { at: momentAt(at) })
    const newId = idsAt(ledger.now)
    for (const [asset, minor] of amounts)
      ledger.post({
        transfer_id: newId(),
        event: 'CREATED',
        entries: [onPlatform('bank', asset, -minor), onProfile(profile_id, asset, minor)],
        origin: originOfLoop('test'),
      })
    await ledger.write()
  })
}

describe('List Profile Entries', () => {
  test('each change of a balance is listed with the balance after it, only for its own customer', async () => {
    const deposit = await credit(service.ledger, customer, 'USD', '100')
    const { items } = await list(customer)
    expect(items).toEqual([
      {
        transfer_id: deposit.id,
        event: 'CREATED',
        asset: 'USD',
        amount: '100',
        balance_after: '100',
        sequence: 1,
        created_at: deposit.created_at,
      },
    ])
    const other = await newCustomer(service)
    const reply = await other.call<{ type: string }>('GET', path(customer))
    expect([reply.status, reply.body.type]).toEqual([404, 'about:blank'])
  })

  test('pages are complete and in order in both directions for any history, and balances at any moment agree', async () => {
    const assets = ['BTC', 'ETH', 'USD', 'USDP']
    // Only a few distinct microseconds, so that many entries share a moment, in one balance and in several.
    const steps = fc.array(
      fc.record({
        micros: fc.integer({ min: 0, max: 6 }),
        changes: fc.array(fc.tuple(fc.constantFrom(...assets), fc.integer({ min: 1, max: 9 })), {
          minLength: 1,
          maxLength: 4,
        }),
      }),
      { minLength: 1, maxLength: 12 },
    )
    const timeOf = (micros: number) => `2026-01-01T00:00:00.${String(micros).padStart(6, '0')}Z`
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 5 }), async (history, limit) => {
        const owner = await newCustomer(service)
        for (const { micros, changes } of [...history].sort((a, b) => a.micros - b.micros))
          await post(
            owner,
            timeOf(micros),
            changes.map(([asset, cents]) => [asset, BigInt(cents) * 100n]),
          )
        const newest = await walk(owner, `limit=${limit}`)
        const oldest = await walk(owner, `limit=${limit}&order=ASC`)
        expect(oldest).toEqual([...newest].reverse())
        expect(oldest).toHaveLength(history.reduce((sum, { changes }) => sum + changes.length, 0))
        const keyOf = (one: Entry) =>
          `${one.created_at} ${one.asset} ${String(one.sequence).padStart(9, '0')}`
        expect(oldest.map(keyOf)).toEqual(oldest.map(keyOf).sort())
        for (const asset of assets) {
          const its = oldest.filter((one) => one.asset === asset)
          expect(its.map(({ sequence }) => sequence)).toEqual(its.map((_, index) => index + 1))
          expect(await walk(owner, `limit=${limit}&order=ASC&assets=${asset}`)).toEqual(its)
        }
        for (let micros = 0; micros <= 6; micros++) {
          const at = timeOf(micros)
          const balances = await owner.call<{ items: { asset: string; available: string }[] }>(
            'GET',
            `/v2/profiles/${owner.profile_id}/balances?at=${at}`,
          )
          const expected = assets.flatMap((asset) => {
            const last = oldest.filter((one) => one.asset === asset && one.created_at <= at).at(-1)
            return last === undefined ? [] : [{ asset, available: last.balance_after, trading: '0' }]
          })
          expect(balances.body.items).toEqual(expected)
        }
        const bounded = await walk(owner, `created_at.gt=${timeOf(2)}&created_at.lte=${timeOf(4)}&order=ASC`)
        expect(bounded).toEqual(
          oldest.filter((one) => one.created_at > timeOf(2) && one.created_at <= timeOf(4)),
        )
      }),
      { numRuns: 12, seed: SEED },
    )
  })
})

describe('List Profile Balances', () => {
  test('there is no balance before the first entry, and a future moment gives the current balance', async () => {
    const at = async (moment: string) =>
      (await customer.call('GET', `/v2/profiles/${customer.profile_id}/balances?at=${moment}`)).body
    expect(await at('2020-01-01T00:00:00Z')).toEqual({ items: [] })
    expect(await at('2200-01-01T00:00:00Z')).toEqual({
      items: [{ asset: 'USD', available: '100', trading: '0' }],
      complete_until: expect.any(String) as unknown,
    })
    const wrong = await customer.call('GET', `/v2/profiles/${customer.profile_id}/balances?at=yesterday`)
    expect(wrong.status).toBe(400)
  })
})
