import { PLATFORM_ID } from '../../src/db/ids.ts'
import type { Transaction } from '../../src/db/database.ts'
import {
  isTreasurySend,
  longestWaiting,
  NEEDS_UNKNOWN,
  neededByCustomers,
  unsignedWithdrawals,
} from '../../src/networks/longest-waiting.ts'
import type { Withdrawal } from '../../src/networks/network.ts'
import { selectOpenTransactions } from '../../src/networks/network-transactions.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { nonceOf, readAccounts, tokenAccountOf } from './accounts.ts'
import { GAS_ASSET, NETWORK, offChain, onChain, type Facts, type SolanaChain } from './chain.ts'
import { UNITS_TYPICAL } from './fees.ts'
import { associatedOf, TOKEN_2022 } from './instructions.ts'
import { laneAccounts, openLanes, SWEEP_LANES, type OpenLanes } from './lanes.ts'
import { feeOf, paymentIn, SIGNATURE_FEE, type ParsedPayment } from './transaction.ts'

/** The hot wallet while one transaction signs from it. Its amounts go down as payments are decided. */
export interface Reservation {
  lanes: OpenLanes
  /** By asset, in units of the chain: the balance, less signed transactions that are not made. May be below zero. */
  spendable: Map<string, bigint>
  /** The reason why a payment that costs this fee and rent waits; undefined where it was deducted. */
  pay(withdrawal: Withdrawal, cost: bigint): WaitingReason | undefined
}

/**
 * Reserves the hot wallet until the transaction ends: the rows of its lanes are locked. Signed transactions are read before
 * the accounts, all of which are of one slot: a transaction that is made in between has moved its nonce by then.
 */
export async function reserve(
  tx: Transaction,
  chain: SolanaChain,
  facts: Facts,
  withdrawals: readonly Withdrawal[],
  unitPrice: bigint,
): Promise<Reservation> {
  const open = (await selectOpenTransactions(tx, NETWORK)).flatMap(({ raw_transaction }) => {
    const payment = paymentIn(raw_transaction)
    return payment?.from === chain.hotWallet.address ? [payment] : []
  })
  const making = await makingLanes(tx)
  const wallet = chain.hotWallet.address
  const sources = new Map(
    [...facts.tokens].map(([asset, { mint, program }]) => [asset, associatedOf(wallet, mint, program)]),
  )
  const accounts = await readAccounts(chain.rpc, [
    wallet,
    ...sources.values(),
    ...laneAccounts(chain).map(({ account }) => account),
  ])
  // The network keeps no account with less than the rent.
  const lamports =
    (accounts.get(wallet)?.lamports ?? 0n) - facts.rentOfWallet - making - sweepsCostMax(chain, facts)
  const spendable = new Map([
    [GAS_ASSET, lamports],
    ...[...sources].map(([asset, account]) => {
      const found = tokenAccountOf(accounts.get(account))
      return [asset, found === undefined || found.isFrozen ? 0n : found.units] as const
    }),
  ])
  const lanes = await openLanes(tx, chain, accounts, open)
  for (const one of newestOfEach(open)) {
    const nonce = nonceOf(accounts.get(one.nonceAccount), wallet)
    // Its nonce has moved: the balances have what it did.
    if (nonce === undefined || nonce === one.nonce) deduct(spendable, facts, one)
  }
  return { lanes, spendable, pay: await rulesOf(tx, chain, spendable, withdrawals, unitPrice) }
}

/** The most that the sweeps under way can take, each with an account of the wallet's own: sweeping asks for no reservation. */
const sweepsCostMax = ({ depositKeys, feeCeiling }: SolanaChain, { rentOfToken }: Facts): bigint =>
  depositKeys === undefined ? 0n : BigInt(SWEEP_LANES) * (feeCeiling + rentOfToken(TOKEN_2022))

/** Replacements have the nonce of the one before them: at most one of them is made. */
const newestOfEach = (open: readonly ParsedPayment[]): Iterable<ParsedPayment> =>
  new Map(open.map((one) => [`${one.nonceAccount} ${one.nonce}`, one])).values()

