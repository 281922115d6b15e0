import type { Address } from '@solana/addresses'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf } from '../../src/contract/assets/catalogue.ts'
import type { Database } from '../../src/db/database.ts'
import { plainRpc } from '../kit/json-rpc.ts'
import { witnessesOf, type SecondNodes } from '../kit/second-word.ts'
import { overNodes } from '../kit/nodes.ts'
import type { NetworkAdapter } from '../../src/networks/network.ts'
import type { SweepWorthConfig } from '../../src/networks/sweep-worth.ts'
import { addressGiver } from './asked-addresses.ts'
import { askFor, remoteDepositKeys } from './asked-bytes.ts'
import { checkBy } from '../kit/remote-signer.ts'
import { collectingFailures } from '../kit/sweeps.ts'
import { chainFacts, GAS_ASSET, mintsOf, NETWORK, solanaSweepWorth, type SolanaChain } from './chain.ts'
import { scanBlocks, verifyDeposits } from './deposit-checks.ts'
import { depositKeysOf, type DepositKey } from './deposit-keys.ts'
import { depositReader, initialCursor, newestSlot } from './deposit-scan.ts'
import { refusesDestination } from './destinations.ts'
import { smaller } from '../kit/units.ts'
import { makeLanes } from './make-lanes.ts'
import { lookAt, status } from './network-status.ts'
import { claimTransaction, movedBy } from './operators.ts'
import { checkStatus, usedBy } from './payment-status.ts'
import { broadcast, estimateFee, replace } from './send.ts'
import { PAYMENTS_MAX, sign } from './sign.ts'
import { sweep } from './sweeps/sweep.ts'

/** What the parts of the adapter take as it is configured. */
type Given = Pick<SolanaChain, 'mode' | 'hotWallet' | 'withdrawals' | 'areGiven' | 'signer'>

/** The node, the key and the limits. */
export interface SolanaConfig extends SweepWorthConfig, Given {
  /** JSON-RPC over HTTP. The URL may contain a provider's key, and is in no error and no log. */
  rpcUrl: string
  /** Second, independent nodes, of which as many must agree, by default all: without their word no payment is refunded. */
  verifyRpcUrl?: SecondNodes['rpcUrl'] | undefined
  verifyQuorum?: number | undefined
  /** The most that a payment costs, a decimal string of SOL; the rent of a recipient's account comes on top. */
  feeCeiling: string
  /** The least that a payment offers, a decimal string of SOL; by default `FEE_FLOOR`, or the ceiling where that is less. */
  feeFloor?: string | undefined
  lanes?: number | undefined
  formerWallets?: readonly Address[]
  /** Derives deposit addresses and signs for them, or vouches for those that a worker derives. Without it there are none. */
  depositKey?: DepositKey | undefined
  /** Mints by asset, instead of the catalogue's: for test networks. */
  mints?: Record<string, string> | undefined
  pollMs?: number
  stuckAfterMs?: number
}

const POLL_MS = 2_000
/** A payment is in a block within seconds, or offers too little. */
const STUCK_AFTER_MS = 20_000
/** Twice what a signature takes: some 80,000 millionths of a lamport for a unit. */
const FEE_FLOOR = 10_000n
const LANES = 40

const lamportsIn = (amount: string): bigint => parseAmount(amount, decimalsOf(GAS_ASSET))!

/**
 * Withdrawals and deposits over SOLANA, by a node's JSON-RPC. A transaction pays many withdrawals and begins with a durable nonce:
 * its bytes stay valid until the nonce is used, so that they are broadcast again and again, and of all bytes with one value of
 * a nonce the network makes one at most.
 */
export function solanaAdapter(config: SolanaConfig, db: Database): NetworkAdapter {
  const rpc = plainRpc(config.rpcUrl)
  const mints = mintsOf(config.mints ?? {})
  const { mode, hotWallet, withdrawals, areGiven, depositKey, verifyRpcUrl: rpcUrl } = config
  const feeCeiling = lamportsIn(config.feeCeiling)
  const { signer } = config
  const depositKeys =
    depositKey === undefined || 'mnemonic' in depositKey
      ? depositKey && depositKeysOf(depositKey.mnemonic)
      : signer && remoteDepositKeys(signer)
  const chain: SolanaChain = {
    ...{ mode, rpc, hotWallet, withdrawals, mints, feeCeiling, depositKeys, areGiven, signer },
    second: rpcUrl === undefined ? rpcUrl : witnessesOf({ rpcUrl, quorum: config.verifyQuorum }, plainRpc),
    feeFloor: config.feeFloor === undefined ? smaller(FEE_FLOOR, feeCeiling) : lamportsIn(config.feeFloor),
    lanes: config.lanes ?? LANES,
    formerWallets: config.formerWallets ?? [],
    sweepWorth: solanaSweepWorth(config),
    ...chainFacts(rpc, mints, mode, db),
  }
  const scanDeposits = depositReader(db, chain)
  const adapter: NetworkAdapter = {
    pollMs: config.pollMs ?? POLL_MS,
    signsAlone: true,
    paysMany: PAYMENTS_MAX,
    asksNode: true,
    async ready() {
      await chain.facts()
    },

    // Withdrawals.
    review: () => ({ verdict: 'PASS' }),
    refusesDestination: (address) => refusesDestination(chain, address),
    estimateFee: (asset, destination) => estimateFee(chain, asset, destination),
    sign: (tx, withdrawals) => sign(tx, chain, withdrawals),
    comparesFees: true,
    ...(signer !== undefined && {
      checkWithSigner: checkBy(signer, NETWORK),
      askSigner: (from, asked) => askFor(from, signer, asked),
    }),
    broadcast: (withdrawals) => broadcast(chain, withdrawals),
    checkStatus: (withdrawals) => checkStatus(db, chain, withdrawals),
    stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS,
    replace: (tx, withdrawals) => replace(tx, chain, withdrawals),

    // Deposits.
    ...(depositKey !== undefined && { newDepositAddress: addressGiver(db, depositKey) }),
    initialCursor: (cursor) => initialCursor(chain, cursor),
    newestBlock: () => newestSlot(chain),
    scanDeposits,
    scanBlocks: (first, last) => scanBlocks(db, chain, first, last),
    verifyDeposits: (found) => verifyDeposits(chain, found),
    // The rounds also make the wallet's nonce accounts.
    async sweep(round) {
      if (chain.hotWallet.isWatched) return 0
      return collectingFailures(async (failed) => {
        const made = await makeLanes(db, chain, round).catch((error: unknown) => (failed(error), 0))
        return depositKeys === undefined ? made : made + (await sweep(db, chain, depositKeys, round))
      })
    },

    // Operators.
    status: () => status(db, chain),
    refill: async () => ({ to: chain.hotWallet.address }),
    readHash: (text) => (/^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text) ? text : undefined),
    claimTransaction: (_db, withdrawal, hash) => claimTransaction(chain, withdrawal, hash),
    movedBy: (tx, hash) => movedBy(tx, chain, hash),
    usedBy: (withdrawal, hash) => usedBy(db, chain, withdrawal, hash),
  }
  const [look, markStale] = [() => lookAt(rpc), () => chain.markStale()]
  return overNodes([{ field: 'rpc_url', adapter, look, markStale }])
}
