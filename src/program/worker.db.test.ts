import { originOfLoop } from '../contract/actor.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { credit, newCustomer, startTestService, type TestService } from '../../test/support.ts'
import { deposit } from '../money/movements/deposit.ts'
import { selectFreezes } from '../money/records/freezes.ts'
import type { Transfer } from '../money/ledger/transfer.ts'
import type { NetworkAdapter, Networks } from '../chains/network.ts'
import { startWorker } from './worker.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    BURSAR_WORKER_INTERVAL_MS: '10',
    BURSAR_SIMULATED_CONFIRMATION_MS: '0',
  })
})
afterAll(() => service.close())

test('a hanging node delays neither withdrawals nor deposits of other networks', async () => {
  const customer = await newCustomer(service)
  for (const asset of ['ETH', 'LTC']) await credit(service.ledger, customer, asset, '10')
  const hanging = new AbortController()
  const asked = new Set<string>()
  const hang = (call: string) => async () => {
    asked.add(call)
    await pause(600_000, undefined, { signal: hanging.signal }).catch(() => undefined)
    throw new Error('the node does not answer')
  }
  const ethereum: NetworkAdapter = {
    ...service.networks.get('ETHEREUM')!,
    signsAlone: true,
    asksNode: true,
    sign: hang('sign'),
    scanDeposits: hang('arrivals'),
    sweep: hang('sweep'),
    rebroadcastTakenBack: hang('rebroadcastTakenBack'),
  }
  const networks: Networks = new Map([...service.networks, ['ETHEREUM', ethereum] as const])
  const worker = startWorker({
    db: service.db,
    ledger: service.ledger,
    networks,
    settings: service.settings,
    log: pino({ level: 'silent' }),
  })
  try {
    const { body: place } = await customer.call<{ address: string }>(
      'POST',
      '/v2/transfer/deposit-addresses',
      { profile_id: customer.profile_id, crypto_network: 'LITECOIN' },
    )
    const withdraw = async (asset: string, crypto_network: string, destination_address: string) => {
      const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: customer.profile_id,
        amount: '1',
        asset,
        crypto_network,
        destination_address,
      })
      expect(status).toBe(200)
      return body.id
    }
    await withdraw('ETH', 'ETHEREUM', '0x52908400098527886E0F7030069857D2E4169EE7')
    await vi.waitFor(
      () => expect([...asked].sort()).toEqual(['arrivals', 'rebroadcastTakenBack', 'sign', 'sweep']),
      20_000,
    )
    // To an address of Bursar: the money must leave over LITECOIN, and be detected and credited there.
    const id = await withdraw('LTC', 'LITECOIN', place.address)
    await vi.waitFor(async () => {
      const { body } = await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers')
      expect(body.items.find((transfer) => transfer.id === id)).toMatchObject({ status: 'COMPLETED' })
      expect(body.items).toContainEqual(
        expect.objectContaining({ type: 'CRYPTO_DEPOSIT', destination_address: place.address }),
      )
    }, 30_000)
  } finally {
    hanging.abort()
    await worker.stop()
  }
})

/** Runs a worker in this mode until the expectations hold. */
async function runUntil(
  mode: 'live' | 'sandbox',
  networks: Networks,
  expectations: () => Promise<void>,
): Promise<void> {
  const worker = startWorker({
    db: service.db,
    ledger: service.ledger,
    networks,
    settings: { ...service.settings, mode },
    log: pino({ level: 'silent' }),
    custodyEveryMs: 20,
  })
  try {
    await vi.waitFor(expectations, 10_000)
  } finally {
    await worker.stop()
  }
}

test('in live mode, a network with less money than its custody is frozen', async () => {
  const { customer_id, profile_id } = await newCustomer(service)
  const arrived = {
    profile_id,
    type: 'CRYPTO_DEPOSIT',
    asset: 'BTC',
    minor: 200_000_000n,
    arrivedAt: 'custody:BITCOIN',
    place: { id: crypto.randomUUID() },
    record: { crypto_network: 'BITCOIN' },
  } as const
  await service.ledger.submit(customer_id, deposit(customer_id, arrived, originOfLoop('test')))
  let looks = 0
  const bitcoin: NetworkAdapter = {
    ...service.networks.get('BITCOIN')!,
    status: async () => {
      looks += 1
      return { height: 1, held: { BTC: '1' } }
    },
  }
  await runUntil('live', new Map([['BITCOIN', bitcoin]]), async () => {
    expect(await selectFreezes(service.db)).toMatchObject([
      { kind: 'NETWORK', subject: 'BITCOIN', reason: 'CUSTODY_SHORT' },
    ])
  })
  expect(looks).toBeGreaterThanOrEqual(2)
})

test('a fee quote that expired unused is deleted, and an open one is not', async () => {
  const { customer_id } = await newCustomer(service)
  const { rows } = await service.db.query<{ id: string }>(
    `insert into fee_quotes (customer_id, id, created_at, expires_at, asset, crypto_network, destination_address, fee, amount)
     select $1, gen_random_uuid(), now(), now() + hours * interval '1 hour', 'USDP', 'ETHEREUM', 'x', 1, 1
     from unnest(array[-2, 1]) as hours
     returning id`,
    [customer_id],
  )
  await runUntil('sandbox', new Map(), async () => {
    const left = await service.db.query('select id from fee_quotes where customer_id = $1', [customer_id])
    expect(left.rows).toEqual([{ id: rows[1]!.id }])
  })
})
