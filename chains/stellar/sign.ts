import type { Transaction } from '../../src/db/database.ts'
import { inOrder } from '../../src/networks/in-order.ts'
import type { SignedTransaction, Signing, Withdrawal } from '../../src/networks/network.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { selectPaying, selectOpenTransactions } from '../../src/networks/network-transactions.ts'
import { DestinationRefused } from '../../src/networks/node-failure.ts'
import { deferred, type WaitingReason } from '../../src/networks/waiting.ts'
import { deduct, owedOn, payFrom, type Money } from '../kit/owed-first.ts'
import {
  decimalOf,
  findAccount,
  GAS_ASSET,
  keysOf,
  spendableOf,
  stroops,
  whyNoSigner,
  type StellarChain,
} from './chain.ts'
import { judge, tokenFault, type Judged, type NotSigned } from './destinations.ts'
import { accountIn, isOurs, paymentsIn, writePayments, type Place, type StellarPayment } from './envelope.ts'
import type { StellarAccount } from './horizon.ts'
import { NO_LANE, Packs, PAYMENTS_MAX, type Earlier, type Pack } from './packs.ts'
import { hasFailed, hasPassed, provenUserOf, VALID_SECONDS } from './status.ts'
import { whyBlocked } from './unknown-spends.ts'

/** The base fees of a wrapped payment: one for its operation, one for the wrapping, which others of its transaction share. */
const FEES = 2n
interface Stats {
  last_ledger_base_fee: string
  fee_charged: { p50: string }
}

/** What half of the operations of the newest ledgers have paid, in stroops. */
async function feeNow({ horizon }: StellarChain): Promise<bigint> {
  const stats = await horizon.find<Stats>('/fee_stats')
  const [base, half] = [BigInt(stats!.last_ledger_base_fee), BigInt(stats!.fee_charged.p50)]
  return base > half ? base : half
}

/** The most payments of a transaction: half of a ledger's operations, of which the test network has a hundred. */
async function paymentsAtOnce({ horizon }: StellarChain): Promise<number> {
  const [newest] = await horizon.records<{ max_tx_set_size: number }>('/ledgers?order=desc&limit=1')
  const half = Math.floor((newest?.max_tx_set_size ?? 0) / 2) - 1
  return Math.min(PAYMENTS_MAX, Math.max(1, half))
}

/** The network fee of a withdrawal now. Throws DestinationRefused for a destination that cannot take the asset. */
export async function estimateFee(
  chain: StellarChain,
  asset: string,
  destination?: string,
): Promise<NetworkFee> {
  await chain.horizon.root()
  if (destination !== undefined && asset !== GAS_ASSET) {
    const account = await findAccount(chain, accountIn(destination).account)
    const fault = tokenFault(chain, account, asset, 0n)
    if (fault !== undefined) throw new DestinationRefused(fault)
  }
  return { asset: GAS_ASSET, amount: decimalOf((await feeNow(chain)) * FEES) }
}

/**
 * Signs in order the withdrawals that the hot wallet can pay, many in a transaction, each of which takes a free lane. A withdrawal
 * whose earlier bytes have passed their time bound gets their lane and number again, as do all others of those bytes: whatever
 * Horizon says, of all transactions with one number only one can be made.
 */
