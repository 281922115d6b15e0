import { originOfLoop } from '../src/contract/actor.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import { createCryptoWithdrawal } from '../src/resources/transfers/create-crypto-withdrawal.ts'
import { readSettings } from '../src/settings.ts'
import type { Bench, Owner } from './service.ts'

export interface CallersResult {
  perSecond: number
  p50Ms: number
  p99Ms: number
}

/** Calls `work` from this many callers at once, each as soon as its last call is answered. */
export async function measureCallers(
  callers: number,
  seconds: number,
  work: (n: number) => Promise<unknown>,
): Promise<CallersResult> {
  const latencies: number[] = []
  const start = performance.now()
  const end = start + seconds * 1000
  let sent = 0
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < end) {
        const before = performance.now()
        await work(sent++)
        latencies.push(performance.now() - before)
      }
    }),
  )
  latencies.sort((a, b) => a - b)
  const percentile = (share: number) => Number(latencies[Math.floor(latencies.length * share)]!.toFixed(2))
  return {
    perSecond: latencies.length / ((performance.now() - start) / 1000),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
  }
}

/** Measures withdrawals of these customers in turn, without HTTP. `prefix` makes their ref_ids unique. */
export async function measureLedger(
  { db, seconds }: Pick<Bench, 'db' | 'seconds'>,
  owners: readonly Owner[],
  callers: number,
  prefix: string,
): Promise<CallersResult> {
  const context = {
    db,
    ledger: new Ledger(db),
    networks: simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 }),
    settings: readSettings({}),
    origin: originOfLoop('bench'),
    query: {},
  }
  return measureCallers(callers, seconds, (n) => {
    const { customerId, profileIds } = owners[n % owners.length]!
    const body = {
      profile_id: profileIds[Math.floor(n / owners.length) % profileIds.length],
      asset: 'USDP',
      crypto_network: 'ETHEREUM',
      amount: '1.25',
      destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
      ref_id: `${prefix}-${n}`,
    }
    return createCryptoWithdrawal.run({ ...context, customerId, body } as never)
  })
}

export function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}
