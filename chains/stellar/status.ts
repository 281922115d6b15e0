import { extractBaseAddress, Keypair, xdr } from '@stellar/stellar-base'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  EndedTransaction,
  NonceEnd,
  PaymentStatus,
} from '../../src/networks/network.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { judgeAlone } from '../../src/networks/judge-alone.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import { reasonOfFailure, refusedDestination, type WaitingReason } from '../../src/networks/waiting.ts'
import { mayBeMined } from '../kit/nonce-used.ts'
import { doubtOf } from '../kit/second-word.ts'
import { decimalOf, GAS_ASSET, secondOf, type StellarChain } from './chain.ts'
import { innerOf, isOurs, paymentIn } from './envelope.ts'
import { HorizonRefusal, PAGE, type StellarAccount, type TransactionRecord } from './horizon.ts'

const OPERATION_INDEX = '0'

/** Broadcasts kept bytes. None is refused for good: what cannot be made any more is VOID by evidence of the ledger. */
export async function broadcast(
  chain: StellarChain,
  withdrawals: readonly BroadcastWithdrawal[],
): Promise<BroadcastAnswer[]> {
  await chain.horizon.root()
  const answers: BroadcastAnswer[] = []
  for (const { raw_transaction } of withdrawals)
    answers.push(
      await chain.horizon.submit(raw_transaction.toString('base64')).then(
        (): BroadcastAnswer => ({ accepted: true }),
        (error: unknown): BroadcastAnswer => {
          if (!(error instanceof NodeFailure)) throw error
          return { accepted: false, reason: reasonOfFailure(error) }
        },
      ),
    )
  return answers
}

/** How far the transaction of each withdrawal is, each judged alone. */
export async function checkStatus(
  chain: StellarChain,
  withdrawals: readonly BroadcastWithdrawal[],
): Promise<PaymentStatus[]> {
  const newest = await chain.horizon.root()
  const statuses: PaymentStatus[] = []
  for (const withdrawal of withdrawals)
    statuses.push(await judgeAlone(() => statusOf(chain, withdrawal, newest)))
  return statuses
}

async function statusOf(
  chain: StellarChain,
  withdrawal: BroadcastWithdrawal,
  newest: { closedAt: bigint },
): Promise<PaymentStatus> {
  // Earlier bytes, too: a false answer may have had the withdrawal signed anew.
  for (const hash of [withdrawal.crypto_tx_hash, ...withdrawal.replaced]) {
    const record = await findTransaction(chain, hash)
    if (record !== undefined)
      return believed(chain, hash, outcomeOf(chain, { ...withdrawal, crypto_tx_hash: hash }, record))
  }
  const end = await endOf(chain, withdrawal)
  if (end?.state === 'VOID' || end?.reason.code === 'NONCE_USED') return end
  // Until some ledgers have passed, it waits in the node's queue. After that, the same bytes again harm nothing.
  const waited = newest.closedAt - (paymentIn(withdrawal.raw_transaction).maxTime - VALID_SECONDS)
  return { state: waited < QUEUE_SECONDS ? 'PENDING' : 'UNKNOWN' }
}

/** A failure refunds the withdrawal. By one Horizon's false word, the withdrawal would be both paid and refunded. */
async function believed(chain: StellarChain, hash: string, outcome: PaymentStatus): Promise<PaymentStatus> {
  if (outcome.state !== 'FAILED') return outcome
  const reason = await doubtOfFailure(chain, hash)
  if (reason === undefined) return outcome
  const { networkFee } = outcome
  return {
    state: 'UNRESOLVED',
    reason,
    crypto_tx_hash: hash,
    crypto_tx_index: OPERATION_INDEX,
    ...(networkFee && { networkFee }),
  }
}

/** Why a failure is not believed yet, in a sandbox neither; undefined where the second Horizon has it, too. */
const doubtOfFailure = (chain: StellarChain, hash: string): Promise<WaitingReason | undefined> =>
  doubtOf({ second: secondOf(chain), mode: 'live' }, `Horizon says that ${hash} failed`, async (horizon) => {
    const record = await findTransaction({ ...chain, horizon }, hash)
    if (record === undefined) return { waits: 'cannot tell yet' }
    return record.successful ? { differs: 'says that it succeeded' } : undefined
  })

/** For how long signed bytes can be made, by the close times of ledgers. */
export const VALID_SECONDS = 300n
const QUEUE_SECONDS = 15n

