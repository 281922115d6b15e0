import type { Hex } from 'viem'
import { getAddress, parseGwei } from 'viem/utils'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { Database } from '../../src/db/database.ts'
import { broadcast, rebroadcast } from './broadcast.ts'
import { tokensOf, type EvmChain } from './chain.ts'
import { chainIdentity } from './chain-identity.ts'
import { claimTransaction } from './claim.ts'
import { hotWalletFollower } from './confirmations.ts'
import { planMove } from './former-wallets.ts'
import {
  checkCredited,
  confirmationsOf,
  cursorAt,
  newestInChain,
  requireReceived,
  verifyDeposits,
} from './deposit-checks.ts'
import { depositKeysOf, type DepositKey } from './deposit-keys.ts'
import { depositReader, initialCursor, isCursor } from './deposit-scan.ts'
import { estimateFee } from './estimate-fee.ts'
import { broughtBy, movedBy } from './moved.ts'
import { lookAt, status } from './network-status.ts'
import { evmNode, headOf } from './node.ts'
import { checkStatus } from './payment-status.ts'
import { usedBy } from './nonce-used.ts'
import { refill } from './refill.ts'
import { refusesDestination } from './refusals.ts'
import { askSigner, checkBy, type DepositPlace } from '../kit/remote-signer.ts'
import { askedBytes, remoteMover } from './asked-bytes.ts'
import { replace } from './replace.ts'
import { sign } from './sign.ts'
import { sweep } from './sweeps/sweep.ts'
import { sweepTermsOf, type SweepConfig } from './sweeps/worth.ts'
import { rebroadcastTakenBack, resend } from './taken-back.ts'
import { parse, type EvmSigner } from './transaction.ts'
import type { AskedWithdrawal, NetworkAdapter } from '../../src/networks/network.ts'
import { namedNodes, overNodes } from '../kit/nodes.ts'
import { witnessesOf, type SecondNodes } from '../kit/second-word.ts'
import { endedTopUpsIn } from '../kit/sweeps.ts'

/** What the parts of the adapter take as it is configured. */
type Given = Pick<EvmChain, 'mode' | 'hotWallet' | 'withdrawals' | 'signer' | 'gasWallet' | 'areGiven'>
/** The same, with a default. */
type Defaulted = Pick<
  EvmChain,
  'formerWallets' | 'coldAddresses' | 'maxInFlight' | 'stuckAfterMs' | 'firstNonce'
>

/** One EVM network: the node, the keys and the limits. */
export interface EvmConfig extends SweepConfig, Given, Partial<Defaulted> {
  /** JSON-RPC over HTTP. The URL may contain a provider's key, and is in no error and no log. */
  rpcUrl: string
  /** Nodes that are used where it does not answer, or is behind. */
  otherRpcUrls?: readonly string[]
  /** The chain id that the node must answer to eth_chainId. The catalogue's main network unless given. */
  chainId?: number
  /** Wallets that pay withdrawals beside the hot wallet. */
  furtherWallets?: EvmSigner[]
  /** Derives deposit addresses. Without it there are none; a public key is swept by a signer process alone. */
  depositKey?: DepositKey
  /** When a block is confirmed: at this number of confirmations (1 is the newest block), or by the network's own tag. */
  confirmations: number | 'safe' | 'finalized'
  /** The most that is offered for a unit of gas, in gwei. Above it withdrawals wait. */
  maxFeePerGasCeiling: string
  /** Addresses of tokens by asset, instead of the catalogue's: for test networks. */
  tokens?: Record<string, string>
  pollMs?: number
  /**
   * Second, independent nodes, of which `quorum` (by default all) must agree before a deposit is credited, from these amounts
   * on (decimal strings by asset; every amount of an asset that is not named).
   */
  verify?: SecondNodes & { above: Record<string, string> }
}

const POLL_MS = 2_000
const STUCK_AFTER_MS = 180_000
/** Nodes keep some transactions of an account and drop those above: geth 16 when its pool is full, and 64 at most. */
const IN_FLIGHT_MAX = 64

/**
 * Withdrawals and deposits over a real EVM node, by JSON-RPC. A withdrawal gets its nonce once, in the database
 * transaction that stores the signed bytes. Replacements have the same nonce, so that the chain mines one of them. A
 * signed withdrawal is never reported as refused.
 */
export function evmAdapter(network: CryptoNetwork, config: EvmConfig, db: Database): NetworkAdapter {
  const nodes = namedNodes('rpc_url', [config.rpcUrl, ...(config.otherRpcUrls ?? [])], evmNode)
  return overNodes(
    nodes.map(({ field, node }) => {
      const chain = openChain(network, { ...config, node, nodes }, db)
      const look = () => chain.ready().then(() => lookAt(node))
      return { field, look, markStale: () => chain.markStale(), adapter: adapterOn(chain, config, db) }
    }),
  )
}

