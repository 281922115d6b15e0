import type { Transaction } from '../../src/db/database.ts'
import { addressRefusal, memoRefusal } from '../../src/contract/addresses/destination-rules.ts'
import { inOrder } from '../../src/networks/in-order.ts'
import type { Signing, Withdrawal } from '../../src/networks/network.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { selectPaying, selectOpenTransactions } from '../../src/networks/network-transactions.ts'
import { DestinationRefused, NodeRefusal } from '../../src/networks/node-failure.ts'
import {
  deferred,
  reasonOfFailure,
  type WaitingReason,
  refusedDestination,
} from '../../src/networks/waiting.ts'
import { deduct, owedFirst, owedOn, spend, whyShort, type Money } from '../kit/owed-first.ts'
import {
  ACCOUNT_MINIMUM,
  balanceOf,
  decimalOf,
  findAccount,
  GAS_ASSET,
  keysOf,
  spendableOf,
  stroops,
  type StellarChain,
} from './chain.ts'
import { accountIn, isOurs, paymentIn, signPayment } from './envelope.ts'
import type { StellarAccount } from './horizon.ts'
import { provenUserOf, VALID_SECONDS } from './status.ts'
import { whyBlocked } from './unknown-spends.ts'
import { depositAddressesAmong } from '../../src/networks/deposit-addresses.ts'

/** The base fees of a wrapped payment: one for its operation, one for the wrapping. */
const FEES = 2n
/** The largest amount on Stellar, which a trustline without a limit has. */
const UNITS_MAX = 2n ** 63n - 1n

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

/** A number for a transaction: the lane that gives it, and which. */
interface Place {
  lane: string
  sequence: bigint
}

/**
 * Signs in order the withdrawals that have a free lane and that the hot wallet can pay. Each lane has one transaction under way.
 * A withdrawal whose earlier bytes have passed their time bound gets their lane and number again: whatever Horizon says, only
 * one of the two can be made then.
 */
export async function sign(
  tx: Transaction,
  chain: StellarChain,
  withdrawals: Withdrawal[],
): Promise<Signing[]> {
  const keys = keysOf(chain)
  const feeMax = chain.feeCeiling * FEES
  const opened = await openWallet(tx, chain, feeMax)
  if ('code' in opened) return withdrawals.map(() => deferred(opened))
  const { wallet, left, places, closedAt } = opened
  const before = await passedBefore(tx, chain, withdrawals)
  const owed = await owedOn(tx, 'STELLAR', chain.withdrawals, withdrawals)
  const judged = new Map<Withdrawal, Judged>()
  /** Those that are neither refused nor deferred, with their places, where the others are decided. */
  const decide = () => {
    const [money, free] = [moneyOf(new Map(left), feeMax), [...places]]
    return inOrder<Place | NotSigned>(withdrawals, (withdrawal) => {
      const verdict = judged.get(withdrawal)
      if (verdict !== undefined && 'outcome' in verdict) return verdict
      const short = owedFirst(money, owed, withdrawal) ?? whyShort(money, withdrawal, feeMax)
      if (short !== undefined) return deferred(short)
      const place = takePlace(free, before.get(withdrawal.transfer_id))
      if (place === undefined) return NO_LANE
      spend(money, withdrawal, feeMax)
      return place
    })
  }
  // Those that would be signed are asked about. Where one of them must not be, others take its place.
  let decisions = decide()
  for (let round = 1; round <= withdrawals.length; round++) {
    const asked = withdrawals.filter((one, index) => !('outcome' in decisions[index]!) && !judged.has(one))
    if (asked.length === 0) break
    for (const one of asked) judged.set(one, await judge(tx, chain, one, wallet))
    decisions = decide()
  }

  return withdrawals.map((withdrawal, index): Signing => {
    const place = decisions[index]!
    const verdict = judged.get(withdrawal)
    if ('outcome' in place) return place
    if (verdict === undefined || 'outcome' in verdict) return NO_LANE
    const { asset: symbol, amount } = withdrawal
    const signed = signPayment(
      {
        ...place,
        maxTime: closedAt + VALID_SECONDS,
        destination: withdrawal.destination_address,
        asset: chain.assets.get(symbol)!,
        amount,
        memo: withdrawal.memo ?? undefined,
      },
      {
        hotWallet: keys.hotWallet,
        laneKey: keys.lanes.find((one) => one.publicKey() === place.lane) ?? keys.hotWallet,
        passphrase: chain.passphrase,
        creates: verdict.creates,
        feeMax: chain.feeCeiling,
      },
    )
    return { outcome: 'SIGNED', ...signed }
  })
}

