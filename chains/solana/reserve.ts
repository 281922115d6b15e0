import { PLATFORM_ID } from '../../src/db/ids.ts'
import type { Transaction } from '../../src/db/database.ts'
import type { Withdrawal } from '../../src/networks/network.ts'
import { selectOpenTransactions } from '../../src/networks/network-transactions.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { deduct as deductFrom, owedOn, payFrom, type Money } from '../kit/owed-first.ts'
import { hasMoved, readAccounts, tokenAccountOf } from './accounts.ts'
import { GAS_ASSET, NETWORK, offChain, onChain, type Facts, type SolanaChain } from './chain.ts'
import { larger } from '../kit/units.ts'
import { UNITS_TYPICAL } from './fees.ts'
import { accountOf, assetOf } from './deposit-accounts.ts'
import { TOKEN_2022 } from './instructions.ts'
import { laneAccounts, openLanes, SWEEP_LANES, walletsOf, type OpenLanes } from './lanes.ts'
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
    return payment !== undefined && walletsOf(chain).includes(payment.from) ? [payment] : []
  })
  const making = await makingLanes(tx)
  const wallet = chain.hotWallet.address
  const sources = [...facts.tokens.keys()].map((asset) => {
    return { asset, account: accountOf(facts.tokens, wallet, asset)! }
  })
  const accounts = await readAccounts(chain.rpc, [
    wallet,
    ...sources.map(({ account }) => account),
    ...laneAccounts(chain).map(({ account }) => account),
  ])
  // The network keeps no account with less than the rent.
  const lamports =
    (accounts.get(wallet)?.lamports ?? 0n) - facts.rentOfWallet - making - sweepsCostMax(chain, facts)
  const spendable = new Map([
    [GAS_ASSET, lamports],
    ...sources.map(({ asset, account }) => {
      const found = tokenAccountOf(accounts.get(account))
      return [asset, found === undefined || found.isFrozen ? 0n : found.units] as const
    }),
  ])
  const lanes = await openLanes(tx, chain, accounts, open)
  for (const payment of newestOfEach(open.filter(({ from }) => from === wallet))) {
    // Where its nonce has moved, the balances have what it did.
    if (!hasMoved(accounts, payment)) deduct(spendable, chain, facts, payment)
  }
  const owed = await owedOn(tx, NETWORK, chain.withdrawals, withdrawals)
  const money = moneyOf(spendable, unitPrice)
  return { lanes, spendable, pay: (withdrawal, cost) => payFrom(money, owed, withdrawal, cost) }
}

function moneyOf(spendable: Map<string, bigint>, unitPrice: bigint): Money {
  const typicalFee = feeOf({ unitPrice, unitLimit: UNITS_TYPICAL })
  return {
    ...{ spendable, ownAsset: GAS_ASSET, unitsOf: onChain, feeOf: () => typicalFee },
    text: (asset, units) => `${offChain(asset, units)} ${asset}`,
    wallet: 'the hot wallet',
  }
}

/** The most that the sweeps under way can take, with the wallet's own accounts of tokens: sweeping asks for no reservation. */
const sweepsCostMax = ({ depositKeys, feeCeiling }: SolanaChain, { rentOfToken, tokens }: Facts): bigint =>
  depositKeys === undefined
    ? 0n
    : BigInt(SWEEP_LANES) * feeCeiling + BigInt(tokens.size) * rentOfToken(TOKEN_2022)

/** Replacements have the nonce of the one before them: at most one of them is made. */
const newestOfEach = (open: readonly ParsedPayment[]): Iterable<ParsedPayment> =>
  new Map(open.map((payment) => [`${payment.nonceAccount} ${payment.nonce}`, payment])).values()

/** What the making of lanes takes that is under way, in lamports. */
async function makingLanes(tx: Transaction): Promise<bigint> {
  const { rows } = await tx.query<{ amount: string }>(
    `select amount from sweeps where customer_id = '${PLATFORM_ID}' and network = $1 and state in ('SIGNED', 'BROADCAST')`,
    [NETWORK],
  )
  return rows.reduce((sum, { amount }) => sum + onChain(GAS_ASSET, amount) + SIGNATURE_FEE, 0n)
}

/** Takes what a payment under way can take: it may be replaced until it offers `fee_ceiling` for each of its transfers. */
function deduct(
  spendable: Map<string, bigint>,
  { feeCeiling }: SolanaChain,
  facts: Facts,
  payment: ParsedPayment,
): void {
  deductFrom(spendable, GAS_ASSET, larger(feeOf(payment), BigInt(payment.transfers.length) * feeCeiling))
  for (const { units, mint, program, madeFor } of payment.transfers) {
    if (madeFor !== undefined) deductFrom(spendable, GAS_ASSET, facts.rentOfToken(program))
    const asset = assetOf(facts.tokens, mint)
    if (asset !== undefined) deductFrom(spendable, asset, units)
  }
}
