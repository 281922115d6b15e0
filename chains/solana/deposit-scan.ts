import type { Address } from '@solana/addresses'
import type { Database, Queryable } from '../../src/db/database.ts'
import { selectPayees } from '../../src/networks/network-transactions.ts'
import type { DepositScan, FoundDeposit } from '../../src/networks/found-deposits.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { addressAnswerer } from './asked-addresses.ts'
import { GAS_ASSET, NETWORK, offChain, type Facts, type SolanaChain } from './chain.ts'
import { keepHeld, placesAmong, readStale, type Held, type Place } from './deposit-accounts.ts'
import { blocksAfter, type Balances, type MadeTransaction } from './node.ts'
import { parseSigned } from './transaction.ts'
import { walletsOf } from './lanes.ts'

/**
 * Reads the finalized blocks one after the other, and in them what deposit addresses have got: what that costs does not grow with
 * the number of addresses, nor with what strangers send. Each block names the one before it, so that a node which leaves one
 * out is found out.
 */

/** Most blocks of one round. The network makes 2.5 a second. */
const BLOCKS_MAX = 50

/** The cursor is the slot of the last block that was read. */
const cursorAt = (slot: string | bigint) => `solana:${slot}`
const slotIn = (cursor: string | null): bigint | undefined => {
  const [, slot] = /^solana:(\d+)(?::[0-9a-f]+)?$/.exec(cursor ?? '') ?? []
  return slot === undefined ? undefined : BigInt(slot)
}

/** The newest finalized slot. */
export const newestSlot = (chain: SolanaChain): Promise<string> =>
  chain.rpc.call<string>('getSlot', { commitment: 'finalized' })

/** Where the first scan begins: now, unless the cursor is one of this network already. */
export const initialCursor = async (chain: SolanaChain, cursor: string | null): Promise<string | undefined> =>
  slotIn(cursor) === undefined ? cursorAt(await newestSlot(chain)) : undefined

/** Makes a reader, which also answers who asks for addresses. */
export function depositReader(db: Database, chain: SolanaChain) {
  const answer = chain.depositKeys && addressAnswerer(db, chain.depositKeys)
  return async (cursor: string | null): Promise<DepositScan> => {
    await answer?.()
    const { tokens } = await chain.facts()
    const slot = slotIn(cursor)
    if (slot === undefined) return { cursor: cursorAt(await newestSlot(chain)), found: [] }
    const moves: PlacedMove[] = []
    let [last, count] = [String(slot), 0]
    try {
      for await (const { slot: read, transactions } of blocksAfter(chain.rpc, slot, BLOCKS_MAX)) {
        moves.push(...(await movesAt(db, chain, tokens, transactions)))
        last = read
        count += 1
      }
    } catch (error) {
      // What was read until then counts, and the next round says why.
      if (!(error instanceof NodeFailure) || count === 0) throw error
    }
    const stale = await readStale(db, chain, tokens)
    // Of several in these blocks, the last one counts.
    const held = new Map<string, Held>()
    for (const { place, after } of moves)
      held.set(`${place.address} ${place.asset}`, { ...place, units: after })
    return {
      cursor: cursorAt(last),
      found: await depositsAmong(db, moves),
      isBehind: count === BLOCKS_MAX,
      keep: async (tx) => {
        await keepHeld(tx, stale)
        await keepHeld(tx, [...held.values()])
      },
    }
  }
}

/** What a transaction has changed at an account. */
interface Move {
  account: Address
  /** The account itself for SOL; of a token, the wallet that owns the account. */
  owner: Address
  asset: string
  /** In units of the chain. */
  before: bigint
  after: bigint
  hash: string
  /** The account's among those of the transaction. */
  index: string
  slot: string
  /** The hot wallet has signed it: a deposit only where it pays a withdrawal. Otherwise it was in custody before. */
  isOwn: boolean
}

/** The balances of a transaction that was asked for alone. Throws an Error where its bytes are not signed. */
export function balancesOf(made: MadeTransaction, hash: string): Balances {
  const shown = parseSigned(made.raw, hash)
  return {
    ...made,
    hash,
    signers: shown.signers,
    accounts: [...shown.accounts, ...(made.loaded as Address[])],
  }
}

/**
 * What a finalized transaction has changed, by the balances before and after it: several payments to one account are one change,
 * and a token's fee is not part of it.
 */
export function movesIn(
  chain: Pick<SolanaChain, 'hotWallet' | 'formerWallets'>,
  tokens: Facts['tokens'],
  made: Balances,
): Move[] {
  if (made.err !== null) return []
  const { hash, accounts, signers } = made
  const common = { hash, slot: made.slot, isOwn: walletsOf(chain).some((wallet) => signers.includes(wallet)) }
  const native = made.after.flatMap((after, index): Move[] => {
    const before = made.before[index] ?? '0'
    const account = accounts[index]!
    const move = { ...common, account, owner: account, asset: GAS_ASSET, index: String(index) }
    return after === before ? [] : [{ ...move, before: BigInt(before), after: BigInt(after) }]
  })
  const assets = new Map([...tokens].map(([asset, { mint }]) => [mint as string, asset]))
  const ofTokens = new Map<string, Move>()
  for (const [side, balances] of [
    ['before', made.tokensBefore],
    ['after', made.tokensAfter],
  ] as const)
    for (const { accountIndex: index, mint, owner, uiTokenAmount } of balances) {
      const [account, asset] = [accounts[Number(index)], assets.get(mint)]
      if (account === undefined || asset === undefined || owner === undefined) continue
      const none = { ...common, account, owner: owner as Address, asset, index, before: 0n, after: 0n }
      const move = ofTokens.get(index) ?? none
      ofTokens.set(index, { ...move, [side]: BigInt(uiTokenAmount.amount) })
    }
  return [...native, ...[...ofTokens.values()].filter(({ before, after }) => before !== after)]
}

/** A change at a deposit address. */
export type PlacedMove = Move & { place: Place }

/** What transactions have changed at deposit addresses: what has come in, and what the hot wallet has moved. */
export async function movesAt(
  db: Queryable,
  chain: SolanaChain,
  tokens: Facts['tokens'],
  transactions: readonly Balances[],
): Promise<PlacedMove[]> {
  const moves = transactions
    .flatMap((made) => movesIn(chain, tokens, made))
    .filter(({ before, after, isOwn }) => isOwn || after > before)
  const places = await placesAmong(db, tokens, moves)
  return moves.flatMap((move) => {
    const place = places.get(`${move.account} ${move.asset}`)
    return place === undefined ? [] : [{ ...move, place }]
  })
}

/** The deposits among these changes. */
export async function depositsAmong(db: Queryable, moves: readonly PlacedMove[]): Promise<FoundDeposit[]> {
  const risen = moves.filter(({ before, after }) => after > before)
  const own = risen.filter(({ isOwn }) => isOwn).map(({ hash }) => hash)
  const payees = own.length === 0 ? new Map<string, unknown>() : await selectPayees(db, NETWORK, own)
  return risen.filter(({ isOwn, hash }) => !isOwn || payees.has(hash)).map(depositOf)
}

const depositOf = ({ place, asset, before, after, hash, index, slot }: PlacedMove): FoundDeposit => ({
  ...{ address: place.address, asset, amount: offChain(asset, after - before) },
  crypto_tx_hash: hash,
  crypto_tx_index: index,
  // A finalized slot is never dropped: its number says which one it is.
  block: { number: BigInt(slot), hash: `slot ${slot}` },
})
