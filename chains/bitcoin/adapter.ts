import type { Database } from '../../src/db/database.ts'
import { checkBy } from '../kit/remote-signer.ts'
import type { NetworkAdapter } from '../../src/networks/network.ts'
import type { NetworkStatus } from '../../src/networks/wallet-status.ts'
import { decimalOf, minorOf } from './amounts.ts'
import { broadcast, resend } from './broadcast.ts'
import { claimTransaction, movedBy } from './claims.ts'
import { untrustedChange } from './coin-locks.ts'
import { planConsolidation } from './consolidate.ts'
import { confirmationsOf, newDepositAddress, scanBlocks, scanDeposits, seeDeposits } from './deposits.ts'
import type { BitcoinNetwork } from './dialects.ts'
import { estimateFee } from './fees.ts'
import { askSigner } from './asked-bytes.ts'
import { signedByHand } from './psbt.ts'
import { replace } from './replace.ts'
import { sign } from './sign.ts'
import { checkStatus } from './status.ts'
import { heldWithTokens, tokenCoins } from './tokens.ts'
import { whyNodeIsBehind } from './unknown-spends.ts'
import { usedBy } from './used-by.ts'
import { bitcoinWallet, isOwnAddress, type BitcoinConfig, type BitcoinWallet } from './wallet.ts'

const POLL_MS = 5_000
/** Long enough for the six blocks that fees are estimated for, where a block takes ten minutes. */
const STUCK_AFTER_MS = 3_600_000
const PAYMENTS_MAX = 250

/**
 * Moves coins over a node of the Bitcoin Core family: Bitcoin Core 0.21 and later, Litecoin Core 0.21, Bitcoin Cash Node.
 * The node's wallet holds the keys of the hot wallet and of the deposit addresses, or a person (`signing`) or a process (`signer`)
 * does. The wallet belongs to one Bursar database alone: the adapter unlocks every output that no transaction of this database
 * spends.
 *
 * The recipient gets exactly the amount. The platform pays the network's fee on top.
 */
export function bitcoinAdapter(
  network: BitcoinNetwork,
  config: BitcoinConfig,
  db: Database,
): NetworkAdapter &
  Required<Pick<NetworkAdapter, 'newDepositAddress' | 'scanDeposits' | 'estimateFee' | 'status'>> {
  const wallet = bitcoinWallet(network, config, db)
  const { signer } = wallet
  return {
    pollMs: config.pollMs ?? POLL_MS,
    signsAlone: true,
    paysMany: PAYMENTS_MAX,
    asksNode: true,
    ready: async () => void (await wallet.rpc.call('getblockcount')),
    review: () => ({ verdict: 'PASS' }),
    sign: (tx, withdrawals) => sign(tx, wallet, withdrawals),
    usedBy: (withdrawal, hash) => usedBy(wallet, withdrawal, hash),
    broadcast: (withdrawals) => broadcast(wallet, withdrawals),
    checkStatus: (withdrawals) => checkStatus(wallet, withdrawals),
    ...(wallet.dialect.isReplaceable && {
      // Also without the settings: what was asked before is followed to its end.
      askSigner: (from, asked) => askSigner(from, wallet, asked),
      byHand: signedByHand(wallet),
      replace: (tx, withdrawals) => replace(tx, wallet, withdrawals),
      // A person is asked to sign again by 'bursar psbt replace' alone.
      ...(wallet.signing !== 'psbt' && { stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS }),
    }),
    ...(signer !== undefined && { checkWithSigner: checkBy(signer.client, network) }),
    readHash: (text) => (/^[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined),
    claimTransaction: (from, withdrawal, hash) => claimTransaction(from, wallet, withdrawal, hash),
    resend: (ended) => resend(wallet, ended),
    movedBy: (tx, hash) => movedBy(tx, wallet, hash),
    isOwnAddress: (address) => isOwnAddress(wallet, address),
    planConsolidation: (tx, maxFeeRate) => planConsolidation(tx, wallet, maxFeeRate),
    async newDepositAddress() {
      const made = await newDepositAddress(wallet)
      return () => made
    },
    scanDeposits: (cursor) => scanDeposits(wallet, cursor),
    newestBlock: () => wallet.rpc.call<string>('getbestblockhash'),
    seeDeposits: (cursor) => seeDeposits(wallet, cursor),
    ...(wallet.dialect.hasTokens && { tokenCoins: (deposits) => tokenCoins(wallet, deposits) }),
    scanBlocks: (first) => scanBlocks(wallet, first),
    confirmationsOf: (found) => confirmationsOf(wallet, found),
    estimateFee: (asset, destination) => estimateFee(wallet, asset, destination),
    status: () => status(wallet),
    // A new address each time: nobody else knows it.
    refill: async () => ({ to: (await newDepositAddress(wallet)).address }),
  }
}

/**
 * The wallet holds its trusted balance: mined outputs and its own change in the mempool, locked or not, without coins with
 * tokens. With no withdrawal under way and every deposit confirmed, this is the amount that the ledger has in custody.
 */
async function status(wallet: BitcoinWallet): Promise<NetworkStatus> {
  const { rpc, coin } = wallet
  // Before the balance: a coin with tokens that arrives in between makes it no smaller than it is.
  const tokens = await heldWithTokens(wallet)
  const [height, balance] = [await rpc.call<string>('getblockcount'), await rpc.call<string>('getbalance')]
  const held = minorOf(balance) - tokens + (await untrustedChange(wallet))
  const behind = await whyNodeIsBehind(wallet)
  return { height: Number(height), held: { [coin]: decimalOf(held) }, ...(behind && { behind }) }
}
