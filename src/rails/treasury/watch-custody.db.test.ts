import { originOfLoop } from '../../contract/actor.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newCustomer, startTestService, type TestService } from '../../../test/support.ts'
import { deposit } from '../../money/movements/deposit.ts'
import { selectFreezes } from '../../money/records/freezes.ts'
import type { Networks, NetworkStatus } from '../../chains/network.ts'
import { watchCustody, type Suspicions } from './watch-custody.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

/** Credits a deposit over LITECOIN. */
async function arrive(minor: bigint): Promise<void> {
  const { customer_id, profile_id } = await newCustomer(service)
  const arrived = {
    profile_id,
    type: 'CRYPTO_DEPOSIT',
    asset: 'LTC',
    minor,
    arrivedAt: 'custody:LITECOIN',
    place: { id: crypto.randomUUID() },
    record: { crypto_network: 'LITECOIN' },
  } as const
  await service.ledger.submit(customer_id, deposit(customer_id, arrived, originOfLoop('test')))
}

/** A network with this balance, which does something during the request. */
const holding = (LTC: string, meanwhile = async () => undefined as void): Networks =>
  new Map([
    [
      'LITECOIN',
      {
        ...service.networks.get('LITECOIN')!,
        status: async () => {
          await meanwhile()
          return { height: 1, held: { LTC } }
        },
      },
    ],
  ])

test('a balance below custody in two consecutive checks stops payouts over the network', async () => {
  await arrive(150_000_000n)
  const suspicions: Suspicions = new Map()
  const look = (networks: Networks) => watchCustody(service.db, networks, suspicions)
  expect(await look(holding('1.5'))).toBe(0)
  // A single check may have met a node that was behind.
  expect(await look(holding('1.4'))).toBe(0)
  expect(await look(holding('1.5'))).toBe(0)
  expect(await look(holding('1.4'))).toBe(0)
  expect(await selectFreezes(service.db)).toEqual([])
  expect(await look(holding('1.4'))).toBe(1)
  expect(await selectFreezes(service.db)).toMatchObject([
    {
      kind: 'NETWORK',
      subject: 'LITECOIN',
      reason: 'CUSTODY_SHORT',
      detail: '1.4 LTC are held, and 1.5 are in custody',
    },
  ])
})

test('a credit during the request to the chain is not a shortage', async () => {
  await service.owner.query('delete from freezes; delete from customer_freezes')
  const suspicions: Suspicions = new Map()
  let held = 150_000_000n
  for (let count = 1; count <= 3; count++) {
    const networks = holding(`${held / 100_000_000n}.5`, () => arrive(100_000_000n))
    expect(await watchCustody(service.db, networks, suspicions)).toBe(0)
    held += 100_000_000n
  }
  expect(await selectFreezes(service.db)).toEqual([])
})

test('what former hot wallets hold is told for each asset in custody', async () => {
  await arrive(1n)
  const formerWallets = [
    { address: 'one', held: { LTC: '0.4' } },
    { address: 'another', held: { LTC: '0.00000001' } },
  ]
  const told: unknown[] = []
  for (const changes of [{ formerWallets }, {}]) {
    const status = async (): Promise<NetworkStatus> => ({ height: 1, held: { LTC: '999' }, ...changes })
    const networks: Networks = new Map([['LITECOIN', { ...service.networks.get('LITECOIN')!, status }]])
    await watchCustody(service.db, networks, new Map(), (...amount) => told.push(amount))
  }
  expect(told).toEqual([['LITECOIN', 'LTC', '0.40000001']])
})
