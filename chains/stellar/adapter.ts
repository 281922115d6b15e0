import type { Database } from '../../src/db/database.ts'
import type { NetworkAdapter } from '../../src/networks/network.ts'
import type { NetworkStatus } from '../../src/networks/wallet-status.ts'
import { behindOf, type NodeLook } from '../kit/nodes.ts'
import { askSigner, checkBy } from '../kit/remote-signer.ts'
import { askedBytes } from './asked-bytes.ts'
import {
  balanceOf,
  decimalOf,
  findAccount,
  openChain,
  ownAccounts,
  stroops,
  type StellarChain,
  type StellarConfig,
  secondOf,
} from './chain.ts'
import { claimTransaction, movedBy } from './claims.ts'
import { initialCursor, newAddress, scanBlocks, scanDeposits, verifyDeposits } from './deposits.ts'
import type { Horizon } from './horizon.ts'
import { refusesDestination } from './destinations.ts'
import { PAYMENTS_MAX } from './packs.ts'
import { estimateFee, sign } from './sign.ts'
import { broadcast, resend } from './broadcast.ts'
import { checkStatus, usedBy } from './status.ts'

const NETWORK = 'STELLAR'
const POLL_MS = 5_000

/**
 * Withdrawals and deposits over STELLAR, by Horizon. EXPERIMENTAL: no node of Stellar runs in the tests, a model of its
 * rules stands in for one. Signed bytes are never replaced: they bid the fee ceiling, of which the network takes what the
 * ledger's other transactions pay, and end by their time bound.
 */
export function stellarAdapter(config: StellarConfig, db: Database): NetworkAdapter {
  const chain = openChain(config)
  const { signer } = chain
  return {
    pollMs: config.pollMs ?? POLL_MS,
    signsAlone: true,
    paysMany: PAYMENTS_MAX,
    asksNode: true,
    ready: async () => void (await chain.horizon.root()),

    // Withdrawals.
    review: () => ({ verdict: 'PASS' }),
    refusesDestination: (address) => refusesDestination(chain, address),
    estimateFee: (asset, destination) => estimateFee(chain, asset, destination),
    sign: (tx, withdrawals) => sign(tx, chain, withdrawals),
    broadcast: (withdrawals) => broadcast(chain, withdrawals),
    checkStatus: (withdrawals) => checkStatus(db, chain, withdrawals),
    usedBy: (withdrawal, what) => usedBy(db, chain, withdrawal, what),
    ...(signer !== undefined && {
      checkWithSigner: checkBy(signer, NETWORK),
      async askSigner(from, asked) {
        const answers = await askSigner(from, { network: NETWORK, signer, bytes: askedBytes(chain) }, asked)
        return asked.map((one) => answers.get(one)!)
      },
    }),

    // Deposits.
    newDepositAddress: async () => (id) => newAddress(chain, id),
    initialCursor: (cursor) => initialCursor(chain, cursor),
    scanDeposits: (cursor) => scanDeposits(db, chain, cursor),
    scanBlocks: (first, last) => scanBlocks(db, chain, first, last),
    verifyDeposits: (found) => verifyDeposits(db, chain, found),

    // Operators.
    status: () => status(chain),
    refill: async () => ({ to: chain.address }),
    readHash: (text) => (/^[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined),
    claimTransaction: (_db, withdrawal, hash) => claimTransaction(chain, withdrawal, hash),
    movedBy: (tx, hash) => movedBy(tx, chain, hash),
    resend: (ended) => resend(chain, ended),
  }
}

/** How far a Horizon is. */
export async function lookAt(horizon: Horizon): Promise<NodeLook> {
  const { history_latest_ledger: height, closedAt } = await horizon.root()
  return { height, madeAt: Number(closedAt) }
}

/** What the hot wallet holds, its reserve included, and the channel accounts, whose reserve it may have paid. */
async function status(chain: StellarChain): Promise<NetworkStatus> {
  const { history_latest_ledger: height } = await chain.horizon.root()
  const nodes = [{ field: 'rpc_url', node: chain.horizon }, ...(secondOf(chain)?.nodes ?? [])]
  const behind = await behindOf(chain.mode, nodes, lookAt)
  const [wallet, ...channels] = await Promise.all(
    ownAccounts(chain).map((account) => findAccount(chain, account)),
  )
  const amounts = (accounts: (typeof wallet)[]) =>
    Object.fromEntries(
      [...chain.assets].map(([symbol, asset]) => {
        const held = accounts.map((account) =>
          stroops((account && balanceOf(account, asset)?.balance) ?? '0'),
        )
        return [symbol, decimalOf(held.reduce((sum, units) => sum + units, 0n))]
      }),
    )
  return { height, ...behind, held: amounts([wallet, ...channels]), hotWallet: amounts([wallet]) }
}
