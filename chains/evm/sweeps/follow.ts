import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import { transaction, type Database } from '../../../src/db/database.ts'
import {
  endSweep,
  isLost,
  selectUnderWay,
  setState,
  stepEach,
  sweepName,
  type Sweep,
} from '../../kit/sweeps.ts'
import { send } from '../broadcast.ts'
import { isNative, offChain, walletAt, type EvmChain } from '../chain.ts'
import { confirmedHead, standingsOf } from '../confirmations.ts'
import type { DepositKeys } from '../deposit-keys.ts'
import { feePaid, isBelowBaseFee, type Fees } from '../fees.ts'
import { countsAt, type Receipt } from '../node.ts'
import { affordable, replacement } from '../replace.ts'
import { parse, signerAddressOf } from '../transaction.ts'
import type { SignedTransaction } from '../../../src/networks/network.ts'
import type { SweepRound } from '../../../src/networks/sweep-round.ts'
import { keepTransactions } from '../../../src/networks/network-transactions.ts'

/** What following sweeps takes: the chain, the keys, the current fees and the round. `failed` gets each failure. */
export interface Following {
  db: Database
  chain: EvmChain
  keys: DepositKeys
  fees: Fees
  round: SweepRound
  failed: (error: unknown) => void
}

/** Takes every transaction under way a step further; or only those in state SIGNED. Returns the number of steps. */
export async function followSweeps(following: Following, only?: 'SIGNED'): Promise<number> {
  const { db, chain } = following
  const { network, stuckAfterMs } = chain
  const sweeps = await selectUnderWay(db, network, { state: only, stuckAfterMs })
  const broadcastSteps = await broadcastSigned(
    following,
    sweeps.filter(({ state }) => state === 'SIGNED'),
  )
  const checkSteps = await checkBroadcast(
    following,
    sweeps.filter(({ state }) => state === 'BROADCAST'),
  )
  return broadcastSteps + checkSteps
}

/** Broadcasts signed sweeps, and ends those that can never be mined. */
async function broadcastSigned({ db, chain, round, failed }: Following, sweeps: Sweep[]): Promise<number> {
  const answers = await send(chain, sweeps)
  const rejections = new Map(sweeps.map((sweep, index) => [sweep, answers[index]]))
  const rejected = sweeps.filter((sweep) => rejections.get(sweep)?.isTooCheap === false)
  const lost = new Set(await neverMined(chain, rejected))
  return stepEach(sweeps, sweepName, failed, async (sweep) => {
    if (sweep.lost && !lost.has(sweep)) await setState(db, sweep, 'SIGNED')
    if (lost.has(sweep) && (await isLost(db, sweep))) {
      // It has cost nothing. The balance is read again, and a new sweep is planned with a new nonce.
      const networkFee = { asset: chain.gasAsset, amount: '0' }
      if (await endSweep(db, chain.network, sweep, { state: 'VOID', networkFee }, round)) return true
    }
    if (!rejected.includes(sweep)) return setState(db, sweep, 'BROADCAST')
    failed(new Error(rejections.get(sweep)!.reason))
    return false
  })
}

/** Ends confirmed sweeps, and replaces or broadcasts again those that no block has. */
async function checkBroadcast(following: Following, sweeps: Sweep[]): Promise<number> {
  const { db, chain, round, failed } = following
  const standings = sweeps.length === 0 ? [] : await standingsOf(chain, sweeps)
  const standingOf = new Map(sweeps.map((sweep, index) => [sweep, standings[index]!]))
  return stepEach(sweeps, sweepName, failed, async (sweep) => {
    const standing = standingOf.get(sweep)!
    if (standing.state === 'MINED')
      return standing.isConfirmed && endMined(db, chain, sweep, standing.receipt, round)
    // A top-up that no block can have keeps the withdrawals after it waiting, too.
    const isDue = sweep.stuck || isBelowBaseFee(sweep.raw_transaction, following.fees.base)
    const bumped = isDue ? await bump(following, sweep) : undefined
    if (bumped !== undefined && (await keepReplacement(following, sweep, bumped))) return true
    return standing.state === 'UNKNOWN' && setState(db, sweep, 'SIGNED')
  })
}

