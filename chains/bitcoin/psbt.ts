import { RawTx } from '@scure/btc-signer/script.js'
import { connectionLost, type Queryable } from '../../src/db/database.ts'
import { grouped } from '../../src/db/rows.ts'
import type { BroadcastWithdrawal, SignerAnswer } from '../../src/networks/network.ts'
import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'
import type { OpenByHand, SignedByHand } from '../../src/networks/signed-by-hand.ts'
import { reasonOfFailure, SIGNER_RECHECK_MS, type WaitingReason } from '../../src/networks/waiting.ts'
import { decimalOf, minorOf, sum } from './amounts.ts'
import { broadcast } from './broadcast.ts'
import { openTransactions, type Coins } from './coin-locks.ts'
import { feeAt } from './fees.ts'
import { decode, isAsked, outpointOf, type Outpoint } from './decode.ts'
import { paymentsOf, walletBytesOf } from './payments.ts'
import { sizeAndChange, valueOf } from './replace.ts'
import { RpcError } from '../kit/json-rpc.ts'
import { isAboutCoins, isAboutFee, isKnown } from './reject-reasons.ts'
import { mempoolRejection } from './sign-batch.ts'
import { outcomeOfConflict, progressOf } from './status.ts'
import { unrecordedAmong } from '../kit/unknown-spends.ts'
import { transactionsFor } from './used-by.ts'
import { fetchTransactions, isWatching, type BitcoinWallet } from './wallet.ts'

/**
 * Transactions that a person signs, with keys that the node's wallet does not have (PSBT, BIP 174). The unsigned
 * transaction is stored first (`ASKED`). The person may broadcast it, too, so the worker looks for it by its hash, which no
 * signature changes.
 */

/** Most PSBTs that wait to be signed. Their coins and change can pay nothing else. */
const PSBTS_MAX = 10

/** Why nothing more is asked of a person now. */
export function whyGathered(
  { signing, gatherMs }: BitcoinWallet,
  { unsigned }: Coins,
): WaitingReason | undefined {
  if (signing !== 'psbt' || unsigned.length === 0) return undefined
  if (unsigned.length >= PSBTS_MAX)
    return { code: 'IN_FLIGHT_LIMIT', detail: `${PSBTS_MAX} PSBTs wait to be signed, the most at a time` }
  if (Math.min(...unsigned.map(({ age_ms }) => age_ms)) >= gatherMs) return undefined
  return {
    code: 'NEXT_TRANSACTION',
    detail: `the next PSBT pays it: a person signs each, so payments are gathered for ${gatherMs / 60_000} minutes`,
  }
}

/** Looks for what became of each transaction that a person is asked to sign. */
export async function askPerson(
  db: Queryable,
  wallet: BitcoinWallet,
  asked: readonly BroadcastWithdrawal[],
): Promise<SignerAnswer[]> {
  const answers = new Map<BroadcastWithdrawal, SignerAnswer>()
  for (const together of grouped(asked, ({ crypto_tx_hash }) => crypto_tx_hash).values())
    try {
      for (const [withdrawal, answer] of await answersTo(db, wallet, together))
        answers.set(withdrawal, answer)
    } catch (error) {
      const isRefusal = error instanceof NodeRefusal
      if (connectionLost(error) || (error instanceof NodeFailure && !isRefusal)) throw error
      // One transaction that cannot be judged stops no other.
      const reason: WaitingReason = isRefusal
        ? reasonOfFailure(error)
        : { code: 'UNRESOLVED', detail: (error as Error).message }
      for (const withdrawal of together) answers.set(withdrawal, { reason })
    }
  return asked.map((withdrawal) => answers.get(withdrawal)!)
}

