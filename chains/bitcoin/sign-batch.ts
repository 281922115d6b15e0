import assert from 'node:assert/strict'
import { RawOldTx } from '@scure/btc-signer/script.js'
import type { Transaction } from '../../src/db/database.ts'
import type { SignedTransaction, Signing, Withdrawal } from '../../src/networks/network.ts'
import { outputScriptOf } from '../../src/contract/addresses/addresses.ts'
import { WalletLocked } from '../../src/networks/node-failure.ts'
import { deferred, refusedDestination, type WaitingReason } from '../../src/networks/waiting.ts'
import { minorOf } from './amounts.ts'
import { concernsAll, isAboutScripts, isDust } from './reject-reasons.ts'
import { missingAncestorFee } from './ancestor-fees.ts'
import { Batch, type Coin, type BatchPayment, type TransactionPlan, type PlanLimits } from './choose-coins.ts'
import { setLocks, type Coins } from './coin-locks.ts'
import { asked, decode, hashIn, isAsked, splitOutpoint, unsignedHexOf } from './decode.ts'
import { RpcError, type RpcCall } from '../kit/json-rpc.ts'
import {
  hotWalletAddresses,
  isMine,
  isWatching,
  NOT_KNOWN,
  OWN_ADDRESS,
  type AddressInfo,
  type BitcoinWallet,
} from './wallet.ts'

/** Most transactions that are built and tried, until the node accepts one. */
const TRIES_MAX = 12
/** Most times that coins are chosen again, because unmined change among them needs a higher fee. */
const COIN_CHOICES_MAX = 3
/** The highest sequence of an input that can be replaced (BIP 125). */
export const REPLACEABLE_SEQUENCE_MAX = 0xffff_fffd
const FINAL_SEQUENCE = 0xffff_ffff
// By Bitcoin Core's rpc/protocol.h.
const WALLET_ERROR = -4
const UNLOCK_NEEDED = -13

/** A withdrawal whose address the node accepts. */
export interface Payable extends BatchPayment {
  withdrawal: Withdrawal
}

/** The outcome for each withdrawal, as it becomes known. */
export type Signings = Map<Withdrawal, Signing>

export interface SigningRound {
  coins: Coins
  rate: bigint
  signings: Signings
}

export interface SigningLimits extends PlanLimits {
  /** The hashes of the open transactions. */
  open: ReadonlySet<string>
}

/**
 * The withdrawals whose address the node accepts; the others are refused. Addresses of the hot wallet itself are refused,
 * too, except for a consolidation.
 */
export async function payableAmong(
  tx: Transaction,
  wallet: BitcoinWallet,
  withdrawals: Withdrawal[],
  signings: Signings,
): Promise<Payable[]> {
  const infos = await wallet.rpc.batch<AddressInfo>(
    withdrawals.map(({ destination_address }) => ['getaddressinfo', destination_address]),
  )
  const isOwn = ({ consolidation_fee_max }: Withdrawal, info: AddressInfo | RpcError) =>
    consolidation_fee_max == null && !(info instanceof RpcError) && isMine(wallet, info)
  const own = withdrawals.flatMap((withdrawal, index) =>
    isOwn(withdrawal, infos[index]!) ? withdrawal.destination_address : [],
  )
  const hotWallet = await hotWalletAddresses(tx, own)
  return withdrawals.flatMap((withdrawal, index): Payable | [] => {
    const { destination_address, amount } = withdrawal
    const info = infos[index]!
    if (info instanceof RpcError && info.code !== NOT_KNOWN) throw info
    if (!(info instanceof RpcError) && !hotWallet.has(destination_address)) {
      return { withdrawal, amount: minorOf(amount), script: scriptOf(wallet, destination_address) }
    }
    const fault = info instanceof RpcError ? info.reason : OWN_ADDRESS
    signings.set(withdrawal, refused('destination address', fault, withdrawal))
    return []
  })
}

/**
 * Signs one transaction for all these payments, or for some of them where the node does not accept all. A payment below the
 * dust limit is refused; where any one payment may be at fault, half of them are tried. Locks the coins of the transaction
 * that it signed.
 */
