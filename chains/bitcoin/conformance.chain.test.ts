import { describe } from 'vitest'
import { BitcoinNode, HAS_LITECOIND } from '../../test/bitcoin-node.ts'
import { conformance, type World } from '../../test/conformance.ts'
import { bitcoinAdapter } from './adapter.ts'
import { readerOfWithdrawals } from '../../src/rails/payouts/withdrawal-reader.ts'

const DEPTH = 2

/** A Litecoin node, whose miner is everybody else. */
async function start(): Promise<World> {
  const node = await BitcoinNode.start()
  const refill = async (amount: string) => {
    await node.pay(node.miner, { [await node.bursar.call<string>('getnewaddress')]: amount })
  }
  for (let coin = 1; coin <= 20; coin++) await refill('5')
  await node.mine(DEPTH)
  return {
    network: 'LITECOIN',
    assets: ['LTC'],
    depth: DEPTH,
    open: (db, { tooDear, reserveAfterMs } = {}) =>
      bitcoinAdapter(
        'LITECOIN',
        {
          ...{ ...node.config, confirmations: DEPTH, pollMs: 1 },
          feeCeiling: tooDear ? '0.000009' : '0.01',
          withdrawals: readerOfWithdrawals(reserveAfterMs),
        },
        db,
      ),
    somebody: () => node.newAddress(),
    arrived: (address) => node.miner.call<string>('getreceivedbyaddress', address, 0),
    mine: async (blocks = 1) => void (await node.mine(blocks)),
    drop: () => node.restart(),
    async takeBack(meanwhile) {
      await meanwhile()
      await node.miner.call('invalidateblock', await node.miner.call<string>('getbestblockhash'))
      for (let blocks = 0; blocks <= DEPTH; blocks++) await node.mineEmpty()
    },
    pay: async (address, _asset, amount) => void (await node.pay(node.miner, { [address]: amount })),
    refill: (_asset, amount) => refill(amount),
    byHand: (to, amount) => node.pay(node.bursar, { [to]: amount }),
    stop: () => node.stop(),
  }
}

if (!HAS_LITECOIND)
  console.warn('skipped: chains/bitcoin/conformance.chain.test.ts needs litecoind on the PATH')

describe.skipIf(!HAS_LITECOIND)('over a Litecoin node', () => {
  conformance(start, { sweeps: "deposit addresses are the hot wallet's own" })
})
