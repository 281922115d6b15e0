import { randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import { isAddress, type Address } from '@solana/addresses'
import { connectionLost, type Database } from '../../src/db/database.ts'
import { RecordFailure } from '../../src/db/each-alone.ts'
import { selectPayees } from '../../src/networks/network-transactions.ts'
import type { DepositScan, FoundDeposit } from '../../src/networks/found-deposits.ts'
import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'
import { readAccounts, tokenAccountOf, type Accounts } from './accounts.ts'
import { addressAnswerer } from './asked-addresses.ts'
import { GAS_ASSET, NETWORK, offChain, onChain, type Facts, type SolanaChain } from './chain.ts'
import {
  accountOf,
  fillAccounts,
  keepRead,
  selectNext,
  selectStale,
  type DepositAccount,
  type ReadUpTo,
} from './deposit-accounts.ts'
import { madeTransaction, signaturePage, type MadeTransaction, type TouchingSignature } from './node.ts'
import { parse } from './transaction.ts'

/**
 * Reads deposit addresses. The balances of many accounts are one call, so a round looks at those first, and reads the
 * transactions of accounts that have changed. What an account held before and its transactions must add up to what it holds: a
 * node that lags or leaves one out is found out, and the account is read again.
 */

/** Most accounts whose balances one round looks at: 40 calls, of which four are under way at a time. */
const LOOKED_MAX = 4_000
const LOOKED_BY_ONE = 1_000
/** Most accounts whose transactions one round reads because they are stale, and because their balances have changed. */
const STALE_MAX = 50
const CHANGED_MAX = 100
/** Accounts that are read in each round though nothing has changed: a deposit and a sweep of the same amount show in no balance. */
const UNCHANGED_READ = 1
/** Most transactions of an account that one round reads, and most pages of 1,000 signatures: anybody can send many to one. */
const TRANSACTIONS_MAX = 50
const PAGES_MAX = 10
/**
 * Most signatures of an account that are kept before they are read: the oldest. Where there are more, the cursor moves past these, so
 * that what a round has read of a flood stays read when another worker goes on, or the node fails.
 */
const LISTED_MAX = TRANSACTIONS_MAX
/** Accounts that are read at a time, and transactions of each: hosted nodes allow few calls a second. */
const AT_ONCE = 4

/** What is known of an account's transactions after its cursor, until they explain its balance. */
interface Unexplained {
  /** The cursor. */
  after: string | null
  /** The newest first. */
  listed: TouchingSignature[]
  /** The list reaches down to the cursor. */
  isWhole: boolean
  /** Newer ones were left out. */
  isCut: boolean
  /** By signature, what those that were read have changed. */
  known: Map<string, bigint>
}

interface Reading extends ReadUpTo {
  found: FoundDeposit[]
  /** There is more to read. */
  isBehind: boolean
  /** Why it was not read, or not to the end; a text where no lag of a node explains it, so that a person should know. */
  complaint: unknown
}

const isCursor = (cursor: string | null): cursor is string => /^solana:\d+:[0-9a-f]+$/.test(cursor ?? '')

/** The newest finalized slot. */
export const newestSlot = (chain: SolanaChain): Promise<string> =>
  chain.rpc.call<string>('getSlot', { commitment: 'finalized' })

/**
 * The network's cursor: the slot of the last round, and a number of its own, by which a reader knows that its last round was
 * recorded. Where reading goes on is kept for each account, and a new address has nothing before it.
 */
const newCursor = async (chain: SolanaChain) =>
  `solana:${await newestSlot(chain)}:${randomBytes(8).toString('hex')}`

/** Where the first scan begins: now, unless the cursor is one of this network already. */
export const initialCursor = async (chain: SolanaChain, cursor: string | null): Promise<string | undefined> =>
  isCursor(cursor) ? undefined : newCursor(chain)

/** Makes a reader. It remembers which accounts it looks at next. */
export function depositReader(db: Database, chain: SolanaChain) {
  const unexplained = new Map<string, Unexplained>()
  const answer = chain.depositKeys && addressAnswerer(db, chain.depositKeys)
  let last: string | undefined
  let filled: Facts['tokens'] | undefined
  let next = ''
  // Each process begins somewhere else, so that frequent restarts leave no account out.
  let nextUnchanged: string = base58.encode(randomBytes(32))

  /** The accounts of this round, once each, and the balances of all of them. */
  async function look(tokens: Facts['tokens']) {
    const page = await selectNext(db, tokens, next, LOOKED_MAX)
    const unchanged = await selectNext(db, tokens, nextUnchanged, UNCHANGED_READ)
    nextUnchanged = unchanged.at(-1)?.account ?? ''
    const stale = await selectStale(db, tokens, STALE_MAX)
    const balances = await balancesOf(chain, addressesOf([...page, ...unchanged, ...stale]))
    const changed = page.filter((account) => account.stale_at === null && hasChanged(account, balances))
    next = changed[CHANGED_MAX - 1]?.account ?? (page.length < LOOKED_MAX ? '' : page.at(-1)!.account)
    const chosen = [...stale, ...changed.slice(0, CHANGED_MAX), ...unchanged]
    const due = [...new Map(chosen.map((account) => [account.account, account])).values()]
    return { balances, due, isMore: changed.length > CHANGED_MAX }
  }

  return {
    async scanDeposits(cursor: string | null): Promise<DepositScan> {
      await answer?.()
      const { tokens } = await chain.facts()
      // What the last round found was not recorded, or another worker has read since.
      if (cursor !== last) unexplained.clear()
      last = await newCursor(chain)
      if (!isCursor(cursor)) return { cursor: last, found: [] }
      let isBehind = false
      if (filled !== tokens) {
        isBehind = await fillAccounts(db, tokens)
        if (!isBehind) filled = tokens
      }
      const { balances, due, isMore } = await look(tokens)
      const readings: Reading[] = []
      const failed: Error[] = []
      let failure: NodeFailure | undefined
      const complain = (account: DepositAccount, error: unknown) => {
        // A node that does not answer ends the round, and what was read until then is recorded.
        if (error instanceof NodeFailure && !(error instanceof NodeRefusal)) failure = error
        else
          failed.push(new RecordFailure(`account ${account.account} of ${NETWORK} (${account.asset})`, error))
      }
      await inGroups(due, AT_ONCE, async (account) => {
        if (failure !== undefined) return
        try {
          const reading = await readAccount(chain, db, unexplained, account, {
            held: unitsIn(account, balances),
            slot: balances.slotOf(account.account),
          })
          readings.push(reading)
          if (reading.complaint !== undefined) complain(account, reading.complaint)
        } catch (error) {
          if (connectionLost(error)) throw error
          // What was read of it is recorded by nobody: all of it is read again.
          unexplained.delete(account.account)
          complain(account, error)
        }
      })
      if (failure !== undefined) {
        failed.push(failure)
        chain.markStale()
      }
      return {
        cursor: last,
        found: readings.flatMap(({ found }) => found),
        isBehind: isBehind || isMore || readings.some((reading) => reading.isBehind),
        keep: (tx) => keepRead(tx, readings),
        failed,
      }
    },
  }
}

/** The accounts of these rows. One that somebody has changed to what is no address is left out: the node would refuse all. */
export const addressesOf = (rows: readonly Pick<DepositAccount, 'account'>[]): Address[] =>
  rows.flatMap(({ account }) => (isAddress(account) ? [account] : []))

/** Balances of many accounts, some of which are read at a time. */
async function balancesOf({ rpc }: SolanaChain, accounts: readonly Address[]): Promise<Balances> {
  const starts = Array.from(
    { length: Math.ceil(accounts.length / LOOKED_BY_ONE) },
    (_, index) => index * LOOKED_BY_ONE,
  )
  const parts = await Promise.all(
    starts.map((start) => readAccounts(rpc, accounts.slice(start, start + LOOKED_BY_ONE))),
  )
  const partOf = new Map(
    accounts.map((account, index) => [account, parts[Math.floor(index / LOOKED_BY_ONE)]!]),
  )
  return {
    get: (account) => partOf.get(account)?.get(account),
    slotOf: (account) => partOf.get(account)?.slotOf(account) ?? 0n,
  }
}

type Balances = Pick<Accounts, 'get' | 'slotOf'>

const hasChanged = (account: DepositAccount, balances: Balances) =>
  unitsIn(account, balances) !== onChain(account.asset, account.balance)

/** What an account holds, in units of the chain. */
export const unitsIn = (
  { account, asset }: Pick<DepositAccount, 'account' | 'asset'>,
  accounts: Pick<Accounts, 'get'>,
) =>
  (asset === GAS_ASSET ? accounts.get(account)?.lamports : tokenAccountOf(accounts.get(account))?.units) ?? 0n

/** Does some work for each, a few at a time. */
async function inGroups<T>(
  items: readonly T[],
  size: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < items.length; start += size)
    await Promise.all(items.slice(start, start + size).map(work))
}

