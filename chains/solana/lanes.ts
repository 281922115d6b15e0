import type { Address } from '@solana/addresses'
import type { Queryable, Transaction } from '../../src/db/database.ts'
import { arraysOf } from '../../src/db/rows.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { unknownSpends, unrecordedAmong } from '../kit/unknown-spends.ts'
import { nonceOf, type Accounts } from './accounts.ts'
import { NETWORK, type SolanaChain } from './chain.ts'
import { addressWithSeed } from './instructions.ts'
import { madeTransactions, noncesLeftIn, signaturesOf, statusesOf, type TouchingSignature } from './node.ts'
import { parse, type ParsedPayment } from './transaction.ts'

/**
 * Each payment takes a lane: a nonce account of the hot wallet, whose value its transaction uses up. A lane has one
 * transaction at a time. A transaction that this database does not know stops all lanes, because it may have paid any
 * withdrawal: one that is signed on another lane would be paid twice.
 */

/** Most lanes: they are read together with the hot wallet's own accounts, at one slot. */
const LANES_MAX = 64

type OfWallet = { hotWallet: { address: string } }
type OfWallets = Pick<SolanaChain, 'hotWallet' | 'formerWallets'>

/** The hot wallet, and those that paid before. */
export const walletsOf = ({ hotWallet, formerWallets }: OfWallets): Address[] => [
  hotWallet.address,
  ...formerWallets,
]

/** The accounts that a wallet makes with seeds of this name. */
const accountsOf = (wallet: Address, name: string, count: number) =>
  Array.from({ length: count }, (_, lane) => {
    const seed = `bursar-${name}-${lane}`
    return { wallet, seed, account: addressWithSeed(wallet, seed) }
  })

/**
 * All nonce accounts that the wallets may ever have had, by their addresses alone: they need no keys and no settings. Only those
 * with `signs` are made and used; the others may have been, with a higher `lanes` or by a former wallet.
 */
export const laneAccounts = (chain: OfWallets & Pick<SolanaChain, 'lanes'>) =>
  walletsOf(chain).flatMap((wallet) =>
    accountsOf(wallet, 'nonce', LANES_MAX).map((made, lane) => ({
      ...made,
      signs: wallet === chain.hotWallet.address && lane < chain.lanes,
    })),
  )

/** Lanes for sweeps alone: they delay no withdrawal, and one that is not known stops none, since it can have paid none. */
export const SWEEP_LANES = 24

/** The nonce accounts of sweeps, as `laneAccounts` are those of payments. */
export const sweepAccounts = ({ hotWallet }: OfWallet) =>
  accountsOf(hotWallet.address as Address, 'sweep', SWEEP_LANES)

export const nonceAccounts = (chain: OfWallets & Pick<SolanaChain, 'lanes'>) => [
  ...laneAccounts(chain),
  ...walletsOf(chain).flatMap((wallet) => accountsOf(wallet, 'sweep', SWEEP_LANES)),
]

/** The nonce accounts on record. */
export async function usedLanes(db: Queryable): Promise<Address[]> {
  const { rows } = await db.query<{ nonce_account: Address }>(
    'select nonce_account from solana_lanes order by nonce_account',
  )
  return rows.map(({ nonce_account }) => nonce_account)
}

/** The lanes while one transaction signs. */
export interface OpenLanes {
  /** The lanes that may sign, with the values of their nonces. */
  free: Lane[]
  inFlight: number
  /** Why a lane waits that shows a value which was used before: its node lags. It stops no other. */
  lagging: WaitingReason | undefined
  /** Why nothing may be signed at all. */
  blocked: WaitingReason | undefined
}

/** Pages of 1,000 signatures that are read of a lane at once. */
const PAGES_MAX = 100

interface LaneRow {
  nonce_account: Address
  /** The value that the last known transaction has left: while the account shows it, nobody has used it since. */
  checked_nonce: string | null
  checked_signature: string | null
  /** The value that a payment was signed on last, and the signatures of that payment and its replacements. */
  used_nonce: string | null
  used_by: string[]
  acknowledged: string[]
}

/** A nonce account with its value. */
export interface Lane {
  nonceAccount: Address
  nonce: string
}

type LockedLane = Lane & { row: LaneRow }

/** Those of these accounts that are nonce accounts of their wallets, with their values. */
export const lanesIn = <Named extends { wallet: Address; account: Address }>(
  accounts: Accounts,
  named: readonly Named[],
): (Named & Lane)[] =>
  named.flatMap((lane) => {
    const nonce = nonceOf(accounts.get(lane.account), lane.wallet)
    return nonce === undefined ? [] : [{ ...lane, nonceAccount: lane.account, nonce }]
  })

