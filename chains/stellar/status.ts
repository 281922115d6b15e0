import { extractBaseAddress, Keypair, xdr } from '@stellar/stellar-base'
import type { Queryable } from '../../src/db/database.ts'
import type {
  BroadcastWithdrawal,
  NonceEnd,
  PaymentStatus,
  SignedTransaction,
} from '../../src/networks/network.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { judgeAlone } from '../../src/networks/judge-alone.ts'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import { refusedDestination, type WaitingReason } from '../../src/networks/waiting.ts'
import { partOf } from '../kit/fee-share.ts'
import { endedBy, mayBeMined } from '../kit/nonce-used.ts'
import { onceForEach } from '../kit/once-for-each.ts'
import { doubtOf } from '../kit/second-word.ts'
import { decimalOf, GAS_ASSET, placeOf, secondOf, type StellarChain } from './chain.ts'
import { innerOf, isOurs, paymentsIn, type Place, type StellarTransaction } from './envelope.ts'
import { HorizonRefusal, PAGE, type StellarAccount, type TransactionRecord } from './horizon.ts'

/** How far the transaction of each withdrawal is, each judged alone. */
export async function checkStatus(
  db: Queryable,
  chain: StellarChain,
  withdrawals: readonly BroadcastWithdrawal[],
): Promise<PaymentStatus[]> {
  const newest = await chain.horizon.root()
  const find = onceForEach(String, (hash: string) => findMade(chain, hash))
  const doubt = onceForEach(
    ({ hash }: Made) => hash,
    (made) => doubtOfFailure({ ...chain, mode: 'live' }, made),
  )
  const standing = onceForEach(
    ({ crypto_tx_hash }: BroadcastWithdrawal) => crypto_tx_hash,
    (withdrawal) => standingOf(chain, withdrawal),
  )

  async function statusOf(withdrawal: BroadcastWithdrawal): Promise<PaymentStatus> {
    // Earlier bytes, too: a false answer may have had the withdrawal signed anew.
    const hashes = [...new Set([withdrawal.crypto_tx_hash, ...withdrawal.replaced])]
    const all = await Promise.all(hashes.map((hash) => find(hash)))
    const made = all.filter((one) => one !== undefined)
    const paid = made.find(({ record }) => record.successful)
    if (paid !== undefined) {
      const crypto_tx_index = String(placeIn(chain, paid, withdrawal))
      const fee = feesOf(chain, withdrawal, made)
      return { state: 'CONFIRMED', crypto_tx_hash: paid.hash, crypto_tx_index, ...fee }
    }
    // What failed with another number has had the withdrawal signed anew.
    const kept = paymentsIn(withdrawal.raw_transaction)
    const failed = made.find(({ transaction }) => isSamePlace(transaction, kept))
    const ended = failed && endOfFailed(chain, withdrawal, failed, made, await doubt(failed))
    if (ended !== undefined) return ended
    const end = await endOf(db, chain, withdrawal, await standing(withdrawal))
    if (end !== undefined) return end
    // Until some ledgers have passed, it waits in the node's queue. After that, the same bytes again harm nothing.
    const waited = newest.closedAt - (kept.maxTime - VALID_SECONDS)
    return { state: waited < QUEUE_SECONDS ? 'PENDING' : 'UNKNOWN' }
  }
  return Promise.all(withdrawals.map((withdrawal) => judgeAlone(() => statusOf(withdrawal))))
}

/** For how long signed bytes can be made, by the close times of ledgers. */
export const VALID_SECONDS = 300n
const QUEUE_SECONDS = 15n

// ---------------------------------------------------------------------------------------------- what is in a ledger

/** A transaction in a ledger, by the hash of its payments. */
interface Made {
  hash: string
  record: TransactionRecord
  transaction: StellarTransaction
  /** Of the inner one, where it was wrapped. */
  code: string
  /** Of a transaction that failed: its first operation that did. Later ones may have failed because of that one. */
  failedAt: { index: number; name: string } | undefined
}

export async function findMade(chain: StellarChain, hash: string): Promise<Made | undefined> {
  const record = await findTransaction(chain, hash)
  if (record === undefined) return undefined
  const { code, results } = codesOf(record)
  if (record.successful !== (code === 'txSuccess'))
    throw new Error(`Horizon contradicts itself: successful ${record.successful}, result ${code}`)
  const transaction = paymentsIn(Buffer.from(record.envelope_xdr, 'base64'))
  const index = record.successful ? -1 : results.findIndex((name) => !name.endsWith('Success'))
  return {
    hash,
    record,
    transaction,
    code,
    failedAt: index < 0 ? undefined : { index, name: results[index]! },
  }
}

