import type { Hex } from 'viem'
import { getAddress, hexToBigInt, parseGwei } from 'viem/utils'
import { parseAmount } from '../../assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../assets/catalogue.ts'
import type { Database, Transaction } from '../../db/database.ts'
import { initialCursor, depositReader, isCursor, NATIVE_INDEX } from './deposit-scan.ts'
import { at, evmNode, headOf, NodeError, says, type Call, type Receipt } from './node.ts'
import { DestinationRefused } from '../node-failure.ts'
import { BEHIND_ANOTHER, type WaitingReason } from '../waiting.ts'
import {
  closeReservation,
  openReservation,
  spend,
  acknowledgeNonce,
  type HotWalletReservation,
} from './nonces.ts'
import { tryTransfers, type Trial } from './simulation.ts'
import {
  isTreasurySend,
  longestWaiting,
  neededByCustomers,
  unsignedWithdrawals,
  type Reserved,
  type Unsigned,
} from '../longest-waiting.ts'
import { sweepTermsOf, type SweepConfig } from './sweep-worth.ts'
import { sweep, unswept } from './sweeps.ts'
import { lostTransactions, rebroadcastTakenBack, resend } from './taken-back.ts'
import { hotWalletFollower, type HotWalletFollower } from './confirmations.ts'
import {
  amountIn,
  balancesAt,
  feeMax,
  feePaid,
  feesNow,
  gasWithRoom,
  isNative,
  isOurs,
  loggedTransfer,
  logIndexOf,
  fetchSigned,
  offChain,
  onChain,
  parse,
  PLAIN_GAS,
  publishingFee,
  replacement,
  send,
  signed,
  tokensOf,
  tooDear,
  transferOf,
  type EvmChain,
  type EvmSigner,
  type Fees,
  type LoggedTransfer,
} from './transactions.ts'
import { checkCredited, cursorAt, newestInChain, requireReceived, verifyDeposits } from './deposit-checks.ts'
import { movedBy } from './moved.ts'
import { chainIdentity, doubtAfterFailures } from './chain-identity.ts'
import { depositKeysOf, type DepositKey } from './deposit-keys.ts'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  ClaimedTransaction,
  NetworkAdapter,
  NetworkFee,
  NetworkStatus,
  PaidWithdrawal,
  PaymentStatus,
  Refusal,
  SignedTransaction,
  Signing,
  Withdrawal,
} from '../network.ts'

/** One EVM network: the node, the keys and the limits. */
export interface EvmConfig extends SweepConfig {
  /** JSON-RPC over HTTP. It may hold a provider's key: it stands in no error and no log. */
  rpcUrl: string
  /** What the node must answer to eth_chainId. The catalogue's main network unless given. */
  chainId?: number
  /** Pays every withdrawal. */
  hotWallet: EvmSigner
  /** Derives deposit addresses and signs for them; without it there are none, and without a private one nothing is swept. */
  depositKey?: DepositKey
  /** How deep a block must be before it counts: 1 is the newest block. Or the tag of the network's own finality. */
  confirmations: number | 'safe' | 'finalized'
  /** Most that is offered for a unit of gas, in gwei. Above it withdrawals wait. */
  maxFeePerGasCeiling: string
  /** Addresses of tokens by asset, instead of the catalogue's: for test networks. */
  tokens?: Record<string, string>
  /** Gas asset below which the operator is to be told. */
  lowMark?: string
  /** Most of the hot wallet's transactions that are signed and not mined at a time. */
  maxInFlight?: number | undefined
  pollMs?: number
  /** A transaction that is neither made nor dropped for so long gets higher fees, if its own are below the current. */
  stuckAfterMs?: number
  /** How long a withdrawal waits for the hot wallet before no younger one is paid from it. */
  reserveAfterMs?: number
  /** What the hot wallet made before this nonce was looked at, and is not Bursar's to know. */
  firstNonce?: number
  /**
   * A second, independent node: what it does not say, too, is not credited, from these amounts on (decimal strings by
   * asset; an asset that is not named: every amount).
   */
  verify?: { rpcUrl: string; above: Record<string, string> }
}

const POLL_MS = 2_000
const STUCK_AFTER_MS = 180_000
/** Nodes keep some transactions of an account and drop those above: geth 16 when its pool is full, and 64 at most. */
const IN_FLIGHT_MAX = 64

/**
 * Withdrawals and deposits over a real EVM node, by JSON-RPC. What a withdrawal is made by is decided once: its nonce
 * is allotted in the transaction that keeps the signed bytes, and whatever replaces them later has the same nonce, so
 * that the chain makes one of them. Nothing that is signed is ever reported as refused.
 */