/**
 * Reads the next transactions of an account, which held this in that slot. Its cursor moves once those up to there add up to it:
 * until then they are listed again from there on, so that nothing is lost which the node lists later. A deposit may be found
 * again.
 */
async function readAccount(
  chain: SolanaChain,
  db: Database,
  unexplained: Map<string, Unexplained>,
  recorded: DepositAccount,
  { held, slot: readAt }: { held: bigint; slot: bigint },
): Promise<Reading> {
  const { customer_id, address, asset, account, stale_at, signature } = recorded
  const { tokens } = await chain.facts()
  // Somebody with the database role could name an account where others are paid.
  if (accountOf(tokens, address, asset) !== account)
    throw new Error('it was changed in the database, or the node has another mint')
  const state = await listMore(chain, unexplained, recorded)
  // Later ones are read in the next round.
  const listed = state.isCut ? state.listed : state.listed.filter(({ slot }) => BigInt(slot) <= readAt)
  const unread = state.isWhole
    ? listed.filter(({ signature: hash, err }) => err === null && !state.known.has(hash))
    : []
  const { found, read, failure } = await readUnread(chain, db, state, recorded, unread)
  const before = onChain(asset, recorded.balance)
  const reading = {
    ...{ customer_id, address, asset, signature, stale_at, found, units: before },
    ...{ isDone: false, hasMoved: read > 0, isBehind: false, complaint: undefined },
  }
  if (!state.isWhole || read < unread.length) {
    const unshown =
      recorded.is_late && state.isWhole && read === 0
        ? `the node lists its transaction ${unread.at(-1)!.signature}, and does not show it`
        : undefined
    return { ...reading, isBehind: read > 0 || !state.isWhole, complaint: failure ?? unshown }
  }
  const units = listed.reduce((sum, { signature: hash }) => sum + (state.known.get(hash) ?? 0n), before)
  const newest = listed[0]?.signature ?? signature
  if (state.isCut) {
    unexplained.delete(account)
    return { ...reading, signature: newest, units: least0(units), isBehind: true }
  }
  // Nothing new was listed for a while. What is there counts as held, and a person is told.
  const isGivenUp = units !== held && recorded.is_late && read === 0
  if (units === held || isGivenUp) {
    unexplained.delete(account)
    // What made it stale may be among the later ones.
    const isDone = stale_at === null || listed.length === state.listed.length
    const complaint = isGivenUp ? UNEXPLAINED : undefined
    return { ...reading, signature: newest, units: held, isDone, complaint }
  }
  Object.assign(state, { listed: [], isWhole: false })
  return reading
}