/** A transaction in a ledger by the hash of its payments. Throws where the answer is another transaction. */
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

/** The hash of the payments in a transaction's bytes; undefined where they cannot be read. */
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

/** The result of a transaction, and of its operations: of the inner one where it was wrapped. */
function codesOf({ result_xdr }: TransactionRecord): { code: string; results: string[] } {
  let result = xdr.TransactionResult.fromXDR(result_xdr, 'base64').result() as unknown as AnyResult
  if (result.switch().name.startsWith('txFeeBumpInner'))
    result = result.innerResultPair().result().result() as AnyResult
  const code = result.switch().name
  const operations = code === 'txFailed' ? result.results() : []
  const nameOf = (one: (typeof operations)[number]) =>
    one.switch().name === 'opInner' ? one.tr().value().switch().name : one.switch().name
  return { code, results: operations.map(nameOf) }
}
interface AnyResult {
  switch(): { name: string }
  innerResultPair(): { result(): { result(): unknown } }
  results(): { switch(): { name: string }; tr(): { value(): { switch(): { name: string } } } }[]
}

/** The fee of a transaction, in stroops; none where another account has paid it. */
export const feeUnits = (
  { address }: StellarChain,
  { fee_account, fee_charged }: Pick<TransactionRecord, 'fee_account' | 'fee_charged'>,
): bigint => (fee_account === address ? BigInt(fee_charged) : 0n)

export const feeIn = (units: bigint): NetworkFee | undefined =>
  units === 0n ? undefined : { asset: GAS_ASSET, amount: decimalOf(units) }

/** The place of the payment of a withdrawal in a transaction. Throws an Error where it has none. */
function placeIn(chain: StellarChain, { transaction, hash }: Made, withdrawal: BroadcastWithdrawal): number {
  const place = placeOf(chain, transaction, withdrawal)
  if (place < 0) throw new Error(`none of the payments of ${hash} pays the withdrawal`)
  return place
}

/**
 * What a payment bears of the fees of its transactions: its part of each, and all parts add up to the fee. Where an operation made
 * a transaction fail, that one bears the fee.
 */
export function feeOfOne(
  chain: StellarChain,
  { record, transaction, failedAt }: Pick<Made, 'record' | 'transaction' | 'failedAt'>,
  place: number,
): bigint {
  const fee = feeUnits(chain, record)
  if (failedAt !== undefined && !isOurFault(failedAt.name)) return failedAt.index === place ? fee : 0n
  return partOf(fee, { of: transaction.payments.length, rank: place })
}
function feesOf(chain: StellarChain, withdrawal: BroadcastWithdrawal, made: readonly Made[]) {
  const fees = made.map((one) => feeOfOne(chain, one, placeIn(chain, one, withdrawal)))
  const networkFee = feeIn(fees.reduce((sum, fee) => sum + fee, 0n))
  return networkFee && { networkFee }
}

/** Failures that the recipient can cause after the check before signing. */
const BY_RECIPIENT = ['NoDestination', 'NoTrust', 'NotAuthorized', 'LineFull', 'AlreadyExist']
/** Failures of the hot wallet's own. */
const OURS = ['Underfunded', 'SrcNoTrust', 'SrcNotAuthorized', 'opBadAuth', 'opNoAccount']
const isOneOf = (names: readonly string[], result: string) => names.some((name) => result.endsWith(name))
const isOurFault = (result: string) => isOneOf(OURS, result)
const isAtFault = ({ failedAt }: Made, place: number) =>
  failedAt?.index === place && !isOurFault(failedAt.name)

/**
 * The end of a withdrawal whose transaction has failed. A payment at fault is refunded, and by one Horizon's false word it would be
 * paid, too. The others are signed anew: the failed transaction has used its number. Undefined where it failed
 * before its payments were tried: then its number tells.
 */
