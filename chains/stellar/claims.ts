import { isDeepStrictEqual } from 'node:util'
import type { Queryable } from '../../src/db/database.ts'
import type { ClaimedTransaction, PaidWithdrawal } from '../../src/networks/network.ts'
import type { MovedOnChain, PaymentOnChain } from '../../src/networks/moved-on-chain.ts'
import { asSecondHas, decimalOf, ownAccounts, placeOf, stroops, type StellarChain } from './chain.ts'
import { doesNotPay } from '../kit/claims.ts'
import { unrecordedAmong } from '../kit/unknown-spends.ts'
import { arrivalIn } from './deposits.ts'
import { accountIn, isOurs, muxed, paymentsIn } from './envelope.ts'
import { PAGE, type OperationRecord, type TransactionRecord } from './horizon.ts'
import { feeIn, feeOfOne, feeUnits, findMade, findTransaction, hashIn, isSamePlace } from './status.ts'
import { depositAddressesAmong } from '../../src/networks/deposit-addresses.ts'

/**
 * The hot wallet's transaction that, by an operator's word, has paid a withdrawal: a payment that Bursar signed, and this
 * database has lost. Throws an Error where it does not pay the withdrawal, or the withdrawal's own bytes may be made as well.
 */
export async function claimTransaction(
  chain: StellarChain,
  withdrawal: PaidWithdrawal,
  hash: string,
): Promise<ClaimedTransaction> {
  const { raw_transaction } = withdrawal
  await chain.horizon.root()
  const record = await findTransaction(chain, hash)
  const raw = record && Buffer.from(record.envelope_xdr, 'base64')
  if (
    record?.successful !== true ||
    raw === undefined ||
    !isOurs(raw) ||
    record.fee_account !== chain.address
  )
    throw new Error(`the hot wallet has sent no transaction ${hash}`)
  const paid = paymentsIn(raw)
  const own = raw_transaction !== null && isOurs(raw_transaction) ? paymentsIn(raw_transaction) : undefined
  const isItsNumber = own !== undefined && isSamePlace(own, paid)
  const place = placeOf(chain, paid, withdrawal)
  if (place < 0) throw doesNotPay(withdrawal, hash, isItsNumber)
  if (own !== undefined && !isItsNumber)
    throw new Error(`${hash} has another number, and the withdrawal's own transaction may still be made, too`)
  const payments = paid.payments.length
  return { raw_transaction: raw, crypto_tx_hash: hash, crypto_tx_index: String(place), payments }
}

interface Effect {
  paging_token: string
  type: string
  account: string
  amount?: string
  asset_type?: string
  asset_code?: string
  asset_issuer?: string
}

/**
 * What a transaction of the platform's own has moved, by its effects on the hot wallet's account, for an operator. Throws an
 * Error where it is known, is in no ledger, moves nothing and costs nothing, or its payments may be customers' deposits.
 */
export async function movedBy(db: Queryable, chain: StellarChain, hash: string): Promise<MovedOnChain> {
  const moved = await effectOf(db, chain, hash)
  const second = asSecondHas(chain, hash)
  if (second !== undefined && !isDeepStrictEqual(await effectOf(db, second, hash), moved))
    throw new Error(`${hash}: the second Horizon says something else`)
  return moved
}

async function effectOf(db: Queryable, chain: StellarChain, hash: string): Promise<MovedOnChain> {
  await chain.horizon.root()
  const record = await chain.horizon.find<TransactionRecord>(`/transactions/${hash}`)
  if (record === undefined) throw new Error(`Horizon has no transaction ${hash}`)
  const inner = hashIn(chain, record)
  if (inner !== hash)
    throw new Error(`${hash} wraps ${inner ?? 'what cannot be read'}: name the transaction in it`)
  if ((await unrecordedAmong(db, 'STELLAR', [hash])).length === 0) throw new Error(`${hash} is known`)
  const path = `/transactions/${hash}/operations?join=transactions&limit=${PAGE}`
  for (const record of await chain.horizon.records<OperationRecord>(path)) {
    const number =
      record.source_account === chain.address ? undefined : (await arrivalIn(chain, record))?.number
    if (number === undefined) continue
    const address = muxed(chain.address, number)
    if ((await depositAddressesAmong(db, [address])).size > 0)
      throw new Error(`${hash} has paid the deposit address ${address}`)
  }
  const effects = await effectsIn(chain, hash)
  const symbolOf = new Map([...chain.assets].map(([symbol, asset]) => [asset, symbol]))
  const own = new Set(ownAccounts(chain))
  const sums = new Map<string, bigint>()
  const payments: PaymentOnChain[] = []
  for (const { type, account, amount = '0', asset_type, asset_code, asset_issuer } of effects) {
    const asset = symbolOf.get(
      asset_type === undefined || asset_type === 'native' ? 'native' : `${asset_code}:${asset_issuer}`,
    )
    const units = stroops(type === 'account_created' ? startingBalance(effects, account) : amount)
    const isIn = type === 'account_credited' || type === 'account_created'
    if (asset === undefined || !(isIn || type === 'account_debited')) continue
    if (own.has(account)) sums.set(asset, (sums.get(asset) ?? 0n) + (isIn ? units : -units))
    else if (isIn) payments.push({ asset, amount: decimalOf(units), address: account })
  }
  let fee = feeUnits(chain, record)
  // Payments that are marked as withdrawals' count for those, with their parts of the fee.
  const marked = await chain.withdrawals.paidBy(db, 'STELLAR', hash)
  const made = marked.length === 0 ? undefined : await findMade(chain, hash)
  for (const place of marked.map(({ crypto_tx_index }) => Number(crypto_tx_index))) {
    const { asset, amount, destination } = made!.transaction.payments[place]!
    const [symbol, { account }] = [symbolOf.get(asset)!, accountIn(destination)]
    sums.set(symbol, (sums.get(symbol) ?? 0n) + stroops(amount))
    fee -= feeOfOne(chain, made!, place)
    const isIt = (one: PaymentOnChain) =>
      one.address === account && one.asset === symbol && stroops(one.amount) === stroops(amount)
    payments.splice(payments.findIndex(isIt), 1)
  }
  const moved = [...sums].flatMap(([asset, units]) =>
    units === 0n ? [] : { asset, amount: decimalOf(units) },
  )
  const networkFee = feeIn(fee)
  if (moved.length === 0 && networkFee === undefined)
    throw new Error(`${hash} moves nothing of the hot wallet`)
  return { moved, payments, ...(networkFee && { networkFee }) }
}

/** All effects: a hundred payments have some three hundred. */
async function effectsIn(chain: StellarChain, hash: string): Promise<Effect[]> {
  const effects: Effect[] = []
  for (;;) {
    const from = effects.length === 0 ? '' : `&cursor=${effects.at(-1)!.paging_token}`
    const path = `/transactions/${hash}/effects?limit=${PAGE}${from}`
    const page = await chain.horizon.records<Effect>(path)
    effects.push(...page)
    if (page.length < PAGE) return effects
  }
}

const startingBalance = (effects: readonly Effect[], account: string): string =>
  (
    effects.find((effect) => effect.type === 'account_created' && effect.account === account) as
      | { starting_balance?: string }
      | undefined
  )?.starting_balance ?? '0'