/** Ends a sweep in a confirmed block. */
async function endMined(
  db: Database,
  chain: EvmChain,
  sweep: Sweep,
  receipt: Receipt,
  round: SweepRound,
): Promise<boolean> {
  const state = hexToBigInt(receipt.status) === 1n ? 'DONE' : 'FAILED'
  const hash = receipt.transactionHash
  // A block may have a transaction that was replaced, with another amount.
  const { value } =
    hash === sweep.crypto_tx_hash
      ? parse(sweep.raw_transaction)
      : await chain.node.call<{ value: Hex }>('eth_getTransactionByHash', hash)
  const end = {
    ...({ state, hash, networkFee: feePaid(chain, receipt) } as const),
    amount: isNative(chain, sweep.asset) ? offChain(chain, sweep.asset, BigInt(value)) : undefined,
    auditBlock: sweep.kind === 'SWEEP' && state === 'DONE' ? hexToBigInt(receipt.blockNumber) : undefined,
  }
  return endSweep(db, chain.network, sweep, end, round)
}

/**
 * The sweeps that can never be mined: at the confirmed head their nonce is used, and the node has none of their
 * transactions. A lagging backend gave a used nonce when they were signed, or the database is older than their
 * replacements.
 */
async function neverMined(chain: EvmChain, refused: readonly Sweep[]): Promise<Sweep[]> {
  if (refused.length === 0) return []
  const head = await confirmedHead(chain)
  const senders = await Promise.all(refused.map(({ raw_transaction }) => signerAddressOf(raw_transaction)))
  const counts = await countsAt(chain.node, senders, head)
  const used = refused.filter((sweep, index) => counts[index]! > parse(sweep.raw_transaction).nonce)
  const standings = used.length === 0 ? [] : await standingsOf(chain, used)
  return used.filter((_, index) => standings[index]!.state === 'UNKNOWN')
}

/** Signs the same transaction with higher fees. A sweep of the native asset pays them from its amount. */
async function bump(
  { chain, keys, fees }: Following,
  { kind, asset, address, derivation, raw_transaction }: Sweep,
): Promise<SignedTransaction | undefined> {
  const payer = kind === 'TOP_UP' ? walletAt(chain, await signerAddressOf(raw_transaction)) : undefined
  const place = { address, derivation: derivation! }
  const signer =
    kind === 'TOP_UP' ? (payer?.forDeposit?.(place) ?? payer) : keys.signerOf(address, derivation!)
  if (signer === undefined) return undefined
  const fromValue = kind === 'SWEEP' && isNative(chain, asset)
  const feeCeiling = kind === 'TOP_UP' ? chain.feeCeiling : chain.sweeps.feeCeiling
  const bumped = await replacement({ ...chain, feeCeiling }, fees, signer, raw_transaction, { fromValue })
  return affordable(chain, signer.address, bumped)
}

/** Stores a replacement, to be broadcast next. False on a frozen network, or where another worker was faster. */
async function keepReplacement(
  { db, chain, round }: Following,
  sweep: Sweep,
  { raw_transaction, crypto_tx_hash }: SignedTransaction,
): Promise<boolean> {
  const { value } = parse(raw_transaction)
  const amount = isNative(chain, sweep.asset) ? offChain(chain, sweep.asset, value) : null
  return transaction(db, async (tx) => {
    if (await round.isFrozen(tx, chain.network)) return false
    const { rowCount } = await tx.query(
      `
      update sweeps
      set raw_transaction = $4, crypto_tx_hash = $5, replaced = replaced || crypto_tx_hash, state = 'SIGNED',
          amount = coalesce($6, amount), signed_at = (select clock_timestamp())
      where customer_id = $1 and id = $2 and state = 'BROADCAST' and crypto_tx_hash = $3`,
      [sweep.customer_id, sweep.id, sweep.crypto_tx_hash, raw_transaction, crypto_tx_hash, amount],
    )
    if (rowCount === 1 && sweep.kind === 'TOP_UP') {
      const kept = { customer_id: sweep.customer_id, transfer_id: sweep.id, raw_transaction, crypto_tx_hash }
      await keepTransactions(tx, chain.network, [kept], sweep.kind)
    }
    return rowCount === 1
  })
}
