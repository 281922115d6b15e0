import type { Address } from '@solana/addresses'
import type { Database } from '../../src/db/database.ts'
import type { DepositVerdict, FoundDeposit } from '../../src/networks/found-deposits.ts'
import { onceForEach } from '../kit/once-for-each.ts'
import { larger } from '../kit/units.ts'
import { verdictOf, wordOf, type SecondWord } from '../kit/second-word.ts'
import { offChain, onChain, type Facts, type SolanaChain } from './chain.ts'
import { accountOf } from './deposit-accounts.ts'
import { balancesOf, depositsAmong, movesAt, movesIn, newestSlot } from './deposit-scan.ts'
import { blockAt, finalizedSlots, madeTransaction, type MadeTransaction, type SolanaRpc } from './node.ts'

/** Checks found deposits against another node, and reads blocks again for an operator. */

/** Deposits that are checked at a time. */
const AT_ONCE = 8

/**
 * Verifies each found deposit: second nodes must have the same transaction, finalized, with the same change of the same
 * account. Without a second node, the first one is asked again.
 */
export async function verifyDeposits(
  chain: SolanaChain,
  found: readonly FoundDeposit[],
): Promise<DepositVerdict[]> {
  const { tokens } = await chain.facts()
  const show = onceForEach(
    ({ field, hash }: Asked) => `${field} ${hash}`,
    ({ node, hash }) => madeTransaction(node, hash),
  )
  const verdicts: DepositVerdict[] = []
  for (let start = 0; start < found.length; start += AT_ONCE)
    verdicts.push(
      ...(await Promise.all(
        found.slice(start, start + AT_ONCE).map((deposit) => verdictOn(chain, tokens, show, deposit)),
      )),
    )
  return verdicts
}

/** A node, by the field that names it, and what it is asked about. */
interface Asked {
  node: SolanaRpc
  field: string
  hash: string
}

async function verdictOn(
  chain: SolanaChain,
  tokens: Facts['tokens'],
  show: (asked: Asked) => Promise<MadeTransaction | undefined>,
  deposit: FoundDeposit,
): Promise<DepositVerdict> {
  const { crypto_tx_hash: hash, asset, amount } = deposit
  const ask = async (node: SolanaRpc, field = ''): Promise<SecondWord> => {
    const made = await show({ node, field, hash })
    if (made === undefined) return { waits: `has no finalized transaction ${hash}` }
    const address = deposit.address as Address
    const account = accountOf(tokens, address, asset)
    if (account === undefined) return { waits: `has no mint of ${asset}` }
    const moves = movesIn(chain, tokens, balancesOf(made, hash))
    const move = moves.find((one) => one.account === account && one.asset === asset)
    const units = move === undefined ? 0n : move.after - move.before
    if (move?.index === deposit.crypto_tx_index && units === onChain(asset, amount)) return undefined
    const brought = offChain(asset, larger(units, 0n))
    return { differs: `says that ${hash} has brought ${brought} ${asset} to ${address}, and not ${amount}` }
  }
  if (chain.second !== undefined) return verdictOf(await wordOf(chain.second, ask))
  const word = await ask(chain.rpc)
  if (word === undefined) return { verdict: 'AGREES' }
  return { verdict: 'WAITS', detail: `the node ${word.waits ?? word.differs}` }
}

/**
 * The deposits in these slots, of any address, for an operator. Throws an Error when the last slot is not finalized.
 */
export async function scanBlocks(
  db: Database,
  chain: SolanaChain,
  first: bigint,
  last: bigint,
): Promise<FoundDeposit[]> {
  const { tokens } = await chain.facts()
  if (last > BigInt(await newestSlot(chain))) throw new Error(`slot ${last} is not finalized yet`)
  const found: FoundDeposit[] = []
  for (const slot of await finalizedSlots(chain.rpc, first, last)) {
    const { transactions } = await blockAt(chain.rpc, slot)
    found.push(...(await depositsAmong(db, await movesAt(db, chain, tokens, transactions))))
  }
  return found
}