export async function signAccepted(
  wallet: BitcoinWallet,
  chosen: Payable[],
  coins: readonly Coin[],
  limits: SigningLimits,
  signings: Signings,
): Promise<void> {
  const untried: Payable[][] = [chosen]
  let reason: WaitingReason = { code: 'NEXT_TRANSACTION', detail: 'the next transaction pays it' }
  for (let tries = 1; tries <= TRIES_MAX && untried.length > 0; tries++) {
    const payables = untried.shift()!
    if (payables.length === 0) continue
    const attempt = await attemptToSign(wallet, payables, coins, limits)
    if ('signed' in attempt) {
      for (const [index, { withdrawal }] of attempt.paid.entries()) {
        const crypto_tx_index = String(index)
        signings.set(withdrawal, { outcome: 'SIGNED', ...attempt.signed, crypto_tx_index })
      }
      break
    }
    reason = {
      code: attempt.isShort === true ? 'FEE_NOT_COVERED' : 'NODE_REFUSED',
      detail: `the transaction is not accepted: ${attempt.rejection}`,
    }
    if (isDust(attempt.rejection)) {
      const smallest = payables.reduce((a, b) => (dustMargin(b) < dustMargin(a) ? b : a))
      signings.set(smallest.withdrawal, refused('amount', attempt.rejection, smallest.withdrawal))
      untried.unshift(payables.filter((payable) => payable !== smallest))
    } else if (payables.length > 1 && !attempt.concernsAll) {
      const middle = Math.ceil(payables.length / 2)
      untried.unshift(payables.slice(0, middle), payables.slice(middle))
    }
  }
  for (const { withdrawal } of chosen) {
    if (!signings.has(withdrawal)) signings.set(withdrawal, deferred(reason))
  }
}

/** A signed transaction, or why there is none. A rejection that `concernsAll` would also meet fewer payments. */
type SigningAttempt =
  | { signed: SignedTransaction; paid: Payable[] }
  | { rejection: string; concernsAll: boolean; isShort?: true }

/**
 * Signs a transaction with these payments in their order, followed by the change. Throws RpcError where the node fails, with
 * nothing locked.
 */
async function attemptToSign(
  wallet: BitcoinWallet,
  payables: Payable[],
  coins: readonly Coin[],
  limits: SigningLimits,
): Promise<SigningAttempt> {
  const { plan, paid, paysForAncestors } = await chooseCoins(wallet, payables, coins, limits)
  if (paid.length === 0)
    return { rejection: 'the hot wallet has too little for its fee', concernsAll: true, isShort: true }
  const unsigned = await unsignedTransaction(wallet, plan)
  let signed: SignedTransaction
  try {
    signed = await signOrAsk(wallet, unsigned)
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return { rejection: error.message, concernsAll: true }
  }
  const { inputs, outputs } = decode(signed.raw_transaction)
  const planned = [...plan.payments.map(({ amount }) => amount), ...plan.change]
  assert(
    outputs.length === planned.length && outputs.every(({ amount }, index) => amount === planned[index]),
    'a transaction pays its withdrawals and the change, and nothing else',
  )
  const rejection = await mempoolRejection(wallet, signed.raw_transaction)
  if (rejection !== undefined) return { rejection, concernsAll: concernsAll(rejection) }
  await setLocks(wallet, 'lock', inputs)
  if (paysForAncestors) wallet.ancestorRates.set(signed.crypto_tx_hash, limits.rate)
  return { signed: { ...signed, payments: paid.length }, paid }
}

/**
 * Chooses coins that cover the payments, the fee, and the fee that unmined ancestors lack. Where the wallet has too little
 * for the ancestors, the transaction pays its own fee only and is mined after them: `paysForAncestors` says which.
 */
async function chooseCoins(
  wallet: BitcoinWallet,
  payables: Payable[],
  coins: readonly Coin[],
  limits: SigningLimits,
): Promise<{ plan: TransactionPlan<Payable>; paid: Payable[]; paysForAncestors: boolean }> {
  const planWith = (ancestorFee: bigint) => {
    const batch = new Batch<Payable>(coins, { ...limits, ancestorFee })
    const paid = payables.filter((payable) => batch.add(payable))
    return { plan: batch.plan(), paid }
  }
  let ancestorFee = 0n
  for (let choices = 1; ; choices++) {
    const { plan, paid } = planWith(ancestorFee)
    if (paid.length === 0) return { ...planWith(0n), paysForAncestors: false }
    const unmined = plan.coins.filter(({ isMined }) => !isMined).map(({ outpoint }) => hashIn(outpoint))
    const missing = await missingAncestorFee(wallet, unmined, limits)
    const paysForAncestors = missing <= ancestorFee
    // Paying for ancestors may take another coin, which may have ancestors that lack a fee, too.
    if (paysForAncestors || choices === COIN_CHOICES_MAX) return { plan, paid, paysForAncestors }
    ancestorFee = missing
  }
}

