import type { Address } from '@solana/addresses'
import type { Queryable, Transaction } from '../../src/db/database.ts'
import { selectPayees } from '../../src/networks/network-transactions.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { unknownSpends } from '../kit/unknown-spends.ts'
import { nonceOf, type Accounts } from './accounts.ts'
import { NETWORK, type SolanaChain } from './chain.ts'
import { addressWithSeed } from './instructions.ts'
import { madeTransaction, signaturesOf, type TouchingSignature } from './node.ts'
import { parse, type ParsedPayment } from './transaction.ts'

/**
 * Each payment takes a lane: a nonce account of the hot wallet, whose value its transaction uses up. A lane has one
 * transaction at a time. A transaction that this database does not know stops all lanes, because it may have paid any
 * withdrawal: one that is signed on another lane would be paid twice.
 */

/** Most lanes: they are read together with the hot wallet's own accounts, at one slot. */
const LANES_MAX = 64

const seedOf = (lane: number) => `bursar-nonce-${lane}`

/**
 * All nonce accounts that a wallet may ever have had, by its address alone: they need no keys and no settings. Only those
 * with `signs` are made and used; the others may have been, with a higher `lanes`.
 */
export const laneAccounts = ({ hotWallet, lanes }: Pick<SolanaChain, 'hotWallet' | 'lanes'>) =>
  Array.from({ length: LANES_MAX }, (_, lane) => {
    const seed = seedOf(lane)
    return { seed, account: addressWithSeed(hotWallet.address, seed), signs: lane < lanes }
  })

/** Lanes for sweeps alone: they delay no withdrawal, and one that is not known stops none, since it can have paid none. */
export const SWEEP_LANES = 4

/** The nonce accounts of sweeps, as `laneAccounts` are those of payments. */
export const sweepAccounts = ({ hotWallet }: Pick<SolanaChain, 'hotWallet'>) =>
  Array.from({ length: SWEEP_LANES }, (_, lane) => {
    const seed = `bursar-sweep-${lane}`
    return { seed, account: addressWithSeed(hotWallet.address, seed) }
  })

export const nonceAccounts = (chain: Pick<SolanaChain, 'hotWallet' | 'lanes'>): Address[] =>
  [...laneAccounts(chain), ...sweepAccounts(chain)].map(({ account }) => account)

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
  free: { nonceAccount: Address; nonce: string }[]
  inFlight: number
  /** Why a lane waits that shows a value which was used before: its node lags. It stops no other. */
  lagging: WaitingReason | undefined
  /** Why nothing may be signed at all. */
  blocked: WaitingReason | undefined
}

/** Pages of 1,000 signatures that are read of a lane at once. */
const PAGES_MAX = 100

interface LaneRow {
  nonce_account: string
  checked_nonce: string | null
  checked_signature: string | null
  used_nonce: string | null
  acknowledged: string[]
}