/** A transaction in a ledger by the hash of its payment. Throws where the answer is another transaction. */
export async function findTransaction(
  chain: StellarChain,
  hash: string,
): Promise<TransactionRecord | undefined> {
  const record = await chain.horizon.find<TransactionRecord>(`/transactions/${hash}`)
  if (record === undefined) return undefined
  if (hashIn(chain, record) !== hash)
    throw new HorizonRefusal(200, `/transactions/${hash}`, 'the answer is another transaction')
  return record
}

/** The hash of the payment in a transaction's bytes; undefined where they cannot be read. */
export function hashIn(chain: StellarChain, { envelope_xdr }: TransactionRecord): string | undefined {
  return readable(chain, envelope_xdr)?.hash().toString('hex')
}

function readable(chain: StellarChain, envelope: string) {
  try {
    return innerOf(envelope, chain.passphrase)
  } catch {
    return undefined
  }
}

/** The fee of a transaction; none where another account has paid it. */
export const feeOf = (
  chain: StellarChain,
  { fee_account, fee_charged }: TransactionRecord,
): NetworkFee | undefined =>
  fee_account === chain.address ? { asset: GAS_ASSET, amount: decimalOf(BigInt(fee_charged)) } : undefined

/** Failures that the recipient can cause after the check before signing. */
const BY_RECIPIENT = ['NoDestination', 'NoTrust', 'NotAuthorized', 'LineFull', 'AlreadyExist']

function outcomeOf(
  chain: StellarChain,
  { crypto_tx_hash, destination_address }: BroadcastWithdrawal,
  record: TransactionRecord,
): PaymentStatus {
  const networkFee = feeOf(chain, record)
  const fee = networkFee && { networkFee }
  const { code, operation } = codesOf(record)
  if (record.successful !== (code === 'txSuccess'))
    throw new Error(`Horizon contradicts itself: successful ${record.successful}, result ${code}`)
  if (record.successful)
    return { state: 'CONFIRMED', crypto_tx_hash, crypto_tx_index: OPERATION_INDEX, ...fee }
  const message = `the network refused the payment: ${operation ?? code}`
  const byRecipient = BY_RECIPIENT.some((code) => operation?.endsWith(code) === true)
  return {
    state: 'FAILED',
    refusal: refusedDestination({ destination_address }, message),
    ...fee,
    ...(byRecipient && { byRecipient }),
  }
}

/** The result of a transaction, and of its first operation: of the inner one where it was wrapped. */
function codesOf({ result_xdr }: TransactionRecord): { code: string; operation: string | undefined } {
  let result = xdr.TransactionResult.fromXDR(result_xdr, 'base64').result() as unknown as AnyResult
  if (result.switch().name.startsWith('txFeeBumpInner'))
    result = result.innerResultPair().result().result() as AnyResult
  const [first] = result.switch().name === 'txFailed' ? result.results() : []
  const operation =
    first?.switch().name === 'opInner' ? first.tr().value().switch().name : first?.switch().name
  return { code: result.switch().name, operation }
}
interface AnyResult {
  switch(): { name: string }
  innerResultPair(): { result(): { result(): unknown } }
  results(): { switch(): { name: string }; tr(): { value(): { switch(): { name: string } } } }[]
}

// ---------------------------------------------------------------------------------------------- bytes that have ended

/** What is recorded of bytes whose time bound has passed, where other bytes have the hash of what used their number. */
const ledgerPast = (newest: string | number | bigint) => `ledger:${newest}`
const isLedger = (usedBy: string) => usedBy.startsWith('ledger:')

/**
 * Whether kept bytes can never be made. Two things prove it. Another transaction has their sequence number: its bytes, signed
 * by the lane's key, are there. Or their time bound has passed: a later ledger is closed, in which the lane's number is still
 * below theirs. "Not found" alone proves nothing. Whatever a node says, a payment whose time bound passed is signed anew with
 * the same number of the same lane (sign.ts), so that one of the two can be made at most.
 */
