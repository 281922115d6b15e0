import { randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import { describe } from 'vitest'
import { conformance, type World } from '../../test/conformance.ts'
import { runtime, SolanaNode } from '../../test/solana-node.ts'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import { solanaAdapter, type SolanaConfig } from './adapter.ts'
import { TOKEN } from './instructions.ts'
import { signerOfSeed } from './keys.ts'
import { laneAccounts } from './lanes.ts'
import { signPayments } from './transaction.ts'
import { withdrawalReader, readerOfWithdrawals } from '../../src/rails/payouts/withdrawal-reader.ts'

const LANES = 4
/** How many blocks behind the newest one is final. */
const FINAL_AFTER = 2
const unitsOf = (asset: string, amount: string) => parseAmount(amount, asset === 'SOL' ? 9 : 6)!

/** The runtime of the network, whose newest blocks may be taken back. */
async function start(): Promise<World> {
  const node = await SolanaNode.start()
  const hotWallet = signerOfSeed(randomBytes(32))
  const mint = node.makeMint(TOKEN, 6)
  const config: SolanaConfig = {
    rpcUrl: node.rpcUrl,
    hotWallet,
    depositKey: { mnemonic: 'legal winner thank year wave sausage worth useful legal winner thank yellow' },
    feeCeiling: '0.001',
    withdrawals: withdrawalReader,
    lanes: LANES,
    mints: { USDC: mint },
    sweepMinimum: { SOL: '0.01', USDC: '0.1' },
    mode: 'sandbox',
    pollMs: 10,
  }
  const give = async (to: string, asset: string, amount: string) =>
    void (asset === 'SOL'
      ? node.give(to as Address, unitsOf(asset, amount))
      : node.mint(TOKEN, mint, to as Address, unitsOf(asset, amount)))
  await give(hotWallet.address, 'SOL', '100')
  await give(hotWallet.address, 'USDC', '100')
  node.depth = FINAL_AFTER
  node.mine(FINAL_AFTER + 1)
  return {
    network: 'SOLANA',
    assets: ['SOL', 'USDC'],
    tokens: new Map([['SOLANA', config.mints!]]),
    depth: FINAL_AFTER + 1,
    open: (db, { tooDear, reserveAfterMs } = {}) =>
      solanaAdapter(
        {
          ...config,
          ...(tooDear && { feeCeiling: '0.000005001' }),
          withdrawals: readerOfWithdrawals(reserveAfterMs),
        },
        db,
      ),
    somebody: async () => node.open(TOKEN, mint, signerOfSeed(randomBytes(32)).address),
    arrived: async (address, asset) =>
      asset === 'SOL'
        ? formatAmount(node.lamportsOf(address as Address), 9)
        : formatAmount(node.unitsOf(TOKEN, mint, address as Address), 6),
    mine: async (blocks = 1) => node.mine(blocks),
    drop: async () => node.pool.clear(),
    async takeBack(meanwhile) {
      const takeBack = node.snapshot()
      await meanwhile()
      takeBack()
      node.mine()
    },
    pay: give,
    refill: (asset, amount) => give(hotWallet.address, asset, amount),
    async byHand(to, amount) {
      const nonceAccount = laneAccounts({ hotWallet, formerWallets: [], lanes: LANES })[0]!.account
      const found = node.svm.getAccount(nonceAccount)
      if (!found.exists) throw new Error('the lane is not made')
      const { crypto_tx_hash, raw_transaction } = signPayments(
        hotWallet,
        [{ from: hotWallet.address, to: to as Address, units: unitsOf('SOL', amount), memo: null }],
        { nonceAccount, nonce: base58.encode(found.data.slice(40, 72)), unitLimit: 10_000, unitPrice: 0n },
      )
      node.pool.set(crypto_tx_hash, raw_transaction)
      return crypto_tx_hash
    },
    stop: () => node.stop(),
  }
}

describe.skipIf(runtime === undefined)('on the real runtime', () => {
  conformance(start)
})