/** The transaction of a plan: the payments, then the change to new addresses of the wallet. */
async function unsignedTransaction(wallet: BitcoinWallet, plan: TransactionPlan<Payable>): Promise<Buffer> {
  const scripts = await changeScripts(wallet, plan.change.length)
  const unsigned = RawOldTx.encode({
    version: 2,
    inputs: plan.coins.map(({ outpoint }) => {
      const { txid, vout } = splitOutpoint(outpoint)
      return {
        txid: Buffer.from(txid, 'hex'),
        index: vout,
        finalScriptSig: new Uint8Array(),
        sequence: wallet.dialect.isReplaceable ? REPLACEABLE_SEQUENCE_MAX : FINAL_SEQUENCE,
      }
    }),
    outputs: [
      ...plan.payments.map(({ amount, script }) => ({ amount, script })),
      ...plan.change.map((amount, index) => ({ amount, script: scripts[index]! })),
    ],
    lockTime: 0,
  })
  return Buffer.from(unsigned)
}

async function changeScripts(wallet: BitcoinWallet, count: number): Promise<Uint8Array[]> {
  const calls = Array.from({ length: count }, (): RpcCall => wallet.dialect.newChangeAddress)
  return (await wallet.rpc.batch<string>(calls)).map((address) => {
    if (address instanceof RpcError) throw address
    return scriptOf(wallet, address)
  })
}

/** The script of an address, by the address itself: a node that lied about it would have the payment go elsewhere. */
const scriptOf = ({ network }: BitcoinWallet, address: string): Uint8Array =>
  Uint8Array.from(outputScriptOf(network, address)!)

/** Signs a transaction with the wallet's keys or, where others have them, makes what is asked. Throws as `signWithWallet` does. */
export async function signOrAsk(wallet: BitcoinWallet, unsigned: Uint8Array): Promise<SignedTransaction> {
  if (isWatching(wallet)) return asked(unsigned)
  const raw_transaction = await signWithWallet(wallet, Buffer.from(unsigned).toString('hex'))
  return { raw_transaction, crypto_tx_hash: decode(raw_transaction).txid }
}

/** Signs every input. Throws RpcError where a key is missing, WalletLocked while the wallet has a passphrase. */
async function signWithWallet({ rpc, network }: BitcoinWallet, unsigned: string): Promise<Buffer> {
  const method = 'signrawtransactionwithwallet'
  const reply = await rpc
    .call<{ hex: string; complete: boolean }>(method, unsigned)
    .catch((error: unknown) => {
      if (error instanceof RpcError && error.code === UNLOCK_NEEDED)
        throw new WalletLocked(`a person must unlock the wallet of ${network}: ${error.message}`)
      throw error
    })
  if (!reply.complete) throw new RpcError(method, WALLET_ERROR, 'the wallet lacks a key')
  return Buffer.from(reply.hex, 'hex')
}

/**
 * Why the node's mempool would not accept a transaction; undefined where it would. Broadcasts nothing. Of what a person is
 * asked to sign, the node checks everything before the signatures that are missing.
 */
export async function mempoolRejection(
  { rpc, dialect }: BitcoinWallet,
  raw: Buffer,
): Promise<string | undefined> {
  const hex = isAsked(raw) ? unsignedHexOf(raw) : raw.toString('hex')
  const [test] = await rpc.call<{ allowed: boolean; 'reject-reason'?: string }[]>(
    'testmempoolaccept',
    [hex],
    dialect.anyFee,
  )
  if (test!.allowed) return undefined
  const reason = test!['reject-reason'] ?? 'the node gives no reason'
  return isAsked(raw) && isAboutScripts(reason) ? undefined : reason
}

/** The node will never accept this payment. */
function refused(subject: 'amount' | 'destination address', reason: string, withdrawal: Withdrawal): Signing {
  const refusal = refusedDestination(withdrawal, `the network refused the ${subject}: ${reason}`)
  return { outcome: 'REFUSED', refusal }
}

/** How far an output is above the dust limit, which grows with the cost of spending the output. */
const dustMargin = ({ amount, script }: BatchPayment): bigint => {
  const isWitness = script[0] === 0 || (script[0]! >= 0x51 && script[0]! <= 0x60)
  return (amount * 1_000n) / BigInt(8 + 1 + script.length + (isWitness ? 67 : 148))
}
