import { parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { plainRpc } from '../bitcoin/rpc.ts'
import type { Mode } from '../chain-of-mode.ts'
import { staleAfterFailures } from '../evm/chain-identity.ts'
import type { NetworkAdapter } from '../network.ts'
import { chainFacts, GAS_ASSET, mintsOf, type SolanaChain } from './chain.ts'
import { refusesDestination } from './destinations.ts'
import type { SolanaSigner } from './keys.ts'
import { makeLanes } from './make-lanes.ts'
import { status } from './network-status.ts'
import { claimTransaction, movedBy } from './operators.ts'
import { checkStatus, usedBy } from './payment-status.ts'
import { broadcast, estimateFee, replace } from './send.ts'
import { sign } from './sign.ts'

/** The node, the key and the limits. */
export interface SolanaConfig {
  /** JSON-RPC over HTTP. The URL may contain a provider's key, and is in no error and no log. */
  rpcUrl: string
  /** A second, independent node: without its word no payment is refunded. */
  verifyRpcUrl?: string | undefined
  /** Pays every withdrawal. */
  hotWallet: SolanaSigner
  /** The most that a payment costs, a decimal string of SOL; the rent of a recipient's account comes on top. */
  feeCeiling: string
  /** Nonce accounts: as many payments are under way at a time. */
  lanes?: number | undefined
  /** Mints by asset, instead of the catalogue's: for test networks. */
  mints?: Record<string, string> | undefined
  mode: Mode
  pollMs?: number
  stuckAfterMs?: number
  /** How long a withdrawal waits for the hot wallet before no younger one is paid from it. */
  reserveAfterMs?: number
}

const POLL_MS = 2_000
/** A payment is made within seconds, or offers too little. */
const STUCK_AFTER_MS = 60_000
const LANES = 16

/**
 * Withdrawals over SOLANA, by a node's JSON-RPC. Each is alone in a transaction that begins with a durable nonce: its bytes
 * stay valid until the nonce is used, so that they are broadcast again and again, and of all bytes with one value of a nonce
 * the network makes one at most.
 */
export function solanaAdapter(config: SolanaConfig, db: Database): NetworkAdapter {
  const rpc = plainRpc(config.rpcUrl)
  const mints = mintsOf(config.mints ?? {})
  const chain: SolanaChain = {
    rpc,
    second: config.verifyRpcUrl === undefined ? undefined : plainRpc(config.verifyRpcUrl),
    hotWallet: config.hotWallet,
    mints,
    feeCeiling: parseAmount(config.feeCeiling, decimalsOf(GAS_ASSET))!,
    lanes: config.lanes ?? LANES,
    reserveAfterMs: config.reserveAfterMs,
    ...chainFacts(rpc, mints, config.mode, db),
  }
  return staleAfterFailures<NetworkAdapter>(chain, {
    pollMs: config.pollMs ?? POLL_MS,
    signsAlone: true,
    asksNode: true,
    async ready() {
      await chain.facts()
    },

    // Withdrawals.
    review: () => ({ verdict: 'PASS' }),
    refusesDestination: (address) => refusesDestination(chain, address),
    estimateFee: (asset, destination) => estimateFee(chain, asset, destination),
    sign: (tx, withdrawals) => sign(tx, chain, withdrawals),
    broadcast: (withdrawals) => broadcast(chain, withdrawals),
    checkStatus: (withdrawals) => checkStatus(chain, withdrawals),
    stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS,
    replace: (_tx, withdrawals) => replace(chain, withdrawals),
    // There are no deposit addresses to sweep. The rounds make the wallet's nonce accounts.
    sweep: (round) => makeLanes(db, chain, round),

    // Operators.
    status: () => status(chain),
    refill: async () => ({ to: chain.hotWallet.address }),
    claimTransaction: (_db, withdrawal, hash) => claimTransaction(chain, withdrawal, hash),
    movedBy: (tx, hash) => movedBy(tx, chain, hash),
    usedBy: (withdrawal, hash) => usedBy(chain, withdrawal, hash),
  })
}