async function answersTo(
  db: Queryable,
  wallet: BitcoinWallet,
  together: BroadcastWithdrawal[],
): Promise<Map<BroadcastWithdrawal, SignerAnswer>> {
  const [first] = together as [BroadcastWithdrawal]
  const offered = await transactionsOf(db, wallet, together)
  const hashes = offered.map(({ raw_transaction }) => decode(raw_transaction).txid)
  const own = decode(first.raw_transaction).txid
  const found = await fetchTransactions(wallet, [...new Set(hashes)])
  const seen = found.find((transaction) => {
    const { txid } = decode(walletBytesOf(transaction))
    // Until a block has it, what a signer process replaces is no answer.
    const least = wallet.signer === undefined || txid === own ? 0 : 1
    return Number(transaction.confirmations) >= least && hashes.includes(txid)
  })
  const signed =
    seen === undefined
      ? // A worker may have recorded it for some of its payments alone.
        offered.find(({ crypto_tx_hash }) => crypto_tx_hash === own)
      : { raw_transaction: walletBytesOf(seen), crypto_tx_hash: seen.txid }
  if (signed !== undefined) {
    const { raw_transaction, crypto_tx_hash } = signed
    const answerOf = (withdrawal: BroadcastWithdrawal): SignerAnswer => ({
      signed: { ...placeOf(withdrawal), raw_transaction, crypto_tx_hash },
    })
    return new Map(together.map((withdrawal) => [withdrawal, answerOf(withdrawal)]))
  }
  // What a signer process replaces may pay yet, and a node may have dropped it.
  const before = offered.findLast(({ raw_transaction }) => !isAsked(raw_transaction))
  if (before !== undefined) await broadcast(wallet, [{ ...first, ...before }])
  const progress = await progressOf(wallet, first)
  const answers = new Map<BroadcastWithdrawal, SignerAnswer>()
  const spenders = progress.state === 'CONFLICTED' ? progress.spenders : []
  const spender = spenders.find(({ confirmations }) => Number(confirmations) >= wallet.depth)
  for (const withdrawal of together) {
    // Another transaction has spent its coins, and pays it or does not.
    const end = spender && (await outcomeOfConflict(wallet, spenders, withdrawal))
    if (end?.state === 'CONFIRMED') answers.set(withdrawal, { status: end })
    else if (end?.state === 'FAILED')
      answers.set(withdrawal, { status: { state: 'VOID', usedBy: spender!.txid } })
    else answers.set(withdrawal, { reason: waitsFor(hashes.at(-1)!) })
  }
  return answers
}

const waitsFor = (txid: string): WaitingReason => ({
  code: 'WAITING_SIGNATURE',
  detail: `PSBT ${txid} waits to be signed: 'bursar psbt export' gives it`,
  recheckMs: SIGNER_RECHECK_MS,
})

/** The output that pays a withdrawal, and how many are paid. */
const placeOf = ({ crypto_tx_index, payments }: BroadcastWithdrawal) => ({
  ...(crypto_tx_index !== undefined && { crypto_tx_index }),
  ...(payments !== undefined && { payments }),
})

/** As `transactionsFor`. Throws an Error where another may be mined beside them: the rows of the database are forged. */
async function transactionsOf(db: Queryable, wallet: BitcoinWallet, together: BroadcastWithdrawal[]) {
  const { same, other } = await transactionsFor(db, wallet, together)
  if (other !== undefined)
    throw new Error(
      `${other.crypto_tx_hash} spends other coins, and may pay withdrawal ${other.transfer_id} as well`,
    )
  return same
}

type ByHand = SignedByHand<BroadcastWithdrawal>

export function signedByHand(wallet: BitcoinWallet): ByHand {
  return {
    async open(db) {
      const { all, open } = await openTransactions(db, wallet)
      return all.map((transaction) => ({
        ...transaction,
        txid: decode(transaction.raw_transaction).txid,
        isAsked: isAsked(transaction.raw_transaction),
        isNewest: open.includes(transaction),
      }))
    },
    async price(asked) {
      const { inputs, outputs } = decode(asked.raw_transaction)
      const amounts = outputs.map(({ amount }) => amount)
      return {
        amount: decimalOf(sum(amounts.slice(0, asked.payments))),
        fee: decimalOf((await valueOf(wallet, inputs)) - sum(amounts)),
      }
    },
    async requireSame(db, withdrawals) {
      await transactionsOf(db, wallet, withdrawals)
      const { raw_transaction } = withdrawals[0]!
      const { outputs, inputs } = decode(raw_transaction)
      const isPaid = (withdrawal: BroadcastWithdrawal) =>
        paymentsOf(wallet, { ...withdrawal, raw_transaction }).length > 0
      const found = await sizeAndChange(db, wallet, withdrawals)
      if (!withdrawals.every(isPaid) || found?.change.length !== outputs.length - withdrawals.length)
        throw new Error('it pays something else than its withdrawals and the change: its records are forged')
      const fee = (await valueOf(wallet, inputs)) - sum(outputs.map(({ amount }) => amount))
      if (fee > feeAt(wallet.ceiling, found.vbytes + BigInt(inputs.length)))
        throw new Error(`its fee is ${decimalOf(fee)}, above the ceiling: its records are forged`)
    },
    async exportPsbt(asked) {
      await markExported(wallet, asked)
      return filled(wallet, asked.raw_transaction)
    },
    readPsbts: (open, psbts) => readPsbts(wallet, open, psbts),
  }
}