/** Locks the lanes until the transaction ends, and says which of them may sign. `open` are the payments under way. */
export async function openLanes(
  tx: Transaction,
  chain: SolanaChain,
  accounts: Accounts,
  open: readonly ParsedPayment[],
): Promise<OpenLanes> {
  const values = laneAccounts(chain).flatMap(({ account, signs }) => {
    const nonce = nonceOf(accounts.get(account), chain.hotWallet.address)
    return nonce === undefined ? [] : [{ nonceAccount: account, nonce, signs }]
  })
  const rows = await lockLanes(
    tx,
    values.map(({ nonceAccount }) => nonceAccount),
  )
  const changed = values.filter(({ nonceAccount, nonce }) => rows.get(nonceAccount)!.checked_nonce !== nonce)
  const touching = new Map(
    await Promise.all(
      changed.map(async ({ nonceAccount }) => {
        const { checked_signature } = rows.get(nonceAccount)!
        return [
          nonceAccount,
          await signaturesOf(chain.rpc, nonceAccount, checked_signature, PAGES_MAX),
        ] as const
      }),
    ),
  )
  const lanes: OpenLanes = { free: [], inFlight: 0, lagging: undefined, blocked: undefined }
  for (const lane of values) {
    const { nonceAccount, nonce } = lane
    const row = rows.get(nonceAccount)!
    if (open.some((payment) => payment.nonceAccount === nonceAccount && payment.nonce === nonce)) {
      lanes.inFlight += 1
      continue
    }
    if (touching.has(nonceAccount))
      lanes.blocked ??= await unknownSpend(tx, chain, row, nonce, touching.get(nonceAccount))
    const lag = usedBefore(row, nonce)
    lanes.lagging ??= lag
    if (lag === undefined && lane.signs) lanes.free.push({ nonceAccount, nonce })
  }
  return lanes
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
    select nonce_account, checked_nonce, checked_signature, used_nonce, acknowledged
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
const STRANGERS_MAX = 100

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
  const account = row.nonce_account as Address
  if (touching === undefined) return unknownSpends(`more than ${PAGES_MAX},000 transactions of ${account}`, 0)
  // The value has moved, so that the transaction that moved it must be among them.
  if (touching.length === 0)
    return nodeBehind(`the node does not show the transaction that moved nonce account ${account}`)
  const oldestFirst = touching.toReversed()
  const known = await selectPayees(
    tx,
    NETWORK,
    oldestFirst.map(({ signature }) => signature),
  )
  let strangers = 0
  for (const { signature, err } of oldestFirst) {
    // A failed transaction has paid nothing. It has moved the nonce, and its fee is missing in custody.
    if (err !== null || known.has(signature) || row.acknowledged.includes(signature)) continue
    // Anybody may send lamports to the account, and many times; only the wallet's own signature uses it.
    if (strangers++ === STRANGERS_MAX)
      return nodeBehind(`transactions of strangers with ${account} are looked at`)
    const made = await madeTransaction(chain.rpc, signature)
    if (made === undefined) return nodeBehind(`the node does not show transaction ${signature} of ${account}`)
    if (parse(made.raw).nonceAccount === account)
      return unknownSpends(`${signature} of nonce account ${account}`, 0)
    await keepChecked(tx, account, { checked_nonce: row.checked_nonce, checked_signature: signature })
  }
  await keepChecked(tx, account, { checked_nonce: nonce, checked_signature: touching[0]!.signature })
  return undefined
}

const nodeBehind = (detail: string): WaitingReason => ({ code: 'NODE_BEHIND', detail })

async function keepChecked(
  tx: Transaction,
  account: Address,
  { checked_nonce, checked_signature }: Pick<LaneRow, 'checked_nonce' | 'checked_signature'>,
): Promise<void> {
  await tx.query(
    'update solana_lanes set checked_nonce = $3, checked_signature = $4 where network = $1 and nonce_account = $2',
    [NETWORK, account, checked_nonce, checked_signature],
  )
}

/** Writes that a value of a nonce was given to a payment. */
export async function keepUsed(
  tx: Transaction,
  used: readonly { nonceAccount: Address; nonce: string }[],
): Promise<void> {
  await tx.query(
    `
    update solana_lanes l set used_nonce = u.nonce
    from unnest($2::text[], $3::text[]) as u (account, nonce)
    where l.network = $1 and l.nonce_account = u.account`,
    [NETWORK, used.map(({ nonceAccount }) => nonceAccount), used.map(({ nonce }) => nonce)],
  )
}

/** Acknowledges a transaction of a lane that was signed without this database: it does not block the lane any more. */
export async function acknowledgeOn(tx: Transaction, account: Address, hash: string): Promise<void> {
  await lockLanes(tx, [account])
  await tx.query(
    `update solana_lanes set acknowledged = array_append(acknowledged, $3) where network = $1 and nonce_account = $2`,
    [NETWORK, account, hash],
  )
}