function endOfFailed(
  chain: StellarChain,
  withdrawal: BroadcastWithdrawal,
  failed: Made,
  made: readonly Made[],
  doubt: WaitingReason | undefined,
): PaymentStatus | undefined {
  const { hash, failedAt, code } = failed
  const place = placeIn(chain, failed, withdrawal)
  const fee = feesOf(chain, withdrawal, made)
  if (doubt !== undefined) {
    const seen = { crypto_tx_hash: hash, crypto_tx_index: String(place) }
    return { state: 'UNRESOLVED', reason: doubt, ...seen, ...fee }
  }
  if (code !== 'txFailed') return undefined
  if (!isAtFault(failed, place)) return { state: 'VOID', usedBy: hash }
  const { name } = failedAt!
  return {
    state: 'FAILED',
    refusal: refusedDestination(withdrawal, `the network refused the payment: ${name}`),
    ...fee,
    ...(isOneOf(BY_RECIPIENT, name) && { byRecipient: true }),
  }
}

/** Why a failure is not believed yet; undefined where the second Horizon has the same, too. */
const doubtOfFailure = (chain: StellarChain, { hash, record }: Made): Promise<WaitingReason | undefined> =>
  doubtOf({ ...chain, second: secondOf(chain) }, `Horizon says that ${hash} failed`, async (horizon) => {
    const there = await findTransaction({ ...chain, horizon }, hash)
    if (there === undefined) return { waits: 'cannot tell yet' }
    if (there.result_xdr === record.result_xdr) return undefined
    return { differs: there.successful ? 'says that it succeeded' : 'has another result' }
  })

// ---------------------------------------------------------------------------------------------- bytes that have ended

/** What is recorded of bytes whose time bound has passed, where other bytes have the hash of what used their number. */
const ledgerPast = (newest: string | number | bigint) => `ledger:${newest}`
const isLedger = (usedBy: string) => usedBy.startsWith('ledger:')
export const isSamePlace = (one: Place, other: Place) =>
  one.lane === other.lane && one.sequence === other.sequence

/** What the ledger says of kept bytes: their number is used, their time has passed, or nobody knows. Undefined: neither. */
type Standing = { user: string | undefined } | { passed: string } | { why: string } | undefined

async function standingOf(
  chain: StellarChain,
  { raw_transaction, crypto_tx_hash }: SignedTransaction,
): Promise<Standing> {
  if (!isOurs(raw_transaction)) return undefined
  const { lane, sequence, maxTime } = paymentsIn(raw_transaction)
  // The ledger first: the lane as it was later is what counts.
  const { history_latest_ledger: newest, closedAt } = await chain.horizon.root()
  const { record, ledger } = await chain.horizon.findAt<StellarAccount>(`/accounts/${lane}`)
  if (record === undefined) return { why: `Horizon has no account ${lane}, which numbers its transaction` }
  if (BigInt(record.sequence) >= sequence) return { user: await provenUserOf(chain, { lane, sequence }) }
  if (closedAt <= maxTime || ledger === undefined || ledger < newest) return undefined
  // Once more, now that the ledger is known to be in: only what it has after that counts.
  if ((await findTransaction(chain, crypto_tx_hash)) !== undefined)
    return { why: 'it is in a ledger after all' }
  return { passed: ledgerPast(newest) }
}

/**
 * Whether kept bytes can never be made. Two things prove it. Another transaction has their sequence number, or their own has failed
 * with it: its bytes, signed by the lane's key, are there. Or their time bound has passed: a later ledger is closed, in which
 * the lane's number is still below theirs. "Not found" alone proves nothing. Whatever a node says, a payment whose time bound
 * passed is signed anew with the same number of the same lane (sign.ts), so that one of the two can be made at most.
 */