export async function sign(
  tx: Transaction,
  chain: StellarChain,
  withdrawals: Withdrawal[],
): Promise<Signing[]> {
  const keys = keysOf(chain)
  const opened = await openWallet(tx, chain)
  if ('code' in opened) return withdrawals.map(() => deferred(opened))
  const { wallet, left, places, closedAt, open, most, kept } = opened
  if (places.length === 0) return withdrawals.map(() => NO_LANE)
  const before = await signedEarlier(tx, chain, withdrawals)
  const owed = await owedOn(tx, 'STELLAR', chain.withdrawals, withdrawals)
  const judged = new Map<Withdrawal, Judged>()
  /** Those that are neither refused nor deferred, in packs, where the others are decided. */
  const decide = () => {
    const [money, packs] = [
      moneyOf(new Map(left), chain.feeCeiling * FEES),
      new Packs(places, open, { most, kept }),
    ]
    return inOrder<Pack | NotSigned>(withdrawals, (withdrawal) => {
      const verdict = judged.get(withdrawal)
      if (verdict !== undefined && 'outcome' in verdict) return verdict
      const earlier = before.get(withdrawal.transfer_id) ?? NEVER
      return packs.put(chain, withdrawal, verdict, earlier, (isNew) =>
        payFrom(money, owed, withdrawal, isNew ? chain.feeCeiling * FEES : chain.feeCeiling),
      )
    })
  }
  // Those that would be signed are asked about. Where one of them must not be, others take its place.
  const accounts = new Map([[chain.address, Promise.resolve<StellarAccount | undefined>(wallet)]])
  let decisions = decide()
  for (let round = 1; round <= withdrawals.length; round++) {
    const asked = withdrawals.filter((one, index) => !('outcome' in decisions[index]!) && !judged.has(one))
    if (asked.length === 0) break
    for (let from = 0; from < asked.length; from += ASKED_AT_ONCE)
      await Promise.all(
        asked
          .slice(from, from + ASKED_AT_ONCE)
          .map(async (one) => judged.set(one, await judge(tx, chain, one, wallet, accounts))),
      )
    decisions = decide()
  }
  const signed = new Map<Pack, SignedTransaction>()
  for (const pack of new Set(decisions.flatMap((one) => ('outcome' in one ? [] : one)))) {
    const { place, memo, payments } = pack
    const unsigned = { ...place, maxTime: closedAt + VALID_SECONDS, memo, payments }
    const terms = { source: chain.address, fee: chain.feeCeiling, passphrase: chain.passphrase }
    const laneKey = keys?.lanes.find((one) => one.publicKey() === place.lane)
    signed.set(pack, writePayments(unsigned, terms, keys && { signer: keys.signer, laneKey }))
  }
  return decisions.map((decision, index): Signing => {
    if ('outcome' in decision) return decision
    const bytes = signed.get(decision)!
    // It is alone, and keeps its own bytes: those that the signer signs have the same hash.
    if (bytes.isAsked) return { outcome: 'SIGNED', ...bytes }
    const crypto_tx_index = String(decision.withdrawals.indexOf(withdrawals[index]!))
    const payments = decision.payments.length
    return { outcome: 'SIGNED', ...bytes, crypto_tx_index, payments }
  })
}

const NEVER: Earlier = { places: [], times: 0 }

/** How many destinations Horizon is asked about at a time. */
const ASKED_AT_ONCE = 20

interface OpenWallet {
  wallet: StellarAccount
  /** By symbol: what it can pay beyond its reserve and what is under way, in stroops. */
  left: Map<string, bigint>
  places: Place[]
  /** The most payments of a transaction. */
  most: number
  /** The payments under way. */
  open: StellarPayment[]
  /** Under a signer: numbers that it takes for nothing else from the withdrawals that it signed with them. */
  kept: Place[]
  /** When the newest ledger closed, in seconds. */
  closedAt: bigint
}

