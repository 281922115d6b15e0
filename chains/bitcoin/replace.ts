import { RawOldTx } from '@scure/btc-signer/script.js'
import type { Queryable, Transaction } from '../../src/db/database.ts'
import type { BroadcastWithdrawal, SignedTransaction } from '../../src/networks/network.ts'
import { larger, minorOf, smaller, sum } from './amounts.ts'
import { missingAncestorFee } from './ancestor-fees.ts'
import { CHANGE_MIN, inputVbytes } from './choose-coins.ts'
import { openTransactions } from './coin-locks.ts'
import { feeMaxOf } from './consolidate.ts'
import {
  decode,
  hashIn,
  isAsked,
  parse,
  splitOutpoint,
  unsignedHexOf,
  type DecodedTransaction,
  type Outpoint,
} from './decode.ts'
import { feeAt, feeRate } from './fees.ts'
import { paymentsOf } from './payments.ts'
import { mempoolRejection, REPLACEABLE_SEQUENCE_MAX, signOrAsk } from './sign-batch.ts'
import { transactionsFor } from './used-by.ts'
import {
  addressIn,
  hotWalletAddresses,
  isOwnAddress,
  known,
  type BitcoinWallet,
  type DecodedScript,
  type WalletTransaction,
} from './wallet.ts'

/** What the replacements of one round share. Rates are minor units per 1,000 virtual bytes. */
interface ReplacementRound {
  rate: bigint
  /** A replacement must raise the fee by at least this rate, or nodes do not relay it. */
  incrementalRate: bigint
  /** The transactions whose missing fee a replacement of this round already pays. */
  counted: Set<string>
  /** The hashes of the open transactions. */
  open: ReadonlySet<string>
}

/**
 * Replacements with a higher fee: the same inputs and payments, and less change. The node's `psbtbumpfee` may add inputs and
 * other outputs, and its `bumpfee` broadcasts a transaction before Bursar has stored it. A replacement of Bursar's spends
 * exactly the same inputs, so that only one of the two can ever be mined.
 *
 * A transaction whose change is spent is not replaced, because every descendant would become invalid. The last transaction
 * of such a chain is replaced, and pays for its ancestors: miners choose a transaction by its fee together with its
 * ancestors'.
 */
export async function replace(
  tx: Transaction,
  wallet: BitcoinWallet,
  withdrawals: BroadcastWithdrawal[],
): Promise<(SignedTransaction | undefined)[]> {
  const rate = await feeRate(wallet)
  const { incrementalfee } = await wallet.rpc.call<{ incrementalfee: string }>('getnetworkinfo')
  // A transaction whose change an open transaction spends is a parent, and stays.
  const { open } = await openTransactions(tx, wallet)
  const parents = new Set(open.flatMap(({ inputs }) => inputs.map(hashIn)))
  const round: ReplacementRound = {
    rate,
    incrementalRate: minorOf(incrementalfee),
    counted: new Set(),
    open: new Set(open.map(({ crypto_tx_hash }) => crypto_tx_hash)),
  }
  const replacements = new Map<string, SignedTransaction | undefined>()
  for (const { crypto_tx_hash } of withdrawals) {
    if (replacements.has(crypto_tx_hash)) continue
    const together = withdrawals.filter((withdrawal) => withdrawal.crypto_tx_hash === crypto_tx_hash)
    const stays =
      parents.has(crypto_tx_hash) || (await transactionsFor(tx, wallet, together)).other !== undefined
    replacements.set(crypto_tx_hash, stays ? undefined : await replacement(tx, wallet, together, round))
  }
  return withdrawals.map(({ crypto_tx_hash, crypto_tx_index }) => {
    const bumped = replacements.get(crypto_tx_hash)
    return bumped && { ...bumped, ...(crypto_tx_index !== undefined && { crypto_tx_index }) }
  })
}

/** The replacement of the transaction that pays these withdrawals and no others; undefined where it stays. */
async function replacement(
  db: Queryable,
  wallet: BitcoinWallet,
  together: BroadcastWithdrawal[],
  round: ReplacementRound,
): Promise<SignedTransaction | undefined> {
  const { raw_transaction, crypto_tx_index } = together[0]!
  const old = parse(raw_transaction)
  if (!old.inputs.every(({ sequence }) => sequence <= REPLACEABLE_SEQUENCE_MAX)) return undefined
  const found = await sizeAndChange(db, wallet, together)
  if (found === undefined || found.change.length === 0) return undefined
  const amounts = old.outputs.map(({ amount }) => amount)
  const raise = await feeRaise(wallet, together[0]!, { ...found, amounts }, round)
  if (raise === undefined) return undefined
  const newAmounts = takeFromChange(amounts, found.change, raise.amount)
  // Only a consolidation has a highest rate of its own.
  const most = smaller(wallet.ceiling, feeMaxOf(together[0]!) ?? wallet.ceiling)
  if (round.rate > most || newAmounts === undefined) return undefined
  const unsigned = RawOldTx.encode({
    version: old.version,
    inputs: old.inputs.map((input) => ({ ...input, finalScriptSig: new Uint8Array() })),
    outputs: old.outputs.map((output, index) => ({ ...output, amount: newAmounts[index]! })),
    lockTime: old.lockTime,
  })
  const bumped = await signOrAsk(wallet, unsigned)
  // A node that has the old transaction may take no other in its place: by default, Litecoin Core does not.
  if ((await mempoolRejection(wallet, bumped.raw_transaction)) !== undefined) return undefined
  for (const hash of raise.counted) round.counted.add(hash)
  return {
    ...bumped,
    ...(crypto_tx_index !== undefined && { payments: together.length }),
  }
}

