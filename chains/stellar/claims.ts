import { isDeepStrictEqual } from 'node:util'
import type { Queryable } from '../../src/db/database.ts'
import type { ClaimedTransaction, PaidWithdrawal } from '../../src/networks/network.ts'
import type { MovedOnChain, PaymentOnChain } from '../../src/networks/moved-on-chain.ts'
import { asSecondHas, decimalOf, stroops, type StellarChain } from './chain.ts'
import { unrecordedAmong } from '../kit/unknown-spends.ts'
import { arrivalIn } from './deposits.ts'
import { isOurs, muxed, paymentIn } from './envelope.ts'
import { PAGE, type OperationRecord, type TransactionRecord } from './horizon.ts'
import { feeOf, findTransaction, hashIn } from './status.ts'
import { depositAddressesAmong } from '../../src/networks/deposit-addresses.ts'

/**
 * The hot wallet's transaction that, by an operator's word, has paid a withdrawal: a payment that Bursar signed, and this
 * database has lost. Throws an Error where it does not pay the withdrawal, or the withdrawal's own bytes may be made as well.
 */
export async function claimTransaction(
  chain: StellarChain,
  { asset, amount, destination_address, memo, raw_transaction }: PaidWithdrawal,
  hash: string,
): Promise<ClaimedTransaction> {
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
  const paid = paymentIn(raw)
  const isSame =
    paid.destination === destination_address &&
    paid.asset === chain.assets.get(asset) &&
    stroops(paid.amount) === stroops(amount) &&
    (paid.memo ?? null) === memo
  if (!isSame) throw new Error(`${hash} does not pay ${amount} ${asset} to ${destination_address}`)
  if (raw_transaction !== null && isOurs(raw_transaction)) {
    const own = paymentIn(raw_transaction)
    if (own.lane !== paid.lane || own.sequence !== paid.sequence)
      throw new Error(
        `${hash} has another number, and the withdrawal's own transaction may still be made, too`,
      )
  }
  return { raw_transaction: raw, crypto_tx_hash: hash }
}

interface Effect {
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
  const effects = await chain.horizon.records<Effect>(`/transactions/${hash}/effects?limit=${PAGE}`)
  const symbolOf = new Map([...chain.assets].map(([symbol, asset]) => [asset, symbol]))
  const own = new Set([chain.address, ...(chain.keys?.lanes ?? []).map((key) => key.publicKey())])
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
  const moved = [...sums].flatMap(([asset, units]) =>
    units === 0n ? [] : { asset, amount: decimalOf(units) },
  )
  const networkFee = feeOf(chain, record)
  if (moved.length === 0 && networkFee === undefined)
    throw new Error(`${hash} moves nothing of the hot wallet`)
  return { moved, payments, ...(networkFee && { networkFee }) }
}

const startingBalance = (effects: readonly Effect[], account: string): string =>
  (
    effects.find((effect) => effect.type === 'account_created' && effect.account === account) as
      | { starting_balance?: string }
      | undefined
  )?.starting_balance ?? '0'