export function evmAdapter(network: CryptoNetwork, config: EvmConfig, db: Database): NetworkAdapter {
  const chain = chainOf(network, config, db)
  const keys = config.depositKey && depositKeysOf(config.depositKey)
  const follower = hotWalletFollower(chain)
  const deposits = depositReader(db, chain)
  return doubtAfterFailures<NetworkAdapter>(chain, {
    pollMs: config.pollMs ?? POLL_MS,
    signsAlone: true,
    asksNode: true,
    async ready() {
      await headOf(chain.node)
      await chain.ready()
    },
    review: () => ({ verdict: 'PASS' }),
    sign: (tx, withdrawals) => sign(tx, chain, withdrawals),
    broadcast: (withdrawals) => broadcast(chain, withdrawals),
    checkStatus: (withdrawals) => checkStatus(chain, follower, withdrawals),
    replace: (_tx, withdrawals) => replace(chain, withdrawals),
    stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS,
    estimateFee: (asset, destination) => estimateFee(chain, asset, destination),
    refusesDestination: (address) => refusesDestination(chain, address),
    movedBy: (tx, hash) => movedBy(tx, chain, hash),
    claimTransaction: (_db, withdrawal, hash) => claimTransaction(chain, withdrawal, hash),
    resend: (ended) => resend(chain, ended),
    rebroadcastTakenBack: () => rebroadcastTakenBack(db, chain),
    status: () => status(db, chain),
    scanDeposits: (cursor) => deposits.scanDeposits(cursor),
    scanBlocks: (first, last) => deposits.scanBlocks(first, last),
    verifyDeposits: (found) => verifyDeposits(chain, found),
    requireReceived: (customerId, arrival) => requireReceived(db, chain, customerId, arrival),
    checkCredited: (credited) => checkCredited(chain, credited),
    newestInChain: (cursors) => newestInChain(chain, cursors),
    cursorAt: (block) => cursorAt(chain, block),
    initialCursor: async (cursor) => (isCursor(cursor) ? undefined : initialCursor(chain)),
    ...(keys !== undefined && {
      newDepositAddress: async (_network, id) => keys.newAddress(id),
    }),
    ...(keys?.canSign && {
      sweep: (round) => sweep(db, chain, keys, round),
    }),
  })
}

function chainOf(network: CryptoNetwork, config: EvmConfig, db: Database): EvmChain {
  const { family, gasAsset, chainId = 0 } = NETWORKS[network]
  if (family !== 'evm') throw new Error(`${network} is no EVM network`)
  const { confirmations } = config
  if (typeof confirmations === 'number' && confirmations < 1)
    throw new Error('confirmations must be at least 1')
  const node = evmNode(config.rpcUrl)
  const expected = config.chainId ?? chainId
  const tokens = tokensOf(network, config.tokens ?? {})
  const { verify } = config
  const feeCeiling = parseGwei(config.maxFeePerGasCeiling)
  return {
    network,
    node,
    chainId: expected,
    gasAsset,
    tokens,
    hotWallet: config.hotWallet,
    confirmations: typeof confirmations === 'number' ? BigInt(confirmations) : confirmations,
    feeCeiling,
    sweeps: sweepTermsOf(network, tokens, feeCeiling, config),
    stuckAfterMs: config.stuckAfterMs ?? STUCK_AFTER_MS,
    reserveAfterMs: config.reserveAfterMs,
    firstNonce: config.firstNonce ?? 0,
    maxInFlight: config.maxInFlight ?? IN_FLIGHT_MAX,
    ...chainIdentity(network, expected, node, tokens, db),
    ...(verify !== undefined && {
      verify: {
        node: evmNode(verify.rpcUrl),
        above: (asset: string) => parseAmount(verify.above[asset] ?? '0', decimalsOf(asset))!,
      },
    }),
  }
}

// ---------------------------------------------------------------------------------------------- sign