interface OpenWallet {
  wallet: StellarAccount
  /** By symbol: what it can pay beyond its reserve and what is under way, in stroops. */
  left: Map<string, bigint>
  places: Place[]
  /** When the newest ledger closed, in seconds. */
  closedAt: bigint
}

/** Opens the hot wallet to sign; or why nothing can be signed now. */
async function openWallet(
  tx: Transaction,
  chain: StellarChain,
  feeMax: bigint,
): Promise<OpenWallet | WaitingReason> {
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
  const open = await openPayments(tx)
  const wallet = await findAccount(chain, chain.address)
  if (wallet === undefined)
    return { code: 'HOT_WALLET_SHORT', detail: `the account ${chain.address} does not exist yet` }
  const left = new Map(
    [...chain.assets].map(([symbol, asset]) => [symbol, spendableOf(wallet, asset)] as const),
  )
  const symbolOf = new Map([...chain.assets].map(([symbol, asset]) => [asset, symbol]))
  for (const { asset, amount } of open) {
    deduct(left, GAS_ASSET, feeMax)
    deduct(left, symbolOf.get(asset) ?? '', stroops(amount))
  }
  const places = await placesOf(chain, wallet, new Set(open.map(({ lane }) => lane)))
  return { wallet, left, places, closedAt }
}

/** Each payment may cost `feeMax`. */
const moneyOf = (spendable: Map<string, bigint>, feeMax: bigint): Money => ({
  ...{ spendable, ownAsset: GAS_ASSET, unitsOf: (_asset, amount) => stroops(amount), feeOf: () => feeMax },
  text: (asset, units) => `${decimalOf(units)} ${asset}`,
  wallet: 'beyond its reserve, the hot wallet',
})

const NO_LANE = deferred({
  code: 'IN_FLIGHT_LIMIT',
  detail: 'each account that numbers transactions has one in flight',
})

/** The payments under way, without those whose bytes have ended. */
async function openPayments(tx: Transaction) {
  const rows = await selectOpenTransactions(tx, 'STELLAR')
  return rows.flatMap(({ raw_transaction, used_by }) =>
    used_by === null && isOurs(raw_transaction) ? paymentIn(raw_transaction) : [],
  )
}

/** The free lanes that exist, with their next numbers: the hot wallet itself, and its channel accounts. */
async function placesOf(
  chain: StellarChain,
  wallet: StellarAccount,
  busy: ReadonlySet<string>,
): Promise<Place[]> {
  const next = (lane: string, { sequence }: StellarAccount) => ({ lane, sequence: BigInt(sequence) + 1n })
  const channels = await Promise.all(
    keysOf(chain)
      .lanes.map((key) => key.publicKey())
      .filter((lane) => !busy.has(lane))
      .map(async (lane) => [lane, await findAccount(chain, lane)] as const),
  )
  return [
    ...channels.flatMap(([lane, account]) => (account === undefined ? [] : next(lane, account))),
    ...(busy.has(chain.address) ? [] : [next(chain.address, wallet)]),
  ]
}

/**
 * By transfer id, the lanes and numbers of bytes that were signed for it before. Left out are those whose number another
 * transaction is proven to have used. A lane that says "used" without that proof may have used it for these very bytes.
 */
async function passedBefore(
  tx: Transaction,
  chain: StellarChain,
  withdrawals: readonly Withdrawal[],
): Promise<Map<string, Place[]>> {
  const ids = withdrawals.map(({ transfer_id }) => transfer_id)
  const passed = new Map<string, Place[]>()
  const signed = await selectPaying(tx, 'STELLAR', ids)
  for (const { raw_transaction, transfer_ids } of signed) {
    if (!isOurs(raw_transaction)) continue
    const { lane, sequence } = paymentIn(raw_transaction)
    const user = await provenUserOf(chain, lane, sequence)
    const isItself = signed.some(
      (one) => one.crypto_tx_hash === user && one.transfer_ids[0] === transfer_ids[0],
    )
    if (user !== undefined && !isItself) continue
    for (const id of transfer_ids) passed.set(id, [...(passed.get(id) ?? []), { lane, sequence }])
  }
  return passed
}