/**
 * Locks the lanes until the transaction ends, and says which of them may sign. `open` are the payments under way. A lane whose
 * value is the one that its own last payment has left is known: what strangers do with the account, which is to name it or to
 * send it lamports, changes no value and is not looked at.
 */
export async function openLanes(
  tx: Transaction,
  chain: SolanaChain,
  accounts: Accounts,
  open: readonly ParsedPayment[],
): Promise<OpenLanes> {
  const values = lanesIn(accounts, laneAccounts(chain))
  const rows = await lockLanes(
    tx,
    values.map(({ nonceAccount }) => nonceAccount),
  )
  const isInFlight = ({ nonceAccount, nonce }: Lane) =>
    open.some((payment) => payment.nonceAccount === nonceAccount && payment.nonce === nonce)
  const idle = values
    .filter((lane) => !isInFlight(lane))
    .map((lane) => ({ ...lane, row: rows.get(lane.nonceAccount)! }))
  const lanes: OpenLanes = {
    free: [],
    inFlight: values.length - idle.length,
    lagging: undefined,
    blocked: undefined,
  }
  const changed = idle.filter(({ row, nonce }) => row.checked_nonce !== nonce)
  const moved = await movedByOthers(tx, chain, changed)
  const touching = await Promise.all(
    moved.map(({ row }) => signaturesOf(chain.rpc, row.nonce_account, row.checked_signature, PAGES_MAX)),
  )
  for (const [index, { row, nonce }] of moved.entries())
    lanes.blocked ??= await unknownSpend(tx, chain, row, nonce, touching[index])
  for (const { nonceAccount, nonce, signs, row } of idle) {
    const lag = usedBefore(row, nonce)
    lanes.lagging ??= lag
    if (lag === undefined && signs) lanes.free.push({ nonceAccount, nonce })
  }
  return lanes
}

/**
 * Those of the changed lanes whose values their own last transactions have not left. What these have left is recorded: the list of
 * a lane's other transactions begins there.
 */
async function movedByOthers(
  tx: Transaction,
  { rpc }: SolanaChain,
  changed: readonly LockedLane[],
): Promise<LockedLane[]> {
  const own = changed.flatMap(({ row }) => row.used_by)
  const final = [...(own.length === 0 ? [] : await statusesOf(rpc, own))].flatMap(([signature, status]) =>
    status?.confirmationStatus === 'finalized' ? [{ signature, slot: status.slot }] : [],
  )
  const left = await noncesLeftIn(
    rpc,
    final.map(({ slot }) => slot),
  )
  const others: LockedLane[] = []
  for (const lane of changed) {
    const { row } = lane
    const last = final.find(({ signature }) => row.used_by.includes(signature))
    const value = last && left.get(last.slot)
    if (last !== undefined && value !== undefined && row.checked_nonce === row.used_nonce) {
      Object.assign(row, { checked_nonce: value, checked_signature: last.signature })
      await keepChecked(tx, row)
    }
    if (row.checked_nonce !== lane.nonce) others.push(lane)
  }
  return others
}

/** Locks the rows of nonce accounts until the transaction ends. */
export async function lockLanes(
  tx: Transaction,
  accounts: readonly Address[],
): Promise<Map<string, LaneRow>> {
  await tx.query(
    `insert into solana_lanes (network, nonce_account) select $1, account from unnest($2::text[]) as s (account)
     on conflict (network, nonce_account) do nothing`,
    [NETWORK, accounts],
  )
  const { rows } = await tx.query<LaneRow>(
    `
    select nonce_account, checked_nonce, checked_signature, used_nonce, used_by, acknowledged
    from solana_lanes
    where network = $1 and nonce_account = any ($2)
    order by nonce_account
    for update`,
    [NETWORK, accounts],
  )
  return new Map(rows.map((row) => [row.nonce_account, row]))
}

/** Each value of a nonce is given to one payment: a node that lags shows the value of one that is made already. */
const usedBefore = ({ nonce_account, used_nonce }: LaneRow, nonce: string): WaitingReason | undefined =>
  used_nonce === nonce
    ? {
        code: 'NODE_BEHIND',
        detail: `the node shows a value of nonce account ${nonce_account} that a payment was signed with before`,
      }
    : undefined

/** Most transactions of strangers that are looked at in one round of signing. The next round goes on after them. */
const STRANGERS_MAX = 400