/** Begins the labels of exported PSBTs in the node's wallet, followed by the stored and the network's hash. */
const LABEL = 'bursar psbt '

/**
 * Leaves a mark in the node's wallet, which outlives a restored database: somebody may have signed what was exported, and a
 * database that has forgotten it would have the same withdrawals signed with other coins.
 */
async function markExported(
  { rpc, dialect }: BitcoinWallet,
  { crypto_tx_hash, txid }: OpenByHand,
): Promise<void> {
  const label = `${LABEL}${crypto_tx_hash} ${txid}`
  const [method, , ...type] = dialect.newAddress
  if (!(await rpc.call<string[]>('listlabels')).includes(label)) await rpc.call(method, label, ...type)
}

/** Why nothing is asked: a PSBT was exported that this database has no record of, and that the network has not seen. */
export async function exportedUnrecorded(
  db: Queryable,
  wallet: BitcoinWallet,
): Promise<WaitingReason | undefined> {
  if (!isWatching(wallet)) return undefined
  const labels = await wallet.rpc.call<string[]>('listlabels')
  const exported = labels.flatMap((label) => {
    const [stored, txid] = label.startsWith(LABEL) ? label.slice(LABEL.length).split(' ') : []
    return stored === undefined || txid === undefined ? [] : [{ label, stored, txid }]
  })
  const unrecorded = await unrecordedAmong(
    db,
    wallet.network,
    exported.map(({ stored }) => stored),
  )
  const unknown = exported.filter(({ stored }) => unrecorded.includes(stored))
  const seen = await fetchTransactions(
    wallet,
    unknown.map(({ txid }) => txid),
  )
  const missing = unknown.find(({ txid }) => !seen.some((transaction) => transaction.txid === txid))
  if (missing === undefined) return undefined
  return {
    code: 'UNKNOWN_SPENDS',
    detail:
      `PSBT ${missing.txid} was exported, and this database has no record of it: it was restored from an older backup. If anybody ` +
      `has signed it, broadcast it, and 'bursar withdrawal mark-paid' records what it pays; if nobody ever will, remove the ` +
      `label '${missing.label}' in the node's wallet`,
  }
}

/** Adds the outputs that it spends, and the derivations of the wallet's keys. Throws an Error where the node changes more. */
export async function filled({ rpc }: BitcoinWallet, raw: Buffer): Promise<string> {
  const updated = await rpc.call<string>('utxoupdatepsbt', raw.toString('base64'))
  const { psbt } = await rpc.call<{ psbt: string }>('walletprocesspsbt', updated, false)
  const { inputs, outputs } = decode(raw)
  const global = raw.subarray(0, raw.length - 1 - inputs.length - outputs.length)
  if (!Buffer.from(psbt, 'base64').subarray(0, global.length).equals(global))
    throw new Error('the node gave a PSBT of another transaction')
  return psbt
}

/** A PSBT in the node's words. */
interface DecodedPsbt {
  tx: {
    txid: string
    vin: { txid: string; vout: string }[]
    vout: { value: string; scriptPubKey: { hex: string } }[]
  }
  inputs: {
    sighash?: string
    partial_signatures?: Record<string, string>
    witness_script?: { asm: string }
    final_scriptwitness?: string[]
  }[]
}

async function readPsbts(
  wallet: BitcoinWallet,
  open: readonly OpenByHand[],
  psbts: readonly string[],
): ReturnType<ByHand['readPsbts']> {
  const { rpc } = wallet
  const decoded = await rpc.batch<DecodedPsbt>(psbts.map((psbt) => ['decodepsbt', psbt]))
  const found = decoded.map((psbt) => {
    if (psbt instanceof RpcError) throw new Error(`the node reads no PSBT in it: ${psbt.reason}`)
    const sighash = psbt.inputs
      .map((input) => input.sighash ?? 'ALL')
      .find((kind) => !/^(ALL|DEFAULT)$/.test(kind))
    if (sighash !== undefined)
      throw new Error(`it is to be signed with sighash ${sighash}: only ALL signs the whole transaction`)
    return askedIn(open, psbt)
  })
  const [asked] = found as [OpenByHand]
  if (found.some((other) => other !== asked)) throw new Error('they are of different transactions')
  const ownPsbt = await filled(wallet, asked.raw_transaction)
  const combined = await rpc.call<string>('combinepsbt', [ownPsbt, ...psbts])
  const { hex, complete } = await rpc.call<{ hex?: string; complete: boolean }>(
    'finalizepsbt',
    combined,
    true,
  )
  if (!complete || hex === undefined)
    throw new Error(
      `signatures are missing: ${missingIn(await rpc.call<DecodedPsbt>('decodepsbt', combined))}`,
    )
  const raw_transaction = Buffer.from(hex, 'hex')
  requireWhole(raw_transaction, asked.txid)
  const isSigned = open.some((transaction) => !transaction.isAsked && transaction.txid === asked.txid)
  const rejection = isSigned ? undefined : await mempoolRejection(wallet, raw_transaction)
  if (rejection !== undefined && !isKnown(rejection))
    throw new Error(`the node does not accept ${asked.txid}: ${rejection}${adviceFor(rejection)}`)
  return { asked, signed: { raw_transaction, crypto_tx_hash: asked.txid } }
}