/** Signs in order what the wallet can pay at the current fees; the rest waits, and those of its profile behind it. */
async function sign(tx: Transaction, chain: EvmChain, withdrawals: Withdrawal[]): Promise<Signing[]> {
  await chain.ready()
  const fees = await feesNow(chain)
  const allWait = (reason: WaitingReason) => withdrawals.map(() => deferred(reason))
  const dear = tooDear(fees, chain)
  if (dear !== undefined) return allWait({ code: 'FEE_ABOVE_CEILING', detail: dear })
  const reservation = await openReservation(tx, chain, new Set(withdrawals.map(({ asset }) => asset)))
  if (reservation.blockedReason !== undefined) return allWait(reservation.blockedReason)
  // Only what the wallet can pay is put to the node: it says of anything else that it would revert.
  const tentative = new Map(reservation.spendable)
  const noRoom = roomOf(chain, reservation)
  const longest = await longestWaiting(tx, chain.network, chain.reserveAfterMs)
  const refused = await refusedOf(chain, reservation, fees, longest)
  const reserved = longest.filter(({ transfer_id }) => !refused.has(transfer_id))
  const unsigned = withdrawals.some(isTreasurySend) ? await unsignedWithdrawals(tx, chain.network) : []
  const payFrom = (spendable: HotWalletReservation['spendable'], withdrawal: Withdrawal, gas: bigint) =>
    keptForOlder(chain, spendable, fees, withdrawal, reserved) ??
    keptForCustomers(chain, spendable, fees, withdrawal, unsigned) ??
    pay(chain, spendable, fees, withdrawal, gas)
  const payable = inTurn(
    withdrawals,
    (withdrawal) =>
      refused.get(withdrawal.transfer_id) ?? payFrom(tentative, withdrawal, PLAIN_GAS) ?? noRoom(),
  )
  const estimates = await estimated(
    chain,
    reservation,
    fees,
    withdrawals.filter((_, index) => payable[index] === undefined),
  )
  const decided = new Map<Withdrawal, bigint>()
  const outcomes = inTurn(withdrawals, (withdrawal, index): Signing | undefined => {
    const estimate = estimates.get(withdrawal)
    if (estimate === undefined) return payable[index]
    if ('outcome' in estimate) return estimate
    const short = payFrom(reservation.spendable, withdrawal, estimate.gas)
    if (short === undefined) decided.set(withdrawal, estimate.gas)
    return short
  })
  const signings: Signing[] = []
  for (const [index, withdrawal] of withdrawals.entries()) {
    const gas = decided.get(withdrawal)
    if (gas === undefined) {
      signings.push(outcomes[index]!)
      continue
    }
    const { asset, amount, destination_address } = withdrawal
    const transaction = {
      type: 'eip1559' as const,
      chainId: chain.chainId,
      nonce: reservation.nonce++,
      ...transferOf(chain, asset, destination_address as Hex, onChain(chain, asset, amount)),
      gas,
      maxFeePerGas: fees.offer,
      maxPriorityFeePerGas: fees.tip,
    }
    signings.push({ outcome: 'SIGNED', ...(await signed(chain.hotWallet, transaction)) })
  }
  await closeReservation(tx, chain, reservation)
  return signings
}

/**
 * Whether one more may be in flight, asked in order of each that the wallet can pay: one that waits for the wallet would hold
 * its place in every call, and the others behind it for ever. One that the node refuses leaves its place empty until the next.
 */
function roomOf({ maxInFlight }: EvmChain, { inFlight }: HotWalletReservation): () => Signing | undefined {
  let free = maxInFlight - inFlight
  return () => {
    if (free <= 0)
      return deferred({
        code: 'IN_FLIGHT_LIMIT',
        detail: `${maxInFlight} transactions are in flight, the most at a time`,
      })
    free -= 1
    return undefined
  }
}

const deferred = (reason: WaitingReason) => ({ outcome: 'DEFERRED', reason }) as const

/** Decides in order; behind one that waits, those of its profile wait too. */
function inTurn(
  withdrawals: Withdrawal[],
  decide: (withdrawal: Withdrawal, index: number) => Signing | undefined,
): (Signing | undefined)[] {
  const waiting = new Set<string>()
  return withdrawals.map((withdrawal, index) => {
    const profile = `${withdrawal.customer_id} ${withdrawal.profile_id}`
    if (waiting.has(profile)) return deferred(BEHIND_ANOTHER)
    const signing = decide(withdrawal, index)
    if (signing?.outcome === 'DEFERRED') waiting.add(profile)
    return signing
  })
}

/** Takes a withdrawal and its gas out of what is left; or says what is missing. */
function pay(
  chain: EvmChain,
  spendable: HotWalletReservation['spendable'],
  fees: Fees,
  { asset, amount }: Withdrawal,
  gas: bigint,
): Signing | undefined {
  const units = onChain(chain, asset, amount)
  const fee = feeMax({ gas, maxFeePerGas: fees.offer })
  const needed = isNative(chain, asset)
    ? [[asset, units + fee, 'with its gas'] as const]
    : [[asset, units, ''] as const, [chain.gasAsset, fee, 'for its gas'] as const]
  for (const [what, needs, why] of needed) {
    const there = spendable.get(what)!
    if (there >= needs) continue
    const text = (value: bigint) => `${offChain(chain, what, value)} ${what}`
    const detail = `the hot wallet has ${text(there)} left, the withdrawal needs ${text(needs)} ${why}`.trim()
    return deferred({ code: 'HOT_WALLET_SHORT', detail })
  }
  for (const [what, needs] of needed) spend(spendable, what, needs)
  return undefined
}

