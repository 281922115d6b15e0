import type { Address } from '@solana/addresses'
import type { Database } from '../../src/db/database.ts'
import type { DepositVerdict, FoundDeposit } from '../../src/networks/found-deposits.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import type { Facts, SolanaChain } from './chain.ts'
import { accountOf, accountsAmong } from './deposit-accounts.ts'
import { changeIn, isDeposit, newestSlot } from './deposit-scan.ts'
import { blockAt, finalizedSlots, madeTransaction, type MadeTransaction } from './node.ts'
import { parse } from './transaction.ts'

/** Checks found deposits against another node, and reads blocks again for an operator. */

/** Deposits that are checked at a time. */
const AT_ONCE = 8

/**
 * Verifies each found deposit: the second node must have the same transaction, finalized, with the same change of the same
 * account. Without a second node, the first one is asked again.
 */
export async function verifyDeposits(
  chain: SolanaChain,
  found: readonly FoundDeposit[],
): Promise<DepositVerdict[]> {
  const { tokens } = await chain.facts()
  // A transaction that pays many is asked for once.
  const asked = new Map<string, Promise<MadeTransaction | undefined>>()
  const verdicts: DepositVerdict[] = []
  for (let start = 0; start < found.length; start += AT_ONCE)
    verdicts.push(
      ...(await Promise.all(
        found.slice(start, start + AT_ONCE).map((deposit) => verdictOn(chain, tokens, asked, deposit)),
      )),
    )
  return verdicts
}

async function verdictOn(
  chain: SolanaChain,
  tokens: Facts['tokens'],
  asked: Map<string, Promise<MadeTransaction | undefined>>,
  deposit: FoundDeposit,
): Promise<DepositVerdict> {
  const { crypto_tx_hash: hash, asset, amount } = deposit
  const { second } = chain
  const waits = (why: string): DepositVerdict => ({
    verdict: 'WAITS',
    detail: `the ${second === undefined ? '' : 'second '}node ${why}`,
    ...(second !== undefined && { secondNode: true as const }),
  })
  const question = asked.get(hash) ?? madeTransaction(second ?? chain.rpc, hash)
  asked.set(hash, question)
  let made: MadeTransaction | undefined
  try {
    made = await question
  } catch (error) {
    if (!(error instanceof NodeFailure) || second === undefined) throw error
    return waits(`cannot tell: ${error.message}`)
  }
  if (made === undefined) return waits(`has no finalized transaction ${hash}`)
  const address = deposit.address as Address
  const account = accountOf(tokens, address, asset)
  if (account === undefined) return waits(`has no mint of ${asset}`)
  const there = changeIn(chain, tokens, made, { hash, address, asset, account }).deposit
  const isSame = there.crypto_tx_index === deposit.crypto_tx_index && there.amount === amount
  if (isSame) return { verdict: 'AGREES' }
  const says = `says that ${hash} has brought ${there.amount} ${asset} to ${address}, and not ${amount}`
  return second === undefined ? waits(says) : { verdict: 'DISAGREES', detail: `the second node ${says}` }
}

/**
 * The deposits in these slots, of any address: for an operator, where the node has left out a transaction of an account. Throws
 * an Error when the last slot is not finalized.
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
    const arrivals = (await blockAt(chain.rpc, slot)).flatMap((made) => {
      if (made.err !== null) return []
      const { accounts, hash } = parse(made.raw)
      return [{ made, hash, risen: risenIn(made, [...accounts, ...made.loaded]) }]
    })
    const own = await accountsAmong(
      db,
      arrivals.flatMap(({ risen }) => risen),
    )
    for (const { made, hash, risen } of arrivals)
      for (const place of risen.flatMap((account) => own.get(account) ?? [])) {
        if (accountOf(tokens, place.address, place.asset) !== place.account) continue
        const change = changeIn(chain, tokens, made, { hash, ...place })
        if (await isDeposit(db, change)) found.push(change.deposit)
      }
  }
  return found
}

/** The accounts with a balance of lamports or of a token that is higher after a transaction. */
function risenIn(made: MadeTransaction, accounts: readonly string[]): string[] {
  const before = new Map(
    made.tokensBefore.map(({ accountIndex, uiTokenAmount }) => [accountIndex, uiTokenAmount.amount]),
  )
  const ofTokens = made.tokensAfter.flatMap(({ accountIndex, uiTokenAmount }) =>
    BigInt(uiTokenAmount.amount) > BigInt(before.get(accountIndex) ?? 0) ? accountIndex : [],
  )
  const indexes = new Set(ofTokens.map(Number))
  for (const [index, lamports] of made.after.entries())
    if (BigInt(lamports) > BigInt(made.before[index] ?? 0)) indexes.add(index)
  return [...indexes].flatMap((index) => accounts[index] ?? [])
}