async function endOf(
  db: Queryable,
  chain: StellarChain,
  withdrawal: BroadcastWithdrawal,
  standing: Standing,
): Promise<NonceEnd | undefined> {
  if (standing === undefined) return undefined
  if ('why' in standing) return mayBeMined(standing.why)
  if ('passed' in standing) {
    // What is void may be refused or cancelled, and refunded: by one Horizon's false word, it would be paid, too.
    const reason = await doubtOfTime(chain, withdrawal)
    if (reason !== undefined) return { state: 'UNRESOLVED', reason, mayBeMined: true }
    return { state: 'VOID', usedBy: standing.passed }
  }
  const { user } = standing
  const isOwn = [withdrawal.crypto_tx_hash, ...withdrawal.replaced].some((hash) => hash === user)
  if (user !== undefined && !isOwn) {
    const of = { network: 'STELLAR', transfer_id: withdrawal.transfer_id, hash: user } as const
    const isSamePayment = await pays(chain, withdrawal, user)
    return endedBy(db, of, { isSamePayment, doubt: async () => undefined })
  }
  const failed = user === undefined ? undefined : await findMade(chain, user)
  if (failed === undefined || failed.record.successful) {
    const alone = chain.second === undefined && chain.mode === 'live' ? `; ${NOTHING_ELSE}` : ''
    // It is the payment itself, which Horizon shows in a moment, or it says of the lane what it cannot show.
    return mayBeMined(`its sequence number is used, and Horizon does not show by what${alone}`)
  }
  if (isAtFault(failed, placeIn(chain, failed, withdrawal)))
    return mayBeMined(`${user} failed because of it: 'not-paid' refunds it, and posts the fee`)
  const reason = await doubtOfFailure(chain, failed)
  return reason === undefined
    ? { state: 'VOID', usedBy: failed.hash }
    : { state: 'UNRESOLVED', reason, mayBeMined: true }
}

/** Whether another transaction makes the payment of a withdrawal. One with operations that are no payments does not. */
async function pays(chain: StellarChain, withdrawal: BroadcastWithdrawal, hash: string): Promise<boolean> {
  const record = await findTransaction(chain, hash)
  if (record?.successful === false) return false
  try {
    return placeOf(chain, paymentsIn(Buffer.from(record?.envelope_xdr ?? '', 'base64')), withdrawal) >= 0
  } catch {
    return false
  }
}

/** Whether a transaction has failed by the word of both Horizons; in a sandbox, one suffices. */
export async function hasFailed(chain: StellarChain, hash: string): Promise<boolean> {
  const made = await findMade(chain, hash)
  return made?.record.successful === false && (await doubtOfFailure(chain, made)) === undefined
}

/** Whether the time of bytes has passed with their number unused, by the word of both Horizons; in a sandbox, one suffices. */
export const hasPassed = async (chain: StellarChain, signed: SignedTransaction): Promise<boolean> =>
  isPast(await standingOf(chain, signed)) && (await doubtOfTime(chain, signed)) === undefined

const isPast = (standing: Standing) => standing !== undefined && 'passed' in standing

const doubtOfTime = (chain: StellarChain, signed: SignedTransaction): Promise<WaitingReason | undefined> =>
  doubtOf({ ...chain, second: secondOf(chain) }, 'Horizon says that its time has passed', async (horizon) =>
    isPast(await standingOf({ ...chain, horizon }, signed)) ? undefined : { waits: 'does not show that yet' },
  )

/** Most pages of a lane's transactions that are looked through, the newest first. */
const PAGES_MAX = 10

/** The payment's hash of the transaction with this number of a lane, where Horizon shows its bytes and the lane signed them. */
async function userOf(chain: StellarChain, { lane, sequence }: Place): Promise<string | undefined> {
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
export async function provenUserOf(chain: StellarChain, place: Place): Promise<string | undefined> {
  const { second, mode } = chain
  const user = await userOf(chain, place)
  if (user === undefined || (second === undefined && mode === 'sandbox')) return user
  const there = second && (await userOf({ ...chain, horizon: second }, place))
  return there === user ? user : undefined
}

/** Whether kept bytes have ended by what is recorded, by a transaction's hash or a ledger (`NetworkAdapter.usedBy`). */
export async function usedBy(
  db: Queryable,
  chain: StellarChain,
  withdrawal: BroadcastWithdrawal,
  what: string,
): Promise<NonceEnd> {
  const made = await findTransaction(chain, withdrawal.crypto_tx_hash)
  if (made?.successful === true)
    return mayBeMined(`${withdrawal.crypto_tx_hash} is in a ledger, and may pay it`)
  const end = await endOf(db, chain, withdrawal, await standingOf(chain, withdrawal))
  if (end === undefined) return mayBeMined('it may be made yet: neither its number nor its time has passed')
  if (end.state === 'VOID' && end.usedBy !== what && !(isLedger(end.usedBy) && isLedger(what)))
    // Its time passed, and since then its number was used: both prove it.
    return isLedger(what) ? end : mayBeMined(`${end.usedBy} ended it, and not ${what}`)
  return end
}
