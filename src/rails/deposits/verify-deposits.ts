import { originOfLoop } from '../../contract/actor.ts'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { freeze } from '../../money/records/freezes.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { RailsContext } from '../context.ts'
import {
  forget,
  foundDepositOf,
  type DepositWaitingReason,
  type IncomingTransfer,
  type Sifted,
  type Waiting,
} from './incoming-transfers.ts'
import type { WeighedDeposit } from './confirmations-needed.ts'

const LOOP = originOfLoop('deposits')

/** Keeps coins back that the wallet never spends: their owner would withdraw others. Forgets what a person has returned. */
export async function withoutTokens(
  db: Database,
  adapter: NetworkAdapter,
  due: IncomingTransfer[],
): Promise<Sifted> {
  const coins = due.length === 0 ? undefined : await adapter.tokenCoins?.(due.map(foundDepositOf))
  if (coins === undefined) return { pass: due, wait: [] }
  const detail = 'the coin has tokens on it, and the hot wallet spends none of those: return it'
  for (const [index, incoming] of due.entries()) if (coins[index] === 'SPENT') await forget(db, incoming)
  const held = due.filter((_, index) => coins[index] === 'HELD')
  return {
    pass: due.filter((_, index) => coins[index] === undefined),
    wait: held.map((incoming) => ({ incoming, reason: 'HAS_TOKENS', detail })),
  }
}

/** Verifies found deposits against their receipts and a second node. Where two nodes disagree, payouts over the network stop. */
export async function verified(
  { db, settings }: Pick<RailsContext, 'db' | 'settings'>,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  due: WeighedDeposit[],
): Promise<Sifted> {
  if (adapter.verifyDeposits === undefined) return { pass: due, wait: [] }
  // A sandbox's deposit from a time when the network was simulated has no block, and no node knows it.
  const isOnChain = ({ block_number }: IncomingTransfer) => block_number !== null || settings.mode === 'live'
  const onChain = due.filter(isOnChain)
  const verdicts = await adapter.verifyDeposits(
    onChain.map(({ needsSecondNode, ...deposit }) => ({
      ...foundDepositOf(deposit),
      ...(needsSecondNode && { needsSecondNode }),
    })),
  )
  const pass: IncomingTransfer[] = due.filter((deposit) => !isOnChain(deposit))
  const wait: Waiting[] = []
  for (const [index, incoming] of onChain.entries()) {
    const verdict = verdicts[index]!
    if (verdict.verdict === 'AGREES') {
      pass.push(incoming)
      continue
    }
    const { detail } = verdict
    let reason: DepositWaitingReason = 'NODES_DISAGREE'
    if (verdict.verdict === 'DISAGREES')
      await freeze(db, LOOP, { kind: 'NETWORK', network }, 'NODES_DISAGREE', detail)
    else reason = verdict.secondNode === true ? 'SECOND_NODE' : 'FAILED'
    wait.push({ incoming, reason, detail })
  }
  return { pass, wait }
}
