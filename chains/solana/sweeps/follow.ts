import type { Address } from '@solana/addresses'
import type { Database } from '../../../src/db/database.ts'
import { RecordFailure } from '../../../src/db/each-alone.ts'
import type { SweepRound } from '../../../src/networks/sweep-round.ts'
import { endSweep, selectUnderWay, setState, stepEach, sweepName, type Sweep } from '../../kit/sweeps.ts'
import { hasMoved, readAccounts, type Accounts, type NonceUse } from '../accounts.ts'
import { feeIn, GAS_ASSET, NETWORK, onChain, type Facts, type SolanaChain } from '../chain.ts'
import { changesOf, madeTransaction, statusesOf, type MadeTransaction } from '../node.ts'
import { userOfNonce } from '../payment-status.ts'
import { send } from '../send.ts'
import { feeOf, parse, parsePayment, parseSigned, SIGNATURE_FEE } from '../transaction.ts'

/**
 * Follows sweeps to their ends. Each is on a durable nonce, so its bytes are valid until the nonce is used: they are broadcast
 * until then, and only the transaction that has used the nonce ends them.
 */

/** A sweep with what its bytes say: the wallet may have changed since. */
type FollowedSweep = Sweep & NonceUse

/** Takes each sweep a step further. Returns how many steps were taken. `failed` gets the failure of a single sweep. */
export async function followSweeps(
  db: Database,
  chain: SolanaChain,
  round: SweepRound,
  failed: (error: unknown) => void,
): Promise<number> {
  // The hash is that of the bytes: a changed row stops no other.
  const rows = await selectUnderWay(db, NETWORK, { kind: 'SWEEP' })
  const sweeps = rows.flatMap((row): FollowedSweep | [] => {
    try {
      const { from, nonceAccount, nonce } = parsePayment(row.raw_transaction)
      return { ...row, crypto_tx_hash: parse(row.raw_transaction).hash, from, nonceAccount, nonce }
    } catch (error) {
      failed(new RecordFailure(sweepName(row), error))
      return []
    }
  })
  if (sweeps.length === 0) return 0
  const standing = await statusesOf(
    chain.rpc,
    sweeps.map(({ crypto_tx_hash }) => crypto_tx_hash),
  )
  // After the signatures: a transaction that is finalized in between is asked about again.
  const accounts = await readAccounts(
    chain.rpc,
    sweeps.map(({ nonceAccount }) => nonceAccount),
  )
  return stepEach(sweeps, sweepName, failed, async (sweep) => {
    const status = standing.get(sweep.crypto_tx_hash)
    if (status?.confirmationStatus === 'finalized') return endMade(db, chain, sweep, round, failed)
    return status == null ? sendAgain(db, chain, sweep, accounts, round) : setState(db, sweep, 'BROADCAST')
  })
}

/** Broadcasts bytes that the network does not know; ends them where another transaction has used their nonce. */
async function sendAgain(
  db: Database,
  chain: SolanaChain,
  sweep: FollowedSweep,
  accounts: Accounts,
  round: SweepRound,
): Promise<boolean> {
  if (!hasMoved(accounts, sweep)) {
    await send(chain, sweep)
    return setState(db, sweep, 'BROADCAST')
  }
  const user = await userOfNonce(chain, sweep, [sweep.crypto_tx_hash])
  // The node does not show its own transaction yet.
  if (user === sweep.crypto_tx_hash) return false
  if (user === undefined)
    throw new Error(`something has used its nonce of ${sweep.nonceAccount}, and the node does not show what`)
  return endSweep(db, NETWORK, sweep, { state: 'VOID', networkFee: feeIn(0n), asset: sweep.asset }, round)
}

async function endMade(
  db: Database,
  chain: SolanaChain,
  sweep: FollowedSweep,
  round: SweepRound,
  failed: (error: unknown) => void,
): Promise<boolean> {
  const made = await madeTransaction(chain.rpc, sweep.crypto_tx_hash)
  if (made === undefined) return false
  const { accounts } = parseSigned(made.raw, sweep.crypto_tx_hash)
  // It is signed anew in the next round: what makes it fail may cost its fee again and again.
  if (made.err !== null) failed(new RecordFailure(sweepName(sweep), JSON.stringify(made.err)))
  const state = made.err === null ? 'DONE' : 'FAILED'
  const networkFee = feeIn(costOf(await chain.facts(), sweep, made, accounts))
  return endSweep(db, NETWORK, sweep, { state, networkFee, asset: sweep.asset }, round)
}

/**
 * What a sweep has cost the hot wallet: the fee, and the rent of an account of its own that it made. Throws an Error for more
 * than its bytes can cost: the node lies.
 */
function costOf(
  facts: Facts,
  sweep: FollowedSweep,
  made: MadeTransaction,
  accounts: readonly Address[],
): bigint {
  const { lamports } = changesOf(made, accounts)
  const swept = sweep.asset === GAS_ASSET && made.err === null ? onChain(GAS_ASSET, sweep.amount) : 0n
  const cost = swept - (lamports.get(sweep.from) ?? 0n)
  const bytes = parsePayment(sweep.raw_transaction)
  const { madeFor, program } = bytes.transfers[0]!
  const rent = madeFor === undefined ? 0n : facts.rentOfToken(program)
  const most = feeOf(bytes) + SIGNATURE_FEE + rent
  if (cost < 0n || cost > most)
    throw new Error(
      `the node says that ${sweep.crypto_tx_hash} has cost ${cost} lamports: it can cost ${most} at most`,
    )
  return cost
}