/** What was asked with this PSBT. Throws an Error that says what differs. */
function askedIn(open: readonly OpenByHand[], { tx }: DecodedPsbt): OpenByHand {
  const waiting = open.filter(({ isAsked }) => isAsked)
  const same = waiting.find(({ txid }) => txid === tx.txid)
  const inputs = tx.vin.map(outpointOf)
  const near = same ?? waiting.findLast((asked) => asked.inputs.some((input) => inputs.includes(input)))
  if (near === undefined)
    throw new Error(`${tx.txid} is no transaction that waits to be signed: it spends none of their coins`)
  if (same === undefined)
    throw new Error(`it is not ${near.txid} as it was exported: ${differenceOf(near, tx, inputs)}`)
  if (same.used_by !== null)
    throw new Error(`${same.txid} can never be mined: ${same.used_by} has spent its coins`)
  return same
}

function differenceOf(asked: OpenByHand, { vout }: DecodedPsbt['tx'], inputs: Outpoint[]): string {
  if (inputs.join() !== asked.inputs.join()) return 'it spends other inputs'
  const { outputs } = decode(asked.raw_transaction)
  if (vout.length !== outputs.length) return `it has ${vout.length} outputs, and not ${outputs.length}`
  const other = outputs.findIndex(
    ({ amount, script }, index) =>
      amount !== minorOf(vout[index]!.value) ||
      Buffer.from(script).toString('hex') !== vout[index]!.scriptPubKey.hex,
  )
  return other < 0 ? 'it has another version, lock time or sequence' : `output ${other} pays something else`
}

/** Which signatures a PSBT lacks, for people. */
function missingIn({ inputs }: DecodedPsbt): string {
  const lacking = inputs.flatMap(
    ({ final_scriptwitness, partial_signatures = {}, witness_script }, index) => {
      if (final_scriptwitness !== undefined) return []
      const needed = /^(\d+) .*OP_CHECKMULTISIG$/.exec(witness_script?.asm ?? '')?.[1] ?? '1'
      return [`input ${index} has ${Object.keys(partial_signatures).length} of ${needed}`]
    },
  )
  return `${lacking.slice(0, LACKING_SHOWN).join(', ')}; import it together with those of the other signers`
}
const LACKING_SHOWN = 3

const adviceFor = (rejection: string): string =>
  isAboutCoins(rejection)
    ? `: its coins are spent, and the worker finds by what`
    : isAboutFee(rejection)
      ? `: 'bursar psbt replace' asks for the same payments at the current fee`
      : ''

/**
 * Throws an Error unless the signed bytes are the transaction that was asked for, by its hash, and every signature covers
 * all of it. The node has checked the signatures themselves.
 */
export function requireWhole(raw: Buffer, txid: string): void {
  if (decode(raw).txid !== txid) throw new Error(`it is signed as another transaction than ${txid}`)
  for (const [index, witness] of RawTx.decode(raw).witnesses!.entries())
    if (!witness.slice(0, Math.max(1, witness.length - 1)).every(coversAll))
      throw new Error(
        `input ${index} is signed with another sighash than ALL: others could change the transaction`,
      )
}

/**
 * Whether an element of a witness is no signature with a sighash other than ALL. DER says its own length. Of Taproot, 64
 * bytes have none. The last of several elements is a key, a script or a control block.
 */
function coversAll(element: Uint8Array): boolean {
  const isDer = element[0] === 0x30 && element[1] === element.length - 3
  return (!isDer && element.length !== 65) || element.at(-1) === SIGHASH_ALL
}
const SIGHASH_ALL = 0x01