/** What the making of lanes takes that is under way, in lamports. */
async function makingLanes(tx: Transaction): Promise<bigint> {
  const { rows } = await tx.query<{ amount: string }>(
    `select amount from evm_sweeps where customer_id = '${PLATFORM_ID}' and network = $1 and state in ('SIGNED', 'BROADCAST')`,
    [NETWORK],
  )
  return rows.reduce((sum, { amount }) => sum + onChain(GAS_ASSET, amount) + SIGNATURE_FEE, 0n)
}

function deduct(spendable: Map<string, bigint>, facts: Facts, one: ParsedPayment): void {
  const rent = one.madeFor === undefined ? 0n : facts.rentOfToken(one.program)
  const [asset] = [...facts.tokens].find(([, { mint }]) => mint === one.mint) ?? []
  const native = one.mint === undefined ? one.units : 0n
  spend(spendable, GAS_ASSET, native + feeOf(one) + rent)
  if (asset !== undefined) spend(spendable, asset, one.units)
}

function spend(spendable: Map<string, bigint>, asset: string, units: bigint): void {
  const before = spendable.get(asset)
  if (before !== undefined) spendable.set(asset, before - units)
}

/** How payments are taken out of the spendable amounts, in the order of `decide`. */
async function rulesOf(
  tx: Transaction,
  chain: SolanaChain,
  spendable: Map<string, bigint>,
  withdrawals: readonly Withdrawal[],
  unitPrice: bigint,
): Promise<Reservation['pay']> {
  const reserved = await longestWaiting(tx, NETWORK, chain.reserveAfterMs)
  const unsigned = withdrawals.some(isTreasurySend) ? await unsignedWithdrawals(tx, NETWORK) : []
  const typicalFee = feeOf({ unitPrice, unitLimit: UNITS_TYPICAL })
  const text = (asset: string, units: bigint) =>
    `${units < 0n ? '-' : ''}${offChain(asset, units < 0n ? -units : units)} ${asset}`
  const left = (asset: string) => spendable.get(asset) ?? 0n

  function keptForOlder({ transfer_id, asset }: Withdrawal, units: bigint): WaitingReason | undefined {
    let kept = 0n
    for (const older of reserved) {
      if (older.transfer_id >= transfer_id) continue
      if (older.asset === asset) kept += onChain(asset, older.amount)
      if (asset === GAS_ASSET) kept += typicalFee
      if (kept === 0n || left(asset) >= kept + units) continue
      const detail = `the hot wallet has ${text(asset, left(asset))} left, and keeps ${text(asset, kept)} for withdrawal ${older.transfer_id}, which has waited too long`
      return { code: 'KEPT_FOR_OLDER', detail }
    }
    return undefined
  }

  function keptForCustomers(send: Withdrawal, units: bigint): WaitingReason | undefined {
    if (!isTreasurySend(send)) return undefined
    if (unsigned === undefined) return NEEDS_UNKNOWN
    let needed = 0n
    for (const theirs of unsigned) {
      if (theirs.asset === send.asset) needed += onChain(send.asset, theirs.amount)
      if (send.asset === GAS_ASSET) needed += BigInt(theirs.count) * typicalFee
    }
    if (needed === 0n || left(send.asset) >= needed + units) return undefined
    return neededByCustomers(text(send.asset, left(send.asset)), text(send.asset, needed))
  }

  return (withdrawal, cost) => {
    const { asset, amount } = withdrawal
    const units = onChain(asset, amount)
    const kept = keptForOlder(withdrawal, units) ?? keptForCustomers(withdrawal, units)
    if (kept !== undefined) return kept
    const short = (of: string, needed: bigint, purpose: string) =>
      `the hot wallet has ${text(of, left(of))} left, the withdrawal needs ${text(of, needed)}${purpose}`
    const isNative = asset === GAS_ASSET
    const needed = isNative ? units + cost : units
    if (left(asset) < needed)
      return { code: 'HOT_WALLET_SHORT', detail: short(asset, needed, isNative ? ' with its fee' : '') }
    if (!isNative && left(GAS_ASSET) < cost)
      return { code: 'FEE_NOT_COVERED', detail: short(GAS_ASSET, cost, ' for its fee') }
    spend(spendable, asset, needed)
    if (!isNative) spend(spendable, GAS_ASSET, cost)
    return undefined
  }
}
