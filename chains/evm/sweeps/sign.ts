import type { Hex } from 'viem'
import type { Database, Transaction } from '../../../src/db/database.ts'
import { send } from '../broadcast.ts'
import { gasLanesOf, offChain, transferOf, type EvmChain } from '../chain.ts'
import type { DepositKeys } from '../deposit-keys.ts'
import { feeMax } from '../fees.ts'
import { countAt } from '../node.ts'
import { writeNonce } from '../nonces.ts'
import { openReservation, walletText } from '../hot-wallet.ts'
import { parse, signed, type EvmSigner, type EvmTransaction } from '../transaction.ts'
import { markStale } from '../../kit/holdings.ts'
import { insertSweep, unlessTaken } from '../../kit/sweeps.ts'
import { noteHoldings } from './holdings.ts'
import { planAt, type SweepPrices, type SweepPlace, type SweepPlan } from './plan.ts'
import type { SignedTransaction } from '../../../src/networks/network.ts'
import type { SweepRound } from '../../../src/networks/sweep-round.ts'
import { keepTransactions } from '../../../src/networks/network-transactions.ts'

/** Most sweeps of one address whose bytes are broadcast again. */
const SWEEPS_AGAIN_MAX = 20

/**
 * Signs and stores the next transaction at an address. False when there is nothing to do, or another worker has done it. A
 * token that would deliver less than is sent stays there, and `losses` gets the reason, one for each asset.
 */
export async function beginSweep(
  db: Database,
  chain: EvmChain,
  { keys, market }: { keys: DepositKeys; market: SweepPrices },
  place: SweepPlace,
  { isFrozen, losses }: Pick<SweepRound, 'isFrozen'> & { losses: Map<string, string> },
): Promise<boolean> {
  const signer = keys.signerOf(place.address, place.derivation)
  if (signer === undefined)
    throw new Error(`${place.address} was derived from another key than the one given`)
  for (const asset of place.assets) {
    const plan = await planAt(chain, market, place.address, asset)
    if (plan === 'NOTHING_THERE') await markStale(db, chain, { ...place, asset })
    else if (plan?.loses !== undefined) losses.set(asset, plan.loses)
    else if (plan !== undefined)
      return unlessTaken(db, chain.network, isFrozen, async (tx) => {
        const bytes =
          plan.kind === 'TOP_UP'
            ? await signTopUp(tx, chain, place, plan)
            : await signSweep(tx, chain, signer, place, plan)
        await keepSigned(tx, chain, place, plan, bytes)
        return true
      })
  }
  return false
}

/**
 * Signs a top-up of gas with the next nonce of the first wallet that can pay it. Throws an Error with the reason of the first
 * where none can.
 */
async function signTopUp(
  tx: Transaction,
  chain: EvmChain,
  place: SweepPlace,
  plan: SweepPlan,
): Promise<SignedTransaction> {
  const needs = plan.amount + feeMax({ gas: plan.gas, maxFeePerGas: plan.fees.maxFeePerGas })
  let why: string | undefined
  for (const lane of gasLanesOf(chain)) {
    const reservation = await openReservation(tx, lane, [])
    const left = reservation.spendable.get(chain.gasAsset)!
    if (reservation.blockedReason === undefined && left >= needs) {
      const wallet = lane.hotWallet.forDeposit?.(place) ?? lane.hotWallet
      const bytes = await signed(wallet, transactionOf(lane, plan, place.address, reservation.nonce))
      await writeNonce(tx, lane, reservation.nonce + 1)
      return bytes
    }
    const text = (units: bigint) => `${offChain(chain, chain.gasAsset, units)} ${chain.gasAsset}`
    why ??=
      reservation.blockedReason?.detail ??
      `${walletText(lane)} has ${text(left)} left, gas to sweep ${place.address} needs ${text(needs)}`
  }
  throw new Error(why)
}

/**
 * Signs a sweep with the address's next nonce. Throws an Error where an ended sweep has used that nonce, after broadcasting
 * its bytes again: the node lags, or the chain has taken blocks back.
 */
async function signSweep(
  tx: Transaction,
  chain: EvmChain,
  signer: EvmSigner,
  { customer_id, address }: SweepPlace,
  plan: SweepPlan,
): Promise<SignedTransaction> {
  const nonce = await countAt(chain.node, signer.address, 'latest')
  const { rows } = await tx.query<SignedTransaction>(
    `
    select raw_transaction, crypto_tx_hash from sweeps
    where customer_id = $1 and network = $2 and address = $3 and kind = 'SWEEP' and state in ('DONE', 'FAILED')
    order by id desc
    limit ${SWEEPS_AGAIN_MAX}`,
    [customer_id, chain.network, address],
  )
  const used = rows.filter(({ raw_transaction }) => parse(raw_transaction).nonce >= nonce)
  if (used.length > 0) {
    // Where the chain has taken them back, their bytes move the funds again. A node that only lags has them already.
    await send(
      chain,
      used.map((sweep) => ({ ...sweep, replaced: [] })),
    )
    throw new Error(
      `the node is behind, or blocks were taken back: it says that nonce ${nonce} of ${address} is free, which an ended sweep ` +
        `has used; the same bytes were broadcast again`,
    )
  }
  return signed(signer, transactionOf(chain, plan, plan.into, nonce))
}

const transactionOf = (
  chain: EvmChain,
  { asset, amount, gas, fees }: SweepPlan,
  to: Hex,
  nonce: number,
): EvmTransaction => ({
  type: 'eip1559',
  chainId: chain.chainId,
  nonce,
  ...transferOf(chain, asset, to, amount),
  gas,
  ...fees,
})

/** Stores a signed transaction, and marks the balances that it changes as stale. */
async function keepSigned(
  tx: Transaction,
  chain: EvmChain,
  { customer_id, address }: SweepPlace,
  { kind, asset, amount }: SweepPlan,
  bytes: SignedTransaction,
): Promise<void> {
  const sweep = { customer_id, address, kind, asset, amount: offChain(chain, asset, amount) }
  const transfer_id = await insertSweep(tx, chain.network, sweep, bytes)
  if (kind === 'TOP_UP')
    await keepTransactions(tx, chain.network, [{ customer_id, transfer_id, ...bytes }], kind)
  // A top-up, and the gas of a sweep, also change the balance of the native asset.
  const changed = [chain.gasAsset, asset].map((one) => ({ customer_id, address, asset: one }))
  await noteHoldings(tx, chain, changed)
}
