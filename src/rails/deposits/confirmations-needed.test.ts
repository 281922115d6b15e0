import { expect, test } from 'vitest'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { IncomingTransfer } from './incoming-transfers.ts'
import { deepEnough } from './confirmations-needed.ts'

const PRICES = new Map([['ETH', 2_000n * 10n ** 18n]])

const deposit = (asset: string, amount: string, crypto_tx_hash = amount) =>
  ({ asset, amount, crypto_tx_hash, block_number: null }) as IncomingTransfer

async function reasonsOf(
  adapter: Pick<NetworkAdapter, 'oneNodeMax' | 'depths' | 'confirmationsOf'>,
  ...deposits: IncomingTransfer[]
): Promise<string[]> {
  const numbered = deposits.map((one, index) => ({ ...one, crypto_tx_index: String(index) }))
  const { pass, wait } = await deepEnough(adapter, numbered, async () => PRICES)
  const reasons = new Map(wait.map((one) => [one.incoming.crypto_tx_index, `${one.reason}: ${one.detail}`]))
  expect(pass.length + wait.length).toBe(deposits.length)
  return numbered.map(({ crypto_tx_index }) => reasons.get(crypto_tx_index) ?? 'ENOUGH')
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
  const [small, ...large] = due
  expect(await deepEnough({ secondNodeAbove: '100' }, due, async () => PRICES)).toEqual({
    pass: [small, ...large.map((one) => ({ ...one, needsSecondNode: true }))],
    wait: [],
  })
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
