/*
 * The Bitcoin family, with the worker killed (SIGKILL) between every two steps in turn. Invariants of each turn:
 * 1. the chain shows each withdrawal once, with its exact amount, and each deposit is credited once;
 * 2. the ledger agrees with the chain to the last unit: the node's wallet is custody;
 * 3. nothing stays locked: no output in the wallet, no lock in the database, nothing in flight.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HAS_LITECOIND } from './bitcoin-node.ts'
import {
  dieEverywhere,
  dieInTreasury,
  litecoinWorld,
  prepare,
  requireServedWithoutWorker,
  startRealService,
  workToTheEnd,
  type RealService,
} from './real-networks.ts'

if (!HAS_LITECOIND)
  console.warn('skipped: test/real-networks-litecoin.chain.test.ts needs litecoind on the PATH')

describe.skipIf(!HAS_LITECOIND)('on Litecoin', () => {
  let world: Awaited<ReturnType<typeof litecoinWorld>>
  let service: RealService

  beforeAll(async () => {
    world = await litecoinWorld()
    service = await startRealService(world)
  })
  afterAll(async () => {
    await service?.close()
    await world?.stop()
  })

  test('a process without the worker gives out addresses and quotes with the methods that the guide names', () =>
    requireServedWithoutWorker(world, 'LTC'))

  test('a worker that dies between any two steps loses nothing and pays nothing twice', async () => {
    // Enough coins that a withdrawal need not wait for another one's change.
    for (let coins = 1; coins <= 4; coins++) await prepare(service, world, { asset: 'LTC', amount: '2' })
    await workToTheEnd(service, world)
    const steps = [
      'lockunspent',
      'network_transactions',
      'sendrawtransaction',
      'update outgoing_transfers',
      'commit',
    ]
    const places = await dieEverywhere(
      service,
      world,
      {
        deposit: { asset: 'LTC', amount: '0.5' },
        withdrawal: { asset: 'LTC', amount: '0.30000007' },
        rule: { asset: 'LTC', amount: '0.20000001' },
      },
      steps,
    )
    for (const step of steps) expect(places.join('\n')).toContain(step)
  })

  test('a worker that dies while it moves coins to cold storage moves them once', async () => {
    for (let coins = 1; coins <= 4; coins++) await prepare(service, world, { asset: 'LTC', amount: '2' })
    await workToTheEnd(service, world)
    const places = await dieInTreasury(service, world, { asset: 'LTC', amount: '0.10000003' })
    expect(places.length).toBeGreaterThan(1)
  })
})