function adapterOn(chain: EvmChain, config: EvmConfig, db: Database): NetworkAdapter {
  const { network } = chain
  const { signer } = config
  const remote =
    signer?.move && ((place: DepositPlace) => remoteMover(network, signer, getAddress(place.address), place))
  const keys = config.depositKey && depositKeysOf(config.depositKey, remote)
  const follower = hotWalletFollower(chain)
  return {
    pollMs: config.pollMs ?? POLL_MS,
    signsAlone: true,
    asksNode: true,
    async ready() {
      await headOf(chain.node)
      await chain.ready()
    },

    // Withdrawals.
    review: () => ({ verdict: 'PASS' }),
    refusesDestination: (address) => refusesDestination(chain, address),
    estimateFee: (asset, destination) => estimateFee(chain, asset, destination),
    sign: (tx, withdrawals) => sign(tx, chain, withdrawals),
    ...(signer !== undefined && {
      checkWithSigner: checkBy(signer, network),
      // In the order of the nonces: the journal has no gaps.
      askSigner: async (from, asked) => {
        const nonceOf = (one: AskedWithdrawal) => parse(one.raw_transaction).nonce
        const ordered = asked.toSorted((a, b) => nonceOf(a) - nonceOf(b))
        const answers = await askSigner(from, { network, signer, bytes: askedBytes }, ordered)
        return asked.map((one) => answers.get(one)!)
      },
    }),
    broadcast: (withdrawals) => broadcast(chain, withdrawals),
    checkStatus: (withdrawals) => checkStatus(db, chain, follower, withdrawals),
    stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS,
    replace: (_tx, withdrawals) => replace(chain, withdrawals),
    rebroadcastTakenBack: () => rebroadcastTakenBack(db, chain),
    rebroadcast: (kept) => rebroadcast(chain, kept),
    endedTopUps: endedTopUpsIn(db),

    // Deposits.
    ...(keys !== undefined && {
      newDepositAddress: async () => (id) => keys.newAddress(id),
    }),
    initialCursor: async (cursor) => (isCursor(cursor) ? undefined : initialCursor(chain)),
    ...depositReader(db, chain),
    verifyDeposits: (found) => verifyDeposits(chain, found),
    confirmationsOf: (found) => confirmationsOf(chain, found),
    checkCredited: (credited) => checkCredited(chain, credited),
    newestInChain: (cursors) => newestInChain(chain, cursors),
    cursorAt: (block) => cursorAt(chain, block),
    ...(keys?.canSign && {
      sweep: (round) => sweep(db, chain, keys, round),
    }),

    // Operators.
    status: () => status(db, chain),
    readHash: (text) => (/^0x[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined),
    claimTransaction: (_db, withdrawal, hash) => claimTransaction(chain, withdrawal, hash),
    planConsolidation: (tx, maxFeeRate) => planMove(tx, chain, maxFeeRate),
    movedBy: (tx, hash) => movedBy(tx, chain, hash),
    broughtBy: (from, hash) => broughtBy(from, chain, hash),
    refill: (asset, amount, cold) => refill(chain, asset, amount, cold as readonly Hex[]),
    resend: (ended) => resend(chain, ended),
    usedBy: (withdrawal, hash) => usedBy(db, chain, withdrawal, hash),
    requireReceived: (customerId, deposit) => requireReceived(db, chain, customerId, deposit),
  }
}

/** Builds the network from its configuration. Throws an Error that names the rule which the configuration breaks. */
function openChain(
  network: CryptoNetwork,
  config: EvmConfig & Pick<EvmChain, 'node' | 'nodes'>,
  db: Database,
): EvmChain {
  const { family, gasAsset, chainId = 0 } = NETWORKS[network]
  if (family !== 'evm') throw new Error(`${network} is no EVM network`)
  const { confirmations, node, nodes } = config
  if (typeof confirmations === 'number' && confirmations < 1)
    throw new Error('confirmations must be at least 1')
  const expected = config.chainId ?? chainId
  const tokens = tokensOf(network, config.tokens ?? {})
  const { verify } = config
  const feeCeiling = parseGwei(config.maxFeePerGasCeiling)
  const { mode, hotWallet, withdrawals, signer, gasWallet, areGiven } = config
  return {
    ...{ network, mode, node, nodes, chainId: expected, gasAsset, tokens, hotWallet, withdrawals },
    ...{ signer, gasWallet, areGiven },
    lanes: [hotWallet, ...(config.furtherWallets ?? [])],
    formerWallets: config.formerWallets ?? [],
    coldAddresses: config.coldAddresses ?? [],
    confirmations: typeof confirmations === 'number' ? BigInt(confirmations) : confirmations,
    feeCeiling,
    sweeps: sweepTermsOf(network, tokens, feeCeiling, config),
    stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS,
    firstNonce: config.firstNonce ?? 0,
    maxInFlight: config.maxInFlight ?? IN_FLIGHT_MAX,
    ...chainIdentity(network, expected, node, tokens, db),
    verify: verify && {
      ...witnessesOf(verify, evmNode),
      above: (asset) => parseAmount(verify.above[asset] ?? '0', decimalsOf(asset))!,
    },
  }
}
