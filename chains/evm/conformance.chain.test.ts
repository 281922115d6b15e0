import { createWalletClient, http, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { deployToken, startAnvil, TOKEN_ABI } from '../../test/anvil.ts'
import { conformance, type World } from '../../test/conformance.ts'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import { evmAdapter, type EvmConfig } from './adapter.ts'
import { withdrawalReader, readerOfWithdrawals } from '../../src/rails/payouts/withdrawal-reader.ts'

const DECIMALS = { ETH: 18, USDG: 6 } as const
const unitsOf = (asset: string, amount: string) => parseAmount(amount, DECIMALS[asset as 'ETH'])!

/** Anvil, which makes a block only where a test says so. */
async function start(): Promise<World> {
  const { chain, rpcUrl, ...anvil } = await startAnvil(1)
  const token = await deployToken({ chain, rpcUrl, ...anvil }, DECIMALS.USDG)
  const hotWallet = privateKeyToAccount(generatePrivateKey())
  const config: EvmConfig = {
    mode: 'sandbox',
    rpcUrl,
    hotWallet,
    depositKey: { mnemonic: 'legal winner thank year wave sausage worth useful legal winner thank yellow' },
    confirmations: 3,
    maxFeePerGasCeiling: '100',
    withdrawals: withdrawalReader,
    tokens: { USDG: token },
    sweepMinimum: { ETH: '0.0001', USDG: '0.1' },
    pollMs: 10,
  }
  const give = async (to: string, asset: string, amount: string) => {
    const value = unitsOf(asset, amount)
    const move = { chain: null, address: token, abi: TOKEN_ABI, functionName: 'mint' } as const
    await (asset === 'ETH'
      ? chain.sendTransaction({ chain: null, to: to as Hex, value })
      : chain.writeContract({ ...move, args: [to as Hex, value] }))
  }
  for (const asset of Object.keys(DECIMALS)) await give(hotWallet.address, asset, '100')
  await chain.setAutomine(false)
  return {
    network: 'ETHEREUM',
    assets: ['ETH', 'USDG'],
    tokens: new Map([['ETHEREUM', config.tokens!]]),
    depth: 3,
    open: (db, { tooDear, reserveAfterMs } = {}) =>
      evmAdapter(
        'ETHEREUM',
        {
          ...config,
          ...(tooDear && { maxFeePerGasCeiling: '0.000000001' }),
          withdrawals: readerOfWithdrawals(reserveAfterMs),
        },
        db,
      ),
    somebody: async () => privateKeyToAccount(generatePrivateKey()).address,
    async arrived(address, asset) {
      const balanceOf = { address: token, abi: TOKEN_ABI, functionName: 'balanceOf' } as const
      const units =
        asset === 'ETH'
          ? await chain.getBalance({ address: address as Hex })
          : await chain.readContract({ ...balanceOf, args: [address as Hex] })
      return formatAmount(units, DECIMALS[asset as 'ETH'])
    },
    mine: (blocks = 1) => chain.mine({ blocks }),
    drop: () => chain.request({ method: 'anvil_dropAllTransactions' } as never),
    async takeBack(meanwhile) {
      await meanwhile()
      await chain.request({ method: 'anvil_reorg', params: [1, []] } as never)
    },
    pay: give,
    refill: (asset, amount) => give(hotWallet.address, asset, amount),
    byHand: (to, amount) =>
      createWalletClient({ account: hotWallet, transport: http(rpcUrl) }).sendTransaction({
        ...{ chain: null, to: to as Hex, value: unitsOf('ETH', amount) },
      }),
    stop: () => anvil.stop(),
  }
}

conformance(start)