/**
 * Whether a withdrawal may not be paid from what is left, because an older one has waited for it for too long. Only its amount
 * is held back, not its gas: else one large withdrawal of the native asset would hold up those of every token.
 */
function keptForOlder(
  chain: EvmChain,
  spendable: HotWalletReservation['spendable'],
  fees: Fees,
  { transfer_id, asset, amount }: Withdrawal,
  reserved: readonly Reserved[],
): Signing | undefined {
  const there = spendable.get(asset)!
  let kept = 0n
  for (const older of reserved) {
    if (older.transfer_id >= transfer_id) continue
    const isToken = !isNative(chain, older.asset)
    if (older.asset === asset) kept += onChain(chain, asset, older.amount)
    if (asset === chain.gasAsset)
      kept += feeMax({ gas: isToken ? TOKEN_GAS : PLAIN_GAS, maxFeePerGas: fees.offer })
    if (kept === 0n || there >= kept + onChain(chain, asset, amount)) continue
    const text = (units: bigint) => `${offChain(chain, asset, units)} ${asset}`
    const detail =
      `the hot wallet has ${text(there)} left, for which withdrawal ${older.transfer_id} has waited too long: ` +
      `${text(kept)} of it are kept for that one`
    return deferred({ code: 'KEPT_FOR_OLDER', detail })
  }
  return undefined
}

/**
 * Whether a send to cold storage would take what customers' withdrawals need that are not signed: their amounts, and the gas
 * of all of them where it is of the asset that gas is paid in.
 */
function keptForCustomers(
  chain: EvmChain,
  spendable: HotWalletReservation['spendable'],
  fees: Fees,
  send: Withdrawal,
  unsigned: readonly Unsigned[],
): Signing | undefined {
  if (!isTreasurySend(send)) return undefined
  const { asset } = send
  let needed = 0n
  for (const theirs of unsigned) {
    if (theirs.asset === asset) needed += onChain(chain, asset, theirs.amount)
    const gas = isNative(chain, theirs.asset) ? PLAIN_GAS : TOKEN_GAS
    if (asset === chain.gasAsset) needed += BigInt(theirs.count) * feeMax({ gas, maxFeePerGas: fees.offer })
  }
  const there = spendable.get(asset)!
  if (needed === 0n || there >= needed + onChain(chain, asset, send.amount)) return undefined
  const text = (units: bigint) => `${offChain(chain, asset, units)} ${asset}`
  return deferred(neededByCustomers(text(there), text(needed)))
}

/**
 * Most gas that the code of a destination may take, beside the transfer's own. Wallets that are contracts take some 10,000
 * to 60,000; a destination that takes more is a computation that the hot wallet would pay for.
 */
const CODE_GAS_MAX = 100_000n

/**
 * The limit of each trial and estimate, and of each transaction: without it a node would spend its own limit (50 million gas
 * and more) on a destination that never returns, and 50 such in one request take longer than the node may. `own` is the
 * estimate of a transfer to the hot wallet itself: on some rollups gas pays for publishing, too.
 */
function gasMostOf(chain: EvmChain, asset: string, own: Hex | NodeError): bigint {
  const typical = isNative(chain, asset) ? PLAIN_GAS : TOKEN_GAS
  const estimate = own instanceof NodeError ? 0n : gasWithRoom(hexToBigInt(own))
  return (estimate > typical ? estimate : typical) + CODE_GAS_MAX
}

const takesTooMuch = (most: bigint) => `a transfer to it takes more than ${most} gas, the most that is paid`

/** What a transfer of nothing to the hot wallet itself takes, by asset. */
async function ownEstimates(
  chain: EvmChain,
  block: bigint,
  moved: readonly { asset: string }[],
): Promise<Map<string, Hex | NodeError>> {
  const from = chain.hotWallet.address
  const assets = [...new Set(moved.map(({ asset }) => asset))]
  const owns = await chain.node.each<Hex>(
    assets.map((asset) => {
      const { value, ...call } = transferOf(chain, asset, from, 0n)
      return ['eth_estimateGas', { from, ...call, value: toQuantity(value) }, at(block)] as const
    }),
  )
  return new Map(assets.map((asset, index) => [asset, owns[index]!]))
}

/** The price that the transaction will have: a contract can refuse every price but none, and would take the estimate in. */
const priceOf = ({ offer, tip }: Fees) => ({
  maxFeePerGas: toQuantity(offer),
  maxPriorityFeePerGas: toQuantity(tip < offer ? tip : offer),
})