/** Opens the hot wallet to sign; or why nothing can be signed now. */
async function openWallet(tx: Transaction, chain: StellarChain): Promise<OpenWallet | WaitingReason> {
  const { closedAt } = await chain.horizon.root()
  const fee = await feeNow(chain)
  if (fee > chain.feeCeiling)
    return {
      code: 'FEE_ABOVE_CEILING',
      detail: `an operation costs ${decimalOf(fee)} XLM, and the ceiling is ${decimalOf(chain.feeCeiling)}`,
    }
  const blocked = await whyBlocked(tx, chain)
  if (blocked !== undefined) return blocked

  // Before the balances: what is made in between is in the balances by then.
  const all = await openTransactions(tx)
  const open = all.filter(({ hasEnded }) => !hasEnded)
  const wallet = await findAccount(chain, chain.address)
  if (wallet === undefined)
    return { code: 'HOT_WALLET_SHORT', detail: `the account ${chain.address} does not exist yet` }
  const noSigner = whyNoSigner(chain, wallet)
  if (noSigner !== undefined) return { code: 'NO_SIGNING_KEY', detail: noSigner }
  const left = new Map(
    [...chain.assets].map(([symbol, asset]) => [symbol, spendableOf(wallet, asset)] as const),
  )
  const symbolOf = new Map([...chain.assets].map(([symbol, asset]) => [asset, symbol]))
  for (const { payments } of open) {
    deduct(left, GAS_ASSET, chain.feeCeiling * BigInt(payments.length + 1))
    for (const { asset, amount } of payments) deduct(left, symbolOf.get(asset) ?? '', stroops(amount))
  }
  const places = await placesOf(chain, wallet, new Set(open.map(({ lane }) => lane)))
  const isRemote = chain.signer !== undefined
  // The signer signs what has failed with no other number: one payment that fails must not end others.
  const most = isRemote ? 1 : await paymentsAtOnce(chain)
  const kept = isRemote ? all.filter(({ hasEnded }) => hasEnded) : []
  return { wallet, left, places, closedAt, most, kept, open: open.flatMap(({ payments }) => payments) }
}

/** A payment may cost `feeMax`. */
const moneyOf = (spendable: Map<string, bigint>, feeMax: bigint): Money => ({
  ...{ spendable, ownAsset: GAS_ASSET, unitsOf: (_asset, amount) => stroops(amount), feeOf: () => feeMax },
  text: (asset, units) => `${decimalOf(units)} ${asset}`,
  wallet: 'beyond its reserve, the hot wallet',
})

/** The transactions of withdrawals that have not ended. `hasEnded`: their bytes can never be made. */
async function openTransactions(tx: Transaction) {
  const rows = await selectOpenTransactions(tx, 'STELLAR')
  return rows.flatMap(({ raw_transaction, used_by }) =>
    isOurs(raw_transaction) ? { ...paymentsIn(raw_transaction), hasEnded: used_by !== null } : [],
  )
}

/** The free lanes that exist, with their next numbers. */
async function placesOf(
  chain: StellarChain,
  wallet: StellarAccount,
  busy: ReadonlySet<string>,
): Promise<Place[]> {
  const next = (lane: string, { sequence }: StellarAccount) => ({ lane, sequence: BigInt(sequence) + 1n })
  const free = await Promise.all(
    chain.lanes
      .filter((lane) => !busy.has(lane))
      .map(async (lane) => [lane, lane === chain.address ? wallet : await findAccount(chain, lane)] as const),
  )
  return free.flatMap(([lane, account]) => (account === undefined ? [] : next(lane, account)))
}

/**
 * By transfer id, what was signed before. Left out are places of which it is proven that they paid the withdrawal nothing: another
 * transaction has used the number, or its own has and failed. A lane that says "used" without that proof may have used it for
 * these very bytes.
 */
async function signedEarlier(
  tx: Transaction,
  chain: StellarChain,
  withdrawals: readonly Withdrawal[],
): Promise<Map<string, Earlier>> {
  const ids = withdrawals.map(({ transfer_id }) => transfer_id)
  const earlier = new Map<string, Earlier>()
  const signed = await selectPaying(tx, 'STELLAR', ids)
  for (const { transfer_ids, ...transaction } of signed) {
    const { raw_transaction } = transaction
    if (!isOurs(raw_transaction)) continue
    const { lane, sequence } = paymentsIn(raw_transaction)
    const user = await provenUserOf(chain, { lane, sequence })
    const isPaid = user !== undefined && !(await hasFailed(chain, user))
    // A former key's lanes give no number again: there, the word of two Horizons must do.
    if (user === undefined && !chain.lanes.includes(lane) && (await hasPassed(chain, transaction))) continue
    for (const id of transfer_ids) {
      const isItself = signed.some((one) => one.crypto_tx_hash === user && one.transfer_ids.includes(id))
      const { places, times } = earlier.get(id) ?? NEVER
      const isProven = user !== undefined && !(isItself && isPaid)
      earlier.set(id, { places: isProven ? places : [...places, { lane, sequence }], times: times + 1 })
    }
  }
  return earlier
}
