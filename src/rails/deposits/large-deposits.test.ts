import { expect, test } from 'vitest'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { IncomingTransfer } from './incoming-transfers.ts'
import { divideLarge } from './large-deposits.ts'

const PRICES = new Map([['ETH', 2_000n * 10n ** 18n]])

const deposit = (asset: string, amount: string, crypto_tx_hash = amount) =>
  ({ asset, amount, crypto_tx_hash, block_number: null }) as IncomingTransfer

async function reasonsOf(
  adapter: Pick<NetworkAdapter, 'oneNodeMax' | 'depths' | 'confirmationsOf'>,
  ...deposits: IncomingTransfer[]
): Promise<string[]> {
  const { enough, large } = await divideLarge(adapter, deposits, async () => PRICES)
  const reasons = new Map(large.map(({ incoming, reason, detail }) => [incoming, `${reason}: ${detail}`]))
  expect(enough.length + large.length).toBe(deposits.length)
  return deposits.map((one) => reasons.get(one) ?? 'ENOUGH')
}

test("one node's word credits a deposit up to a value, and none without a price", async () => {
  const waits = `it waits for verify_rpc_url, or for 'bursar deposits credit'`
  expect(
    await reasonsOf(
      { oneNodeMax: '100' },
      deposit('ETH', '0.05'),
      deposit('ETH', '0.050005'),
      deposit('LTC', '0.00000001'),
    ),
  ).toEqual([
    'ENOUGH',
    `ONE_NODE: one node alone says so, and it is worth 100.01 USD: ${waits}`,
    `ONE_NODE: one node alone says so, and LTC has no price: ${waits}`,
  ])
  expect(await reasonsOf({ oneNodeMax: '0' }, deposit('ETH', '0.05'))).toEqual([
    `ONE_NODE: one node alone says so, and it is worth 100 USD: ${waits}`,
  ])
  expect(await reasonsOf({}, deposit('LTC', '1000000'))).toEqual(['ENOUGH'])
  // Outputs of one transaction count together.
  expect(
    await reasonsOf(
      { oneNodeMax: '100' },
      deposit('ETH', '0.03', 'a'),
      deposit('ETH', '0.03', 'a'),
      deposit('ETH', '0.03'),
    ),
  ).toEqual([
    `ONE_NODE: one node alone says so, and it is worth 120 USD: ${waits}`,
    `ONE_NODE: one node alone says so, and it is worth 120 USD: ${waits}`,
    'ENOUGH',
  ])
})

test('above the value, a second node is always asked, where there is one', async () => {
  const due = [deposit('ETH', '0.05'), deposit('ETH', '0.050005'), deposit('LTC', '0.00000001')]
  const divided = await divideLarge({ secondNodeAbove: '100' }, due, async () => PRICES)
  expect(divided).toEqual({ enough: due, needsSecondNode: new Set(due.slice(1)), large: [] })
})

test('the larger a deposit, the more confirmations it needs; without a price, as many as the largest', async () => {
  const asked: string[] = []
  const adapter = {
    depths: [
      { from_usd: '0', confirmations: 2 },
      { from_usd: '10000', confirmations: 3 },
      { from_usd: '100000', confirmations: 6 },
    ],
    confirmationsOf: async (found: readonly { amount: string }[]) => {
      asked.push(...found.map(({ amount }) => amount))
      return found.map(() => 3)
    },
  }
  expect(
    await reasonsOf(
      adapter,
      deposit('ETH', '4.999999'),
      deposit('ETH', '5'),
      deposit('ETH', '50'),
      deposit('LTC', '0.1'),
    ),
  ).toEqual([
    'ENOUGH',
    'ENOUGH',
    'CONFIRMATIONS: 3 of 6 confirmations, because it is worth 100000 USD',
    'CONFIRMATIONS: 3 of 6 confirmations, because LTC has no price',
  ])
  // The node is asked about large ones alone.
  expect(asked).toEqual(['5', '50', '0.1'])
})