/**
 * Of the withdrawals that are about to keep the hot wallet's money, those that would be refused once it is enough. The node
 * tries the native asset as if the wallet had enough (a state override of eth_call, which a node may not have), and a token
 * with what there is of it. Without that, a withdrawal to a contract that reverts would hold up everybody's, and never be paid.
 */
async function refusedOf(
  chain: EvmChain,
  { block, spendable }: Pick<HotWalletReservation, 'block' | 'spendable'>,
  fees: Fees,
  reserved: readonly Reserved[],
): Promise<Map<string, Signing>> {
  const from = chain.hotWallet.address
  const known = reserved.filter(({ asset }) => spendable.has(asset))
  if (known.length === 0) return new Map()
  const ownOf = await ownEstimates(chain, block, known)
  const mostOf = ({ asset }: Reserved) => gasMostOf(chain, asset, ownOf.get(asset)!)
  const trialOf = (one: Reserved, to: Hex): Call => {
    const [asked, there] = [onChain(chain, one.asset, one.amount), spendable.get(one.asset)!]
    const most = there < 0n ? 0n : there
    const units = isNative(chain, one.asset) || asked < most ? asked : most
    const { value, ...call } = transferOf(chain, one.asset, to, units)
    const move = { from, ...call, value: toQuantity(value), gas: toQuantity(mostOf(one)) }
    const enough = value + feeMax({ gas: mostOf(one), maxFeePerGas: fees.offer })
    const override = { [from]: { balance: toQuantity(enough) } }
    return ['eth_call', { ...move, ...priceOf(fees) }, at(block), override]
  }
  const answers = await chain.node.each<Hex>(
    known.flatMap((one) => [trialOf(one, one.destination_address as Hex), trialOf(one, from)]),
  )
  return new Map(
    known.flatMap((one, index): [string, Signing][] => {
      const [toIt, toItself] = [answers[2 * index]!, answers[2 * index + 1]!]
      // What fails to the wallet itself, too, says nothing about the destination.
      if (toItself instanceof NodeError || saysNo(toItself)) return []
      const ranOut = toIt instanceof NodeError && says(toIt, 'outOfGas')
      if (ranOut && ownOf.get(one.asset) instanceof NodeError) return []
      const reverts = toIt instanceof NodeError ? says(toIt, 'reverted') : saysNo(toIt)
      if (!ranOut && !reverts) return []
      const why = ranOut ? takesTooMuch(mostOf(one)) : WOULD_REVERT
      return [[one.transfer_id, { outcome: 'REFUSED', refusal: refusalOf(one, why) }]]
    }),
  )
}

const WOULD_REVERT = 'the network would revert a transfer to the destination address'

/** How much gas a withdrawal takes; or that the node says it would fail, for good or for now. */
type Estimate = { gas: bigint } | Signing

