import { expect, test, vi } from 'vitest'
import { newCustomer, TEST_ORIGIN, ownTestService } from '../../../test/support.ts'
import { deposit } from '../../money/movements/deposit.ts'
import { freeze } from '../../money/records/freezes.ts'
import { listNetworks } from '../../resources/catalogue/list-networks.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { NetworkStatus } from '../../networks/wallet-status.ts'
import { operatorFigures, readOperatorFigures } from './operator-figures.ts'

const service = await ownTestService()

/** The figures of Litecoin, where its node answers this status or fails with this error. */
async function figures(status: NetworkStatus | Error, low?: string) {
  const adapter: NetworkAdapter = {
    ...service.networks.get('LITECOIN')!,
    ...(low !== undefined && { treasury: { marks: { LTC: { low } }, cold: [] } }),
    status: () => (status instanceof Error ? Promise.reject(status) : Promise.resolve(status)),
  }
  return (await readOperatorFigures(service.db, new Map([['LITECOIN', adapter]]))).get('LITECOIN')!
}

test('custody against what is held, the hot wallet against its low mark, and what waits and is frozen', async () => {
  const { customer_id, profile_id } = await newCustomer(service)
  const arrived = {
    profile_id,
    type: 'CRYPTO_DEPOSIT',
    asset: 'LTC',
    minor: 150_000_007n,
    arrivedAt: 'custody:LITECOIN',
    place: { id: crypto.randomUUID() },
    record: { crypto_network: 'LITECOIN' },
  } as const
  await service.ledger.submit(customer_id, deposit(customer_id, arrived, TEST_ORIGIN))
  const nothing = { in_flight: 0, waiting: [], frozen: [], uncredited: [], asks: [], refills: [] }
  expect(await figures({ height: 7, held: { LTC: '1.5' }, hotWallet: { LTC: '0.4' } }, '0.5')).toEqual({
    ...nothing,
    asks: [{ kind: 'REFILL', asset: 'LTC', amount: '0.1' }],
    reachable: true,
    height: 7,
    hot_wallet: { asset: 'LTC', amount: '0.4', low_mark: '0.5', below_low_mark: true },
    custody: [{ asset: 'LTC', in_custody: '1.50000007', held: '1.5', difference: '-0.00000007' }],
  })
  expect((await figures({ height: 7, held: { LTC: '2' } }, '2')).hot_wallet).toMatchObject({
    below_low_mark: false,
  })
  expect(await figures(new Error('the node is away'))).toEqual({
    ...nothing,
    reachable: false,
    error: 'the node is away',
    custody: [{ asset: 'LTC', in_custody: '1.50000007' }],
  })
  await freeze(service.db, TEST_ORIGIN, { kind: 'NETWORK', network: 'LITECOIN' }, 'OPERATOR', 'a look')
  await freeze(service.db, TEST_ORIGIN, { kind: 'NETWORK', network: 'BITCOIN' }, 'OPERATOR', 'another')
  expect((await figures({ height: 7, held: {} })).frozen).toEqual([
    { reason: 'OPERATOR', detail: 'a look', since: expect.any(String) as string },
  ])
})

test('the wallets of a signer process, and what waits for it', async () => {
  const { customer_id } = await newCustomer(service)
  await service.db.query(
    `
    insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at, signed_at, due_at, crypto_tx_hash,
                                    waiting_code, waiting_detail, waiting_since)
    select $1, gen_random_uuid(), 'LITECOIN', 'ASKED', '2026-01-01T00:00:00Z', at, now(), at::text, code, code, at
    from (values ('2026-01-03T00:00:00Z'::timestamptz, null), ('2026-01-02T00:00:00Z', 'SIGNER_REFUSES')) as b (at, code)`,
    [customer_id],
  )
  const blocked = { code: 'SIGNER_REFUSES' as const, detail: 'no' }
  const lane = { lane: '0x1', in_flight: 2, journal: { next_nonce: 4, ahead: -2 }, blocked }
  const signer = { reachable: true }
  const status = {
    height: 7,
    held: {},
    lanes: [
      { ...lane, held: { LTC: '3' } },
      { lane: '0x2', in_flight: 0 },
    ],
    signer,
  }
  expect(await figures(status)).toMatchObject({
    in_flight: 2,
    lanes: [
      { ...lane, holds: [{ asset: 'LTC', amount: '3' }] },
      { lane: '0x2', in_flight: 0, holds: [] },
    ],
    signer,
    asked: { count: 2, since: '2026-01-02T00:00:00.000000Z' },
  })
  await service.owner.query(`delete from outgoing_transfers where network = 'LITECOIN'`)
})

test('an answer is reused for ten seconds, and given for a minute while the next is read', async () => {
  let asked = 0
  const query = () => {
    asked++
    return Promise.resolve({ rows: [] })
  }
  const db = { query } as never
  const clock = vi.spyOn(performance, 'now')
  const at = (ms: number) => {
    clock.mockReturnValue(ms)
    return operatorFigures(db, new Map())
  }
  try {
    const first = await at(0)
    const perLook = asked
    expect(perLook).toBeGreaterThan(0)
    expect(await at(9_999)).toBe(first)
    expect(asked).toBe(perLook)
    // The first answer, while the second is read.
    expect(await at(10_000)).toBe(first)
    await vi.waitFor(async () => expect(await at(10_001)).not.toBe(first))
    expect(asked).toBe(2 * perLook)
    const second = await at(10_002)
    // Too old to be given.
    expect(await at(80_000)).not.toBe(second)
    expect(asked).toBe(3 * perLook)
  } finally {
    clock.mockRestore()
  }
})

test('only a caller with the scope of operators gets the figures', async () => {
  const { db, networks, settings } = service
  const listed = async (scopes: string[]) => {
    const answer = await listNetworks.run({ db, networks, settings, scopes } as never)
    return (answer as { items: { for_operators?: object }[] }).items
  }
  for (const { for_operators } of await listed(['funding:read_profile']))
    expect(for_operators).toBeUndefined()
  const seen = await listed(['funding:read_profile', 'operators:read_network'])
  // A simulated network has no node to ask.
  expect(seen[0]!.for_operators).toMatchObject({ custody: [], in_flight: 0 })
  const { call } = await newCustomer(service)
  expect(JSON.stringify((await call('GET', '/v2/networks')).body)).not.toContain('for_operators')
})