/** Reads the oldest of these transactions of an account, and keeps by how much each changed it. */
async function readUnread(
  chain: SolanaChain,
  db: Database,
  { known }: Unexplained,
  { address, asset, account }: DepositAccount,
  unread: Unexplained['listed'],
) {
  const { tokens } = await chain.facts()
  const found: FoundDeposit[] = []
  let read = 0
  let failure: NodeFailure | undefined
  await inGroups(unread.slice(-TRANSACTIONS_MAX).reverse(), AT_ONCE, async ({ signature: hash }) => {
    const made = await madeTransaction(chain.rpc, hash).catch((error: unknown) => {
      if (!(error instanceof NodeFailure)) throw error
      failure ??= error
    })
    // The node lists it, and does not show it yet.
    if (made === undefined) return
    const change = changeIn(chain, tokens, made, { hash, address, asset, account })
    if (await isDeposit(db, change)) found.push(change.deposit)
    known.set(hash, change.units)
    read += 1
  })
  return { found, read, failure }
}

const least0 = (units: bigint) => (units < 0n ? 0n : units)

const UNEXPLAINED =
  'the node lists no transactions that explain its balance: bursar deposits rescan reads the blocks where they may be'

/** Lists further transactions of an account after its cursor. */
async function listMore(
  { rpc }: SolanaChain,
  unexplained: Map<string, Unexplained>,
  { account, signature }: DepositAccount,
): Promise<Unexplained> {
  const known = unexplained.get(account)
  const state: Unexplained =
    known?.after === signature
      ? known
      : { after: signature, listed: [], isWhole: false, isCut: false, known: new Map() }
  unexplained.set(account, state)
  for (let page = 0; page < PAGES_MAX && !state.isWhole; page++) {
    const page = await signaturePage(rpc, account, signature, state.listed.at(-1)?.signature)
    const listed = [...state.listed, ...page]
    // A node may give fewer than were asked for: only an empty page is the last one.
    Object.assign(state, { isWhole: page.length === 0, isCut: state.isCut || listed.length > LISTED_MAX })
    state.listed = listed.slice(-LISTED_MAX)
  }
  return state
}