async function estimated(
  chain: EvmChain,
  { block, spendable }: Pick<HotWalletReservation, 'block' | 'spendable'>,
  fees: Fees,
  withdrawals: Withdrawal[],
): Promise<Map<Withdrawal, Estimate>> {
  const from = chain.hotWallet.address
  const ownOf = await ownEstimates(chain, block, withdrawals)
  const mostOf = ({ asset }: Withdrawal) => gasMostOf(chain, asset, ownOf.get(asset)!)
  const moveTo = (to: string, withdrawal: Withdrawal) => {
    const { asset, amount } = withdrawal
    const { value, ...move } = transferOf(chain, asset, to as Hex, onChain(chain, asset, amount))
    return { from, ...move, value: toQuantity(value), gas: toQuantity(mostOf(withdrawal)) }
  }
  const move = (withdrawal: Withdrawal) => moveTo(withdrawal.destination_address, withdrawal)
  const price = priceOf(fees)
  // A token may refuse by answering false instead of reverting, and one that takes a fee delivers less than was sent.
  const { trials, answers: gas } = await tryTransfers(
    chain,
    block,
    withdrawals.map((withdrawal) => {
      const { asset, destination_address } = withdrawal
      return { asset, recipient: destination_address as Hex, call: move(withdrawal) }
    }),
    withdrawals.map(
      (withdrawal) => ['eth_estimateGas', { ...move(withdrawal), ...price }, at(block)] as const,
    ),
  )
  // At a price a node lets a call have no more gas than the wallet can pay. Too little says nothing of the destination.
  const canPayMost = (withdrawal: Withdrawal) => {
    const { asset, amount } = withdrawal
    const value = isNative(chain, asset) ? onChain(chain, asset, amount) : 0n
    return (
      spendable.get(chain.gasAsset)! >= value + feeMax({ gas: mostOf(withdrawal), maxFeePerGas: fees.offer })
    )
  }
  const unpriced = withdrawals.flatMap((withdrawal, index) => {
    const answer = gas[index]!
    const isDoubted = answer instanceof NodeError && !says(answer, 'reverted') && !canPayMost(withdrawal)
    return isDoubted ? [{ withdrawal, index }] : []
  })
  const again = await chain.node.each<Hex>(
    unpriced.map(({ withdrawal }) => ['eth_estimateGas', move(withdrawal), at(block)] as const),
  )
  for (const [place, { index }] of unpriced.entries()) gas[index] = again[place]!
  const outcomes = withdrawals.map((withdrawal, index): NodeError | 'REFUSED' | 'TOO_MUCH' | bigint => {
    const [estimate, { answer }] = [gas[index]!, trials[index]!]
    const errors = [estimate, answer].filter((one) => one instanceof NodeError)
    const ranOut = errors.find((error) => says(error, 'outOfGas'))
    const [error] = errors
    // Where a plain transfer cannot be estimated, the limit itself may be too low.
    if (
      ranOut !== undefined &&
      isNative(chain, withdrawal.asset) &&
      ownOf.get(withdrawal.asset) instanceof NodeError
    )
      return ranOut
    if (ranOut !== undefined) return 'TOO_MUCH'
    if (error !== undefined) return says(error, 'reverted') ? 'REFUSED' : error
    if (saysNo(answer as Hex)) return 'REFUSED'
    const needed = gasWithRoom(hexToBigInt(estimate as Hex))
    return needed < mostOf(withdrawal) ? needed : mostOf(withdrawal)
  })
  const isRefused = (index: number) => outcomes[index] === 'REFUSED' || outcomes[index] === 'TOO_MUCH'
  // A token that is paused, or that has blocked the wallet itself, says nothing about the destination.
  const doubted = withdrawals.filter(
    (withdrawal, index) => isRefused(index) && !isNative(chain, withdrawal.asset),
  )
  const toItself = await chain.node.each<Hex>(
    doubted.map((withdrawal) => ['eth_call', moveTo(from, withdrawal), at(block)] as const),
  )
  const faulty = new Set(
    doubted.filter((_, index) => {
      const answer = toItself[index]!
      return answer instanceof NodeError || saysNo(answer)
    }),
  )
  return new Map(
    withdrawals.map((withdrawal, index): [Withdrawal, Estimate] => {
      const outcome = outcomes[index]!
      if (outcome instanceof NodeError) {
        const detail = `the node cannot estimate it: ${outcome.message}`
        return [withdrawal, deferred({ code: 'NODE_REFUSED', detail })]
      }
      if (typeof outcome === 'bigint') {
        const less = deliversLess(chain, withdrawal, trials[index]!)
        if (less === undefined) return [withdrawal, { gas: outcome }]
        return [withdrawal, deferred({ code: 'TOKEN_DELIVERS_LESS', detail: less })]
      }
      if (faulty.has(withdrawal)) {
        const detail = `${withdrawal.asset} refuses every transfer of the hot wallet`
        return [withdrawal, deferred({ code: 'TOKEN_REFUSES', detail })]
      }
      const why = outcome === 'TOO_MUCH' ? takesTooMuch(mostOf(withdrawal)) : WOULD_REVERT
      const refusal = refusalOf(withdrawal, why)
      return [withdrawal, { outcome: 'REFUSED', refusal }]
    }),
  )
}

/** Why a token's transfer is not paid: the customer would get less than the withdrawal's amount. */
function deliversLess(
  chain: EvmChain,
  { asset, amount }: Withdrawal,
  { arrives }: Trial,
): string | undefined {
  if (arrives === undefined || arrives >= onChain(chain, asset, amount)) return undefined
  return `${asset} would deliver ${offChain(chain, asset, arrives)} of ${amount}: it takes a fee from transfers`
}

/** The boolean false. A call of an account without code, and a token that answers nothing, say 0x. */
const saysNo = (answer: Hex) => /^0x0{64}$/.test(answer)
const toQuantity = (value: bigint): Hex => `0x${value.toString(16)}`

const refusalOf = (
  { destination_address }: Pick<Withdrawal, 'destination_address'>,
  message: string,
): Refusal => ({
  status_details: { invalid_destination_address: { message, destination_address } },
})

// ---------------------------------------------------------------------------------------------- broadcast, progress

/** Never refuses: what is signed has its nonce, and is made sooner or later. What is not taken now waits. */
async function broadcast(chain: EvmChain, withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]> {
  await chain.ready()
  const refusals = await send(chain, withdrawals)
  return refusals.map((refusal) =>
    refusal === undefined
      ? { accepted: true }
      : { accepted: false, reason: { code: 'NODE_REFUSED', detail: refusal.reason } },
  )
}

