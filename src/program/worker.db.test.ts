import { originOfLoop } from '../contract/actor.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import { credit, DESTINATION, newCustomer, ROW_MACS, ownTestService } from '../../test/support.ts'
import { deposit } from '../money/movements/deposit.ts'
import { freeze, selectFreezes, unfreeze } from '../money/records/freezes.ts'
import { Changes } from '../db/changes.ts'
import { ServerCheck } from '../db/server-check.ts'
import { CHECKER } from '../db/database.ts'
import type { Transfer } from '../money/ledger/transfer.ts'
import type { NetworkAdapter, Networks } from '../networks/network.ts'
import { Metrics } from '../upkeep/metrics/metrics.ts'
import { startWorker } from './worker.ts'
import { atEnd } from '../../test/at-end.ts'

const service = await ownTestService({
  BURSAR_WORKER_INTERVAL_MS: '10',
  BURSAR_SIMULATED_CONFIRMATION_MS: '0',
})

// First, while no payment of another test is under way.

/** A worker that has found nothing. It rests for ten minutes, or as long as given. */
async function startIdleWorker(restMsMax = 600_000) {
  const changes = new Changes({ recentMs: 0, restMsMax })
  const check = new ServerCheck(service.url, { onChange: () => undefined, onTold: changes.hear })
  const meter = new Metrics().worker
  const rounds = vi.spyOn(meter, 'round')
  const worker = startWorker({
    ...{ db: service.db, ledger: service.ledger, networks: service.networks, settings: service.settings },
    log: pino({ level: 'silent' }),
    changes,
    meter,
  })
  atEnd(async () => {
    await worker.stop()
    await check.stop()
  })
  const listening = `select 1 from pg_stat_activity
    where datname = current_database() and application_name = '${CHECKER}' and state = 'idle'`
  await vi.waitUntil(async () => (await service.db.query(listening)).rowCount! > 0, 20_000)
  await vi.waitUntil(() => rounds.mock.calls.some(([loop]) => loop === 'settlement'), 20_000)
  return { changes }
}

/** A withdrawal that no process told the worker of. */
async function withdraw() {
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, 'ETH', '10')
  const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
    ...{ profile_id: customer.profile_id, amount: '1', asset: 'ETH' },
    ...{ crypto_network: 'ETHEREUM', destination_address: DESTINATION },
  })
  expect(status).toBe(200)
  const isCompleted = async () => {
    const found = await service.db.query('select 1 from transfers where id = $1 and status = $2', [
      body.id,
      'COMPLETED',
    ])
    return found.rowCount! > 0
  }
  return { isCompleted }
}

describe('a worker that has nothing to do', () => {
  test('rests until another process tells it of a change', async () => {
    await startIdleWorker()
    const { isCompleted } = await withdraw()
    await pause(1_000)
    expect(await isCompleted()).toBe(false)
    const other = new Changes()
    other.tellOthers(service.db, () => undefined)
    other.note()
    await vi.waitUntil(isCompleted, 20_000)
  })

  test('finds what no process told it of at the end of its rest', async () => {
    await startIdleWorker(1_000)
    const { isCompleted } = await withdraw()
    await vi.waitUntil(isCompleted, 20_000)
  })

  test('rests no longer than until something is due by itself', async () => {
    const { changes } = await startIdleWorker()
    const target = { kind: 'NETWORK', network: 'ETHEREUM' } as const
    await freeze(service.db, originOfLoop('test'), target, 'OPERATOR', 'a test')
    const { isCompleted } = await withdraw()
    changes.note()
    const held = `select 1 from outgoing_transfers where state = 'HELD' and waiting_code is not null`
    await vi.waitUntil(async () => (await service.db.query(held)).rowCount! > 0, 20_000)
    await unfreeze(service.db, ROW_MACS, originOfLoop('test'), target)
    await vi.waitUntil(isCompleted, 20_000)
  })
})

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

test('a loop rests twice as long after each further failure', async () => {
  const ethereum: NetworkAdapter = {
    ...service.networks.get('ETHEREUM')!,
    asksNode: true,
    scanDeposits: () => Promise.reject(new Error('the node is away')),
  }
  const meter = new Metrics().worker
  const failedAt: number[] = []
  vi.spyOn(meter, 'round').mockImplementation((loop, isDone) => {
    if (loop === 'deposits' && !isDone) failedAt.push(performance.now())
  })
  const worker = startWorker({
    ...{ db: service.db, ledger: service.ledger, settings: service.settings, meter },
    networks: new Map([['ETHEREUM', ethereum]]),
    log: pino({ level: 'silent' }),
  })
  atEnd(() => worker.stop())
  await vi.waitUntil(() => failedAt.length >= 4, 60_000)
  // Three rests of a second each were 3 s.
  expect(failedAt[3]! - failedAt[0]!).toBeGreaterThan(6_900)
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