/**
 * Why nothing may be signed: a lane was used by a transaction that this database does not know. It may have paid what is
 * about to be paid: a database that was restored from an older backup. Undefined where all are known; that is recorded then.
 */
async function unknownSpend(
  tx: Transaction,
  chain: SolanaChain,
  row: LaneRow,
  nonce: string,
  touching: TouchingSignature[] | undefined,
): Promise<WaitingReason | undefined> {
  const account = row.nonce_account
  if (touching === undefined) return unknownSpends(`more than ${PAGES_MAX},000 transactions of ${account}`, 0)
  // The value has moved, so that the transaction that moved it must be among them.
  if (touching.length === 0)
    return nodeBehind(`the node does not show the transaction that moved nonce account ${account}`)
  // A failed transaction has paid nothing. It has moved the nonce, and its fee is missing in custody.
  const succeeded = touching.flatMap(({ signature, err }) => (err === null ? signature : []))
  const strangers = (await unrecordedAmong(tx, NETWORK, succeeded))
    .filter((signature) => !row.acknowledged.includes(signature))
    .reverse()
  const looked = strangers.slice(0, STRANGERS_MAX)
  const made = await madeTransactions(chain.rpc, looked)
  // Anybody may name the account, and many times; only the wallet's own signature uses it.
  const end = made.findIndex((shown) => shown === undefined || parse(shown.raw).nonceAccount === account)
  const seen = end < 0 ? looked.length : end
  if (seen > 0) await keepChecked(tx, { ...row, checked_signature: looked[seen - 1]! })
  if (end >= 0)
    return made[end] === undefined
      ? nodeBehind(`the node does not show transaction ${looked[end]} of ${account}`)
      : unknownSpends(`${looked[end]} of nonce account ${account}`, 0)
  if (strangers.length > looked.length)
    return nodeBehind(`transactions of strangers with ${account} are looked at`)
  await keepChecked(tx, { ...row, checked_nonce: nonce, checked_signature: touching[0]!.signature })
  return undefined
}

const nodeBehind = (detail: string): WaitingReason => ({ code: 'NODE_BEHIND', detail })

async function keepChecked(tx: Transaction, row: LaneRow): Promise<void> {
  await tx.query(
    'update solana_lanes set checked_nonce = $3, checked_signature = $4 where network = $1 and nonce_account = $2',
    [NETWORK, row.nonce_account, row.checked_nonce, row.checked_signature],
  )
}

/** Writes that values of nonces were given to transactions; null for the transaction that makes the account. */
export async function keepUsed(
  tx: Transaction,
  used: readonly { nonceAccount: Address; nonce: string | null; signature: string }[],
): Promise<void> {
  await tx.query(
    `
    update solana_lanes l set used_nonce = u.nonce, used_by = array[u.signature]
    from unnest($2::text[], $3::text[], $4::text[]) as u (account, nonce, signature)
    where l.network = $1 and l.nonce_account = u.account`,
    [NETWORK, ...arraysOf(used, 'nonceAccount', 'nonce', 'signature')],
  )
}

/** Writes that a payment was signed on its value of a nonce, by a signer process or again. */
export async function keepReplaced(
  tx: Queryable,
  { nonceAccount, nonce }: Lane,
  signature: string,
): Promise<void> {
  await tx.query(
    `update solana_lanes set used_by = array_append(used_by, $4)
     where network = $1 and nonce_account = $2 and used_nonce = $3 and not $4 = any (used_by)`,
    [NETWORK, nonceAccount, nonce, signature],
  )
}

/**
 * Acknowledges a transaction of a lane that was signed without this database: it does not block the lane any more. Where it
 * follows the last known one, what it has left is known, too.
 */
export async function acknowledgeOn(
  tx: Transaction,
  { rpc }: Pick<SolanaChain, 'rpc'>,
  { nonceAccount, nonce }: Lane,
  { hash, slot }: { hash: string; slot: string },
): Promise<void> {
  const row = (await lockLanes(tx, [nonceAccount])).get(nonceAccount)!
  const left = row.checked_nonce === nonce ? (await noncesLeftIn(rpc, [slot])).get(slot) : undefined
  if (left !== undefined) return keepChecked(tx, { ...row, checked_nonce: left, checked_signature: hash })
  await tx.query(
    `update solana_lanes set acknowledged = array_append(acknowledged, $3) where network = $1 and nonce_account = $2`,
    [NETWORK, nonceAccount, hash],
  )
}