/** What a transaction has changed at a deposit address. */
interface Change {
  /** In units of the chain; negative where it was swept. */
  units: bigint
  /** The hot wallet has signed it: a deposit only where it pays a withdrawal. Otherwise it was in custody before. */
  isOwn: boolean
  deposit: FoundDeposit
}

export async function isDeposit(db: Database, { units, isOwn, deposit }: Change): Promise<boolean> {
  const { crypto_tx_hash: hash } = deposit
  return units > 0n && (!isOwn || (await selectPayees(db, NETWORK, [hash])).has(hash))
}

/**
 * What a finalized transaction has changed at an address, by the balances before and after it: several payments to one account
 * are one deposit, and a token's fee is not part of it. The index is the account's among those of the transaction. Throws an
 * Error where the bytes are not those of the transaction.
 */
export function changeIn(
  { hotWallet }: Pick<SolanaChain, 'hotWallet'>,
  tokens: Facts['tokens'],
  made: MadeTransaction,
  { hash, address, asset, account }: { hash: string } & Pick<DepositAccount, 'address' | 'asset' | 'account'>,
): Change {
  const shown = parse(made.raw)
  if (shown.hash !== hash || !shown.isSigned)
    throw new Error(`the node's answer for ${hash} is not signed as ${hash}`)
  const index = [...shown.accounts, ...made.loaded].findIndex((address) => address === account)
  const units = made.err === null && index >= 0 ? unitsAt(made, index, tokens.get(asset)?.mint) : 0n
  return {
    units,
    isOwn: shown.signers.includes(hotWallet.address),
    deposit: {
      ...{ address, asset, amount: offChain(asset, units > 0n ? units : 0n) },
      crypto_tx_hash: hash,
      crypto_tx_index: String(index),
      // A finalized slot is never dropped: its number says which one it is.
      block: { number: BigInt(made.slot), hash: `slot ${made.slot}` },
    },
  }
}

/** By how much a transaction has changed its account with this index: lamports, or units of a mint. */
function unitsAt(made: MadeTransaction, index: number, mint: string | undefined): bigint {
  if (mint === undefined) return BigInt(made.after[index] ?? 0) - BigInt(made.before[index] ?? 0)
  const sum = (balances: MadeTransaction['tokensAfter']) =>
    balances
      .filter((balance) => Number(balance.accountIndex) === index && balance.mint === mint)
      .reduce((total, { uiTokenAmount }) => total + BigInt(uiTokenAmount.amount), 0n)
  return sum(made.tokensAfter) - sum(made.tokensBefore)
}
