/*
 * An EVM network, with the worker killed (SIGKILL) between every two steps in turn. Invariants of each turn:
 * 1. the chain shows each withdrawal once, with its exact amount, and each deposit is credited once;
 * 2. the ledger agrees with the chain to the last unit: custody is the hot wallet plus the deposits that are not
 * swept;
 * 3. nothing stays locked: no transaction in the node, no unused nonce, no lock in the database, nothing in flight.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import {
  dieEverywhere,
  dieInTreasury,
  evmWorld,
  prepare,
  startRealService,
  workToTheEnd,
  type RealService,
} from './real-networks.ts'

vi.setConfig({ testTimeout: 600_000 })

let world: Awaited<ReturnType<typeof evmWorld>>
let service: RealService

beforeAll(async () => {
  world = await evmWorld()
  service = await startRealService(world)
  // The worker reads the chain for deposits from here on.
  await workToTheEnd(service, world)
})
afterAll(async () => {
  await service?.close()
  await world?.stop()
})

test('a worker that dies between any two steps loses nothing and pays nothing twice', async () => {
  // A deposit to withdraw from while later deposits are not swept yet.
  await prepare(service, world, { asset: 'ETH', amount: '3' })
  await workToTheEnd(service, world)
  await prepare(service, world, { asset: 'USDG', amount: '500' })
  await workToTheEnd(service, world)
  const steps = ['eth_sendRawTransaction', 'insert into evm_sweeps', 'update outgoing_transfers', 'commit']
  const places = await dieEverywhere(
    service,
    world,
    {
      deposit: { asset: 'ETH', amount: '0.5' },
      withdrawal: { asset: 'ETH', amount: '0.300000000000000007' },
      rule: { asset: 'USDG', amount: '20.000001' },
    },
    steps,
  )
  for (const step of steps) expect(places.join('\n')).toContain(step)

  const { chain } = world.anvil
  const made = await chain.getTransactionCount({ address: world.hotWallet })
  const { rows } = await service.db.query<{ next: string; kept: string }>(
    `select (select next_nonce from evm_nonces) as next,
            (select count(*) from outgoing_transfers) + (select count(*) from evm_sweeps where kind = 'TOP_UP') as kept`,
  )
  expect(rows).toEqual([{ next: String(made), kept: String(made) }])
})

test('a worker that dies while it moves coins to cold storage moves them once', async () => {
  await prepare(service, world, { asset: 'ETH', amount: '5' })
  await workToTheEnd(service, world)
  const places = await dieInTreasury(service, world, { asset: 'ETH', amount: '0.010000000000000003' })
  expect(places.length).toBeGreaterThan(5)
})
