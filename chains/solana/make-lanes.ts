import type { Address } from '@solana/addresses'
import type { Database } from '../../src/db/database.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import type { SweepRound } from '../../src/networks/sweep-round.ts'
import {
  collectingFailures,
  endSweep,
  insertSweep,
  isLost,
  selectUnderWay,
  setState,
  stepEach,
  sweepName,
  unlessTaken,
  type Sweep,
} from '../kit/sweeps.ts'
import { nonceOf, readAccounts, type Accounts } from './accounts.ts'
import { signedMove } from './asked-bytes.ts'
import { feeIn, GAS_ASSET, lamportsText, NETWORK, type SolanaChain } from './chain.ts'
import { makeNonceAccount } from './instructions.ts'
import { keepUsed, laneAccounts, lockLanes, sweepAccounts } from './lanes.ts'
import { madeTransaction, statusesOf } from './node.ts'
import { send } from './send.ts'
import { parse, SIGNATURE_FEE, signBriefly } from './transaction.ts'

/**
 * Makes the missing nonce accounts of the hot wallet. Each is recorded like gas that is sent to a deposit address (sweeps):
 * kept before it is broadcast, followed to its end, and its fee posted in the transaction that ends it. The rent stays the
 * platform's, and counts as held. Making an account that is there fails, so that no repeat can make two.
 */

/** Takes the next step of each missing nonce account. Returns how many steps were taken. */
export async function makeLanes(db: Database, chain: SolanaChain, round: SweepRound): Promise<number> {
  await chain.facts()
  const lanes = [
    ...laneAccounts(chain).filter(({ signs }) => signs),
    ...(chain.depositKeys === undefined ? [] : sweepAccounts(chain)),
  ]
  const accounts = await readAccounts(chain.rpc, [
    chain.hotWallet.address,
    ...lanes.map(({ account }) => account),
  ])
  const isMade = (account: Address) => nonceOf(accounts.get(account), chain.hotWallet.address) !== undefined
  const making = await selectUnderWay(db, NETWORK, { kind: 'TOP_UP' })
  const missing = lanes.filter(
    ({ account }) => !isMade(account) && !making.some(({ address }) => address === account),
  )
  return collectingFailures(async (failed) => {
    // What is signed is followed, also where a signer process signs no more.
    const signed = await signMissing(db, chain, accounts, missing, round, failed).catch(
      (error: unknown) => (failed(error), 0),
    )
    const under = signed === 0 ? making : await selectUnderWay(db, NETWORK, { kind: 'TOP_UP' })
    const standing = await statusesOf(
      chain.rpc,
      under.map(({ crypto_tx_hash }) => crypto_tx_hash),
    )
    const steps = await stepEach(under, sweepName, failed, async (lane) => {
      const status = standing.get(lane.crypto_tx_hash)
      if (status?.confirmationStatus === 'finalized') return end(db, chain, lane, round)
      return status == null && sendAgain(db, chain, lane, round)
    })
    return signed + steps
  })
}

/** Signs the making of as many accounts as the wallet can pay. */
async function signMissing(
  db: Database,
  chain: SolanaChain,
  accounts: Accounts,
  missing: readonly { seed: string; account: Address }[],
  { isFrozen }: SweepRound,
  failed: (error: unknown) => void,
): Promise<number> {
  if (missing.length === 0) return 0
  const { rentOfNonce, rentOfWallet } = await chain.facts()
  const wallet = chain.hotWallet.address
  const { value } = await chain.rpc.call<{ value: { blockhash: string } }>('getLatestBlockhash', {
    commitment: 'finalized',
  })
  const left = (accounts.get(wallet)?.lamports ?? 0n) - rentOfWallet
  const affordable = Number(left / (rentOfNonce + SIGNATURE_FEE))
  const few = missing.slice(0, Math.max(0, affordable))
  return stepEach(
    few,
    ({ seed }) => seed,
    failed,
    async ({ seed, account: address }) => {
      const instructions = makeNonceAccount(wallet, address, seed, rentOfNonce)
      const asked = signBriefly(chain.hotWallet, instructions, value.blockhash)
      const bytes = await signedMove(chain, asked, { address, derivation: '' })
      const made = { customer_id: PLATFORM_ID, address, kind: 'TOP_UP', asset: GAS_ASSET } as const
      const amount = lamportsText(rentOfNonce)
      return unlessTaken(db, NETWORK, isFrozen, async (tx) => {
        await insertSweep(tx, NETWORK, { ...made, amount }, bytes)
        await lockLanes(tx, [address])
        await keepUsed(tx, [{ nonceAccount: address, nonce: null, signature: bytes.crypto_tx_hash }])
        return true
      })
    },
  )
}

/**
 * Broadcasts bytes that the network does not know. They end as VOID where their block's hash is too old, the account is missing
 * and both stay so for a while: then another transaction makes it.
 */
async function sendAgain(db: Database, chain: SolanaChain, lane: Sweep, round: SweepRound): Promise<boolean> {
  await send(chain, lane)
  const { lifetime, feePayer } = parse(lane.raw_transaction)
  const { value: isValid } = await chain.rpc.call<{ value: boolean }>('isBlockhashValid', lifetime, {
    commitment: 'processed',
  })
  if (isValid) return setState(db, lane, 'BROADCAST')
  const address = lane.address as Address
  const accounts = await readAccounts(chain.rpc, [address])
  if (nonceOf(accounts.get(address), feePayer) !== undefined) return false
  if (!(await isLost(db, lane))) return false
  return endSweep(db, NETWORK, lane, { state: 'VOID', networkFee: feeIn(0n) }, round)
}

async function end(db: Database, chain: SolanaChain, lane: Sweep, round: SweepRound): Promise<boolean> {
  const made = await madeTransaction(chain.rpc, lane.crypto_tx_hash)
  if (made === undefined) return false
  const state = made.err === null ? 'DONE' : 'FAILED'
  return endSweep(db, NETWORK, lane, { state, networkFee: feeIn(made.fee) }, round)
}