async function checkStatus(
  chain: EvmChain,
  { follow, markStale }: HotWalletFollower,
  withdrawals: BroadcastWithdrawal[],
): Promise<PaymentStatus[]> {
  await chain.ready()
  const standings = await follow(withdrawals)
  return standings.map((standing, index) => {
    if (standing.state !== 'MINED') return standing
    if (!standing.deep) return { state: 'MINED' }
    const end = ended(chain, withdrawals[index]!, standing.receipt)
    if (end.state === 'UNRESOLVED') markStale(standing.receipt)
    return end
  })
}

/** For an operator who says that this transaction of the hot wallet's is a withdrawal's. */
async function claimTransaction(
  chain: EvmChain,
  { asset, amount, destination_address, raw_transaction }: PaidWithdrawal,
  hash: string,
): Promise<ClaimedTransaction> {
  await chain.ready()
  const made = await fetchSigned(chain, hash as Hex)
  if (made === undefined) throw new Error(`the hot wallet has made no transaction ${hash}`)
  const { nonce, to, value, data } = parse(made.raw_transaction)
  const move = transferOf(chain, asset, destination_address as Hex, onChain(chain, asset, amount))
  const isSame = getAddress(to) === getAddress(move.to) && value === move.value && data === move.data
  if (!isSame) throw new Error(`${hash} does not pay ${amount} ${asset} to ${destination_address}`)
  if (raw_transaction === null) return { ...made, keep: (tx) => acknowledgeNonce(tx, chain, nonce) }
  if (!isOurs(raw_transaction) || parse(raw_transaction).nonce !== nonce)
    throw new Error(
      `${hash} has nonce ${nonce}, and the withdrawal's own transaction may still be made beside it`,
    )
  return made
}

/** With the same nonce and higher fees. */
async function replace(
  chain: EvmChain,
  withdrawals: BroadcastWithdrawal[],
): Promise<(SignedTransaction | undefined)[]> {
  await chain.ready()
  const fees = await feesNow(chain)
  const replacements: (SignedTransaction | undefined)[] = []
  for (const { raw_transaction } of withdrawals) {
    const bumped = await replacement(chain, fees, chain.hotWallet, raw_transaction)
    replacements.push(await affordable(chain, bumped))
  }
  return replacements
}

/**
 * The end of a withdrawal whose transaction is in a confirmed block. What it was to do is read from the signed bytes: the
 * configuration may be another one by now.
 *
 * Only status 0 fails it: nothing has moved then. Status 1 says that the transaction ran, so money may have moved, and a
 * refund may pay twice. A receipt that lacks the token's log (nodes that are pruned or half synced give such), or tells of
 * another amount (a token that takes a fee), is left to an operator.
 */
function ended(chain: EvmChain, withdrawal: BroadcastWithdrawal, receipt: Receipt): PaymentStatus {
  const networkFee = feePaid(chain, receipt)
  const { transactionHash: crypto_tx_hash, status } = receipt
  const transaction = parse(withdrawal.raw_transaction)
  if (status === '0x0') {
    const refusal = refusalOf(withdrawal, `the network reverted transaction ${crypto_tx_hash}`)
    return { state: 'FAILED', refusal, networkFee }
  }
  const unresolved = (detail: string, log?: LoggedTransfer): PaymentStatus => {
    const crypto_tx_index = log === undefined ? NATIVE_INDEX : logIndexOf(log.log)
    const reason = { code: 'UNRESOLVED', detail } as const
    return { state: 'UNRESOLVED', reason, crypto_tx_hash, crypto_tx_index, networkFee }
  }
  if (status !== '0x1')
    return unresolved(`the receipt of ${crypto_tx_hash} does not say whether it succeeded${RESOLVE}`)
  const confirmed = (crypto_tx_index: string): PaymentStatus => {
    return { state: 'CONFIRMED', crypto_tx_hash, crypto_tx_index, networkFee }
  }
  if (transaction.data === undefined) return confirmed(NATIVE_INDEX)
  const { asset } = withdrawal
  const found = loggedTransfer(transaction, receipt)
  if (found === undefined)
    return unresolved(`${crypto_tx_hash} succeeded, and its receipt has no transfer of ${asset}${RESOLVE}`)
  const asked = amountIn(transaction.data)
  if (found.amount === asked) return confirmed(logIndexOf(found.log))
  const text = (units: bigint) => amountText(chain, asset, units)
  return unresolved(
    `${asset} delivered ${text(found.amount)} of ${text(asked)} by ${crypto_tx_hash}${RESOLVE}`,
    found,
  )
}