/** Takes a free place: any, or the one that earlier bytes of the withdrawal have. Undefined while that is taken. */
function takePlace(places: Place[], before: readonly Place[] | undefined): Place | undefined {
  if (before === undefined) return places.shift()
  const index = places.findIndex((one) =>
    before.every(({ lane, sequence }) => lane === one.lane && sequence === one.sequence),
  )
  return index < 0 ? undefined : places.splice(index, 1)[0]
}

// ---------------------------------------------------------------------------------------------- the destination

type NotSigned = Exclude<Signing, { outcome: 'SIGNED' }>
type Judged = { creates: boolean } | NotSigned

/** Whether the destination can take the payment now. One that cannot be asked about waits alone. */
async function judge(
  tx: Transaction,
  chain: StellarChain,
  withdrawal: Withdrawal,
  wallet: StellarAccount,
): Promise<Judged> {
  const { asset, amount, destination_address, memo } = withdrawal
  const refused = (message: string): Judged => ({
    outcome: 'REFUSED',
    refusal: refusedDestination(withdrawal, message),
  })
  const destination = { address: destination_address, asset, ...(memo !== null && { memo }) }
  const rule = addressRefusal('STELLAR', destination) ?? refusesDestination(chain, destination_address)
  if (rule !== undefined) return refused(rule)
  const memoFault = memoRefusal('STELLAR', destination)
  if (memoFault !== undefined) return refused(`the memo ${memoFault}`)
  try {
    const { account: to, id } = accountIn(destination_address)
    if (to === chain.address && (await depositAddressesAmong(tx, [destination_address])).size === 0)
      return refused('it is of the wallet that withdrawals are paid from, and nobody has it')
    const account = to === chain.address ? wallet : await findAccount(chain, to)
    if (asset !== GAS_ASSET) {
      const own = balanceOf(wallet, chain.assets.get(asset)!)
      if (own?.is_authorized === false)
        return deferred({
          code: 'TOKEN_REFUSES',
          detail: `the issuer of ${asset} has revoked the hot wallet`,
        })
      const fault = tokenFault(chain, account, asset, to === chain.address ? 0n : stroops(amount))
      if (fault !== undefined) return refused(fault)
    }
    if (account === undefined) {
      if (id !== undefined) return refused(`the account ${to} does not exist`)
      return stroops(amount) < ACCOUNT_MINIMUM
        ? refused(`the account does not exist, and ${decimalOf(ACCOUNT_MINIMUM)} XLM open one`)
        : { creates: true }
    }
    // SEP-29: MQ== is 1.
    if (account.data['config.memo_required'] === 'MQ==' && memo === null && id === undefined)
      return refused('the receiver requires a memo (SEP-29), and the withdrawal has none')
    return { creates: false }
  } catch (error) {
    if (!(error instanceof NodeRefusal)) throw error
    return deferred(reasonOfFailure(error))
  }
}

/** Why an account cannot take an amount of a token. */
function tokenFault(
  chain: StellarChain,
  account: StellarAccount | undefined,
  asset: string,
  amount: bigint,
): string | undefined {
  if (account === undefined) return `the account does not exist, so it cannot hold ${asset}`
  const line = balanceOf(account, chain.assets.get(asset)!)
  if (line === undefined) return `the account has no trustline for ${asset}`
  if (line.is_authorized === false) return `the issuer of ${asset} has not authorised the account`
  const room = line.limit === undefined ? UNITS_MAX : stroops(line.limit)
  return stroops(line.balance) + stroops(line.buying_liabilities ?? '0') + amount > room
    ? `the account's trustline has no room for that much ${asset}`
    : undefined
}

/** Why an address is not paid. A muxed address of the hot wallet may be a customer's deposit address. */
export function refusesDestination(chain: StellarChain, address: string): string | undefined {
  if (address === chain.address) return 'it is the wallet that withdrawals are paid from'
  const isLane = chain.keys?.lanes.some((key) => key.publicKey() === accountIn(address).account)
  return isLane ? 'it is an account of the wallet that withdrawals are paid from' : undefined
}