async function endOf(chain: StellarChain, withdrawal: BroadcastWithdrawal): Promise<NonceEnd | undefined> {
  const { raw_transaction, crypto_tx_hash, replaced } = withdrawal
  if (!isOurs(raw_transaction)) return undefined
  const { lane, sequence, maxTime } = paymentIn(raw_transaction)
  // The ledger first: the lane as it was later is what counts.
  const { history_latest_ledger: newest, closedAt } = await chain.horizon.root()
  const { record, ledger } = await chain.horizon.findAt<StellarAccount>(`/accounts/${lane}`)
  if (record === undefined) return mayBeMined(`Horizon has no account ${lane}, which numbers its transaction`)
  const alone = chain.second === undefined && chain.mode === 'live' ? `; ${NOTHING_ELSE}` : ''
  if (BigInt(record.sequence) >= sequence) {
    const user = await provenUserOf(chain, lane, sequence)
    // It is the payment itself, which Horizon shows in a moment, or it says of the lane what it cannot show.
    if (user === undefined || [crypto_tx_hash, ...replaced].includes(user))
      return mayBeMined(`sequence ${sequence} of ${lane} is used, and Horizon does not show by what${alone}`)
    return { state: 'VOID', usedBy: user }
  }
  if (closedAt <= maxTime || ledger === undefined || ledger < newest) return undefined
  // Once more, now that the ledger is known to be in: only what it has after that counts.
  if ((await findTransaction(chain, crypto_tx_hash)) !== undefined)
    return mayBeMined('it is in a ledger after all')
  return { state: 'VOID', usedBy: ledgerPast(newest) }
}

/** Most pages of a lane's transactions that are looked through, the newest first. */
const PAGES_MAX = 10

/** The payment's hash of the transaction with this number of a lane, where Horizon shows its bytes and the lane signed them. */
async function userOf(chain: StellarChain, lane: string, sequence: bigint): Promise<string | undefined> {
  const key = Keypair.fromPublicKey(lane)
  let from = ''
  for (let page = 1; page <= PAGES_MAX; page++) {
    const path = `/accounts/${lane}/transactions?order=desc&limit=${PAGE}&include_failed=true${from}`
    const records = await chain.horizon.records<TransactionRecord>(path)
    for (const { envelope_xdr } of records) {
      const inner = readable(chain, envelope_xdr)
      if (inner === undefined) continue
      if (extractBaseAddress(inner.source) !== lane || BigInt(inner.sequence) > sequence) continue
      if (BigInt(inner.sequence) < sequence) return undefined
      const hash = inner.hash()
      const isSigned = inner.signatures.some((signature) => key.verify(hash, signature.signature()))
      return isSigned ? hash.toString('hex') : undefined
    }
    if (records.length < PAGE) return undefined
    from = `&cursor=${records.at(-1)!.paging_token}`
  }
  return undefined
}

/** The same by the word of both Horizons: else nothing is signed with another number. In a sandbox, one suffices. */
export async function provenUserOf(
  chain: StellarChain,
  lane: string,
  sequence: bigint,
): Promise<string | undefined> {
  const { second, mode } = chain
  const user = await userOf(chain, lane, sequence)
  if (user === undefined || (second === undefined && mode === 'sandbox')) return user
  const there = second && (await userOf({ ...chain, horizon: second }, lane, sequence))
  return there === user ? user : undefined
}

/** Whether kept bytes have ended by what is recorded, by a transaction's hash or a ledger (`NetworkAdapter.usedBy`). */
export async function usedBy(
  chain: StellarChain,
  withdrawal: BroadcastWithdrawal,
  what: string,
): Promise<NonceEnd> {
  if ((await findTransaction(chain, withdrawal.crypto_tx_hash)) !== undefined)
    return mayBeMined(`${withdrawal.crypto_tx_hash} is in a ledger, and may pay it`)
  const end = await endOf(chain, withdrawal)
  if (end === undefined) return mayBeMined('it may be made yet: neither its number nor its time has passed')
  if (end.state === 'VOID' && end.usedBy !== what && !(isLedger(end.usedBy) && isLedger(what)))
    // Its time passed, and since then its number was used: both prove it.
    return isLedger(what) ? end : mayBeMined(`${end.usedBy} ended it, and not ${what}`)
  return end
}

/** Broadcasts the bytes of a completed withdrawal again. A ledger is never taken back, so there is a reason only after a lie. */
export async function resend(chain: StellarChain, ended: EndedTransaction): Promise<void> {
  if ((await findTransaction(chain, ended.crypto_tx_hash)) !== undefined)
    throw new Error('the network has the transaction')
  await chain.horizon.submit(ended.raw_transaction.toString('base64')).catch((error: unknown) => {
    throw error instanceof HorizonRefusal ? new Error(`it can never be made: ${error.message}`) : error
  })
}