const RESOLVE = `: look at the destination's balance, then say so by 'bursar withdrawal resolve'`

/** Units of the chain for people. A token that is not configured any more has unknown decimals. */
const amountText = (chain: EvmChain, asset: string, units: bigint): string =>
  asset === chain.gasAsset || chain.tokens.has(asset) ? offChain(chain, asset, units) : `${units} units`

/** A replacement that the wallet can pay: nodes refuse any other, and the one before stays good. */
async function affordable(
  chain: EvmChain,
  bumped: SignedTransaction | undefined,
): Promise<SignedTransaction | undefined> {
  if (bumped === undefined) return undefined
  const transaction = parse(bumped.raw_transaction)
  const there = hexToBigInt(await chain.node.call<Hex>('eth_getBalance', chain.hotWallet.address, 'latest'))
  return there >= transaction.value + feeMax(transaction) ? bumped : undefined
}

// ---------------------------------------------------------------------------------------------- fees, status

/** What a transfer of a token to an address that had none takes, as the catalogue's tokens are written. */
const TOKEN_GAS = 65_000n

/**
 * At the current fees. The estimate for a transfer of nothing to the wallet itself tells where gas counts differently; the
 * one for a single unit to the destination tells what its code takes, whatever the hot wallet holds now.
 */
async function estimateFee(chain: EvmChain, asset: string, destination?: string): Promise<NetworkFee> {
  await chain.ready()
  const from = chain.hotWallet.address
  const estimate = (to: Hex, units: bigint, limit?: bigint): Call => {
    const { value, ...call } = transferOf(chain, asset, to, units)
    const gas = limit === undefined ? {} : { gas: toQuantity(limit) }
    return ['eth_estimateGas', { from, ...call, value: toQuantity(value), ...gas }]
  }
  const [fees, publishing, [toItself]] = await Promise.all([
    feesNow(chain),
    publishingFee(chain),
    chain.node.each<Hex>([estimate(from, 0n)]),
  ])
  const most = gasMostOf(chain, asset, toItself!)
  const [toIt] =
    destination === undefined ? [] : await chain.node.each<Hex>([estimate(destination as Hex, 1n, most)])
  const isOwnKnown = !(toItself instanceof NodeError)
  if (isOwnKnown && toIt instanceof NodeError && says(toIt, 'outOfGas'))
    throw new DestinationRefused(takesTooMuch(most))
  const gasOf = (answer: Hex | NodeError | undefined) =>
    answer === undefined || answer instanceof NodeError ? 0n : hexToBigInt(answer)
  // A destination that cannot be estimated now (the wallet is empty, the token is paused) is taken for a typical one.
  const [own, needed] = [gasOf(toItself), gasOf(toIt)]
  const typical = isNative(chain, asset) ? PLAIN_GAS : TOKEN_GAS
  const larger = needed > own ? needed : own
  const gas = larger > typical ? gasWithRoom(larger) : typical
  return { asset: chain.gasAsset, amount: offChain(chain, chain.gasAsset, gas * fees.current + publishing) }
}

/** What is sent to the hot wallet goes nowhere, and what is sent to a token's contract is lost. */
function refusesDestination({ hotWallet, tokens }: EvmChain, address: string): string | undefined {
  const isIt = (one: string) => one.toLowerCase() === address.toLowerCase()
  if (isIt(hotWallet.address)) return 'it is the wallet that withdrawals are paid from'
  const [token] = [...tokens].find(([, token]) => isIt(token.address)) ?? []
  return token && `it is the contract of ${token}, which keeps what is sent to it`
}

/** Of one block: the hot wallet, and what lies at deposit addresses. */
async function status(db: Database, chain: EvmChain): Promise<NetworkStatus> {
  await chain.ready()
  const block = await headOf(chain.node)
  const assets = [chain.gasAsset, ...chain.tokens.keys()]
  const { address } = chain.hotWallet
  const [balances, elsewhere, lost] = await Promise.all([
    balancesAt(
      chain,
      block,
      assets.map((asset) => ({ address, asset })),
    ),
    unswept(db, chain, block),
    lostTransactions(db, chain),
  ])
  const amounts = (besides: ReadonlyMap<string, bigint>) =>
    Object.fromEntries(
      assets.map((asset, index) => {
        return [asset, offChain(chain, asset, balances[index]! + (besides.get(asset) ?? 0n))] as const
      }),
    )
  const takenBack = lost.map(({ raw_transaction: _, ...one }) => one)
  return {
    height: Number(block),
    held: amounts(elsewhere),
    hotWallet: amounts(new Map()),
    ...(takenBack.length > 0 && { takenBack }),
  }
}
