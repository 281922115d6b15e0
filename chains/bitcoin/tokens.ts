import type { FoundDeposit } from '../../src/networks/found-deposits.ts'
import { minorOf, sum } from './amounts.ts'
import { decode, outpointOf, type Outpoint } from './decode.ts'
import { walletBytesOf } from './payments.ts'
import { fetchTransactions, type BitcoinWallet } from './wallet.ts'

/** Coins of BITCOIN_CASH with tokens (CashTokens): the node counts them in the wallet's balance and spends none, so they are no custody. */

/** The first byte of such an output's script in the bytes of its transaction. The node shows the script without the tokens. */
const TOKEN_PREFIX = 0xef

/** The coins with tokens that these transactions of the wallet have made, with their amounts in minor units. */
export async function coinsWithTokens(
  wallet: BitcoinWallet,
  hashes: readonly string[],
): Promise<ReadonlyMap<Outpoint, bigint>> {
  const coins = new Map<Outpoint, bigint>()
  if (!wallet.dialect.hasTokens) return coins
  for (const transaction of await fetchTransactions(wallet, [...new Set(hashes)]))
    for (const [index, { script, amount }] of decode(walletBytesOf(transaction)).outputs.entries())
      if (script[0] === TOKEN_PREFIX)
        coins.set(outpointOf({ txid: transaction.txid, vout: String(index) }), amount)
  return coins
}

/** As `NetworkAdapter.tokenCoins`. */
export async function tokenCoins(wallet: BitcoinWallet, deposits: readonly FoundDeposit[]) {
  const hashes = deposits.map(({ crypto_tx_hash }) => crypto_tx_hash)
  const coins = await coinsWithTokens(wallet, hashes)
  const standings: ('HELD' | 'SPENT' | undefined)[] = []
  for (const { crypto_tx_hash: txid, crypto_tx_index: vout } of deposits)
    if (!coins.has(outpointOf({ txid, vout }))) standings.push(undefined)
    else {
      const unspent = await wallet.rpc.call<object | null>('gettxout', txid, Number(vout), false)
      standings.push(unspent === null ? 'SPENT' : 'HELD')
    }
  return standings
}

/** What the coins with tokens hold that the node counts in the wallet's balance, in minor units. */
export async function heldWithTokens({ rpc, dialect }: BitcoinWallet): Promise<bigint> {
  if (!dialect.hasTokens) return 0n
  const only = { tokensOnly: true }
  const coins = await rpc.call<{ amount: string; tokenData?: object }[]>(
    'listunspent',
    0,
    9e6,
    [],
    false,
    only,
  )
  return sum(coins.map(({ amount, tokenData }) => (tokenData === undefined ? 0n : minorOf(amount))))
}