/**
 * A transaction's size in virtual bytes, and the indexes of its change outputs. Undefined where it cannot be replaced:
 * somebody else has spent its outputs (an operator, too), or an output is neither a payment nor the wallet's.
 */
export async function sizeAndChange(
  db: Queryable,
  wallet: BitcoinWallet,
  together: readonly BroadcastWithdrawal[],
): Promise<{ vbytes: bigint; change: number[] } | undefined> {
  const { raw_transaction, crypto_tx_hash } = together[0]!
  const [pooled] = await wallet.rpc.batch<{ descendantcount: string }>([['getmempoolentry', crypto_tx_hash]])
  // A replacement would drop its descendants. The count includes the transaction itself.
  if (Number(known(pooled!)?.descendantcount ?? 1) > 1) return undefined
  const found = await changeIn(db, wallet, together)
  if (found === undefined || !isAsked(raw_transaction)) return found
  const spent = await outputsAt(wallet, decode(raw_transaction).inputs)
  const witnesses = spent.map(
    ({ script }) => inputVbytes(Buffer.from(script).toString('hex')) - BARE_INPUT_VBYTES,
  )
  const signed = witnesses.reduce((total, vbytes) => total + vbytes, 0)
  return { ...found, vbytes: found.vbytes + BigInt(signed) }
}

/** An input without its signatures. */
const BARE_INPUT_VBYTES = 41

/**
 * The size of a transaction as it is, and the indexes of its outputs that pay none of these withdrawals. Undefined where one of
 * them pays an address that is not the hot wallet's: a transaction that an operator built may pay others, too.
 */
async function changeIn(
  db: Queryable,
  wallet: BitcoinWallet,
  together: readonly BroadcastWithdrawal[],
): Promise<{ vbytes: bigint; change: number[] } | undefined> {
  const { raw_transaction: raw } = together[0]!
  const hex = isAsked(raw) ? unsignedHexOf(raw) : raw.toString('hex')
  const { vsize, vout } = await wallet.rpc.call<{ vsize: string; vout: { scriptPubKey: DecodedScript }[] }>(
    'decoderawtransaction',
    hex,
  )
  const payments = together.flatMap((paid) => paymentsOf(wallet, { ...paid, raw_transaction: raw }))
  const change = [...vout.keys()].filter((index) => !payments.includes(String(index)))
  for (const index of change) {
    const address = addressIn(vout[index]!.scriptPubKey)
    // A deposit address is the wallet's, too, and what it gets is a customer's.
    const isChange = await isOwnAddress(wallet, address)
    if (!isChange || !(await hotWalletAddresses(db, [address!])).has(address!)) return undefined
  }
  return { vbytes: BigInt(vsize), change }
}

/**
 * The fee that a replacement pays on top, in minor units, and the ancestors that it covers. Undefined where the transaction
 * already pays about the current fee.
 */
async function feeRaise(
  wallet: BitcoinWallet,
  { raw_transaction, crypto_tx_hash }: BroadcastWithdrawal,
  { vbytes, change, amounts }: { vbytes: bigint; change: number[]; amounts: bigint[] },
  { rate, incrementalRate, counted: countedBefore, open }: ReplacementRound,
): Promise<{ amount: bigint; counted: Set<string> } | undefined> {
  const { inputs } = decode(raw_transaction)
  const paid = (await valueOf(wallet, inputs)) - sum(amounts)
  // A signature may be a byte longer than the last one.
  const size = vbytes + BigInt(inputs.length)
  const available = sum(change.map((index) => larger(amounts[index]! - CHANGE_MIN, 0n)))
  const own = feeAt(rate, size)
  const counted = new Set(countedBefore)
  const forAncestors = await missingAncestorFee(
    wallet,
    inputs.map(hashIn),
    { rate, open },
    { counted, except: crypto_tx_hash },
  )
  // Where the change does not cover both, the transaction pays its own fee only.
  const paysForAncestors = own + forAncestors - paid <= available
  const fee = paysForAncestors ? own + forAncestors : own
  if (fee - own + feeAt(rate, vbytes) < paid + feeAt(incrementalRate, size)) return undefined
  return { amount: fee - paid, counted: paysForAncestors ? counted : new Set() }
}

/** The amounts of a transaction's outputs with this much less change; undefined where the change does not cover it. */
function takeFromChange(
  amounts: readonly bigint[],
  change: readonly number[],
  total: bigint,
): bigint[] | undefined {
  const reduced = [...amounts]
  let missing = total
  for (const index of change) {
    const most = reduced[index]! - CHANGE_MIN
    if (most <= 0n) continue
    const taken = smaller(most, missing)
    reduced[index]! -= taken
    missing -= taken
  }
  return missing > 0n ? undefined : reduced
}

/** The sum of outputs of the wallet's transactions, in minor units. */
export const valueOf = async (wallet: BitcoinWallet, outpoints: Outpoint[]): Promise<bigint> =>
  sum((await outputsAt(wallet, outpoints)).map(({ amount }) => amount))

interface DecodedOutputs {
  vout: { value: string; scriptPubKey: { hex: string } }[]
}

async function outputsAt({ rpc }: BitcoinWallet, outpoints: Outpoint[]) {
  const outputs: DecodedTransaction['outputs'] = []
  for (const outpoint of outpoints) {
    const { txid, vout } = splitOutpoint(outpoint)
    const { hex } = await rpc.call<WalletTransaction>('gettransaction', txid)
    // Only its node reads what LITECOIN writes of a payment out of MWEB.
    const read = await rpc.call<DecodedOutputs>('decoderawtransaction', hex)
    const { value, scriptPubKey } = read.vout[vout]!
    outputs.push({ amount: minorOf(value), script: Buffer.from(scriptPubKey.hex, 'hex') })
  }
  return outputs
}
