import type { Address } from '@solana/addresses'
import type { Queryable } from '../../src/db/database.ts'
import { judgeAlone } from '../../src/networks/judge-alone.ts'
import type { BroadcastWithdrawal, NonceEnd, PaymentStatus, Withdrawal } from '../../src/networks/network.ts'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import { type WaitingReason, refusedDestination } from '../../src/networks/waiting.ts'
import { onceForEach } from '../kit/once-for-each.ts'
import { endedBy, hashesOf, mayBeMined, usedByUnseen } from '../kit/nonce-used.ts'
import { doubtOf, type SecondWord } from '../kit/second-word.ts'
import { toBeJudged, unresolved } from '../kit/unresolved.ts'
import { hasMoved, readAccounts, readHasMoved, type NonceUse } from './accounts.ts'
import { feeIn, GAS_ASSET, NETWORK, onChain, type Facts, type SolanaChain } from './chain.ts'
import { SYSTEM, TOKEN, TOKEN_2022 } from './instructions.ts'
import {
  changesOf,
  failureIn,
  madeTransaction,
  signaturesOf,
  statusesOf,
  type MadeTransaction,
  type SignatureStatus,
  type SolanaRpc,
} from './node.ts'
import { tooCheap } from './fees.ts'
import { partOf } from '../kit/fee-share.ts'
import {
  parse,
  parsePayment,
  paymentIn,
  targetOf,
  type ParsedPayment,
  type ParsedTransaction,
  type ParsedTransfer,
} from './transaction.ts'

/** How far the transaction of each withdrawal is, and the outcome of the finalized ones. */
export async function checkStatus(
  db: Queryable,
  chain: SolanaChain,
  withdrawals: BroadcastWithdrawal[],
): Promise<PaymentStatus[]> {
  const facts = await chain.facts()
  const standing = await statusesOf(chain.rpc, withdrawals.flatMap(hashesOf))
  const nonceAccounts = withdrawals.flatMap(
    (withdrawal) => paymentIn(withdrawal.raw_transaction)?.nonceAccount ?? [],
  )
  // After the signatures: a transaction that is finalized in between is asked about again.
  const accounts = await readAccounts(chain.rpc, nonceAccounts)
  const show = onceForEach(String, (hash: string) => madeTransaction(chain.rpc, hash))
  return Promise.all(
    withdrawals.map((withdrawal) =>
      judgeAlone(async (): Promise<PaymentStatus> => {
        const known = hashesOf(withdrawal).flatMap((hash) => {
          const status = standing.get(hash)
          return status ? [{ hash, status }] : []
        })
        const payment = parsePayment(withdrawal.raw_transaction)
        let isInBlock = false
        for (const { hash, status } of known) {
          const made = status.confirmationStatus === 'finalized' ? await show(hash) : undefined
          // On a nonce before, it has failed by another payment: that says nothing of the present bytes.
          if (made && made.err !== null && !usesNonceOf(parse(made.raw), payment)) continue
          if (made !== undefined) return outcomeOf(chain, facts, withdrawal, { hash, status }, made)
          isInBlock = true
        }
        if (isInBlock) return { state: 'MINED' }
        // The same bytes again: they are valid as long as the nonce has its value.
        if (!hasMoved(accounts, payment)) return { state: 'UNKNOWN', ...tooCheap(chain, withdrawal) }
        // The signer process has signed them, and its answer was lost: it gives the same again.
        if (withdrawal.isAsked) return { state: 'UNKNOWN' }
        return (await endOfNonce(db, chain, withdrawal)) ?? { state: 'MINED' }
      }),
    ),
  )
}

/**
 * The outcome of a withdrawal whose transaction is finalized. It has failed only where status and transaction both say so, and
 * its nonce has moved: then it can never be made again. The payment at fault has failed, and the others of the transaction are
 * signed anew. It has paid only where the recipient's balance shows it.
 */
async function outcomeOf(
  chain: SolanaChain,
  facts: Facts,
  withdrawal: BroadcastWithdrawal,
  { hash, status }: { hash: string; status: SignatureStatus },
  made: MadeTransaction,
): Promise<PaymentStatus> {
  const payment = parsePayment(withdrawal.raw_transaction)
  const transfer = transferOf(facts, payment, withdrawal)
  const shown = parse(made.raw)
  // Of the account that is paid, as a deposit at one of our addresses has it.
  const place = {
    crypto_tx_hash: hash,
    crypto_tx_index: String(shown.accounts.indexOf(transfer.target)),
  }
  if (shown.hash !== hash || !shown.isSigned || (made.err === null) !== (status.err === null)) {
    const reason = toBeJudged(`the node contradicts itself about ${hash}`)
    return { ...unresolved(reason, place), mayBeMined: true }
  }
  if (made.err !== null) {
    // An answer of a node that lags: while the value is there, the bytes may be made yet.
    if (!(await readHasMoved(chain.rpc, payment))) return { state: 'MINED' }
    const err = JSON.stringify(made.err)
    const doubt = await doubtOfEnd(chain, hash, made.err)
    const faulty = faultyIn(payment, shown, made.err)
    const networkFee = feeIn(made.fee)
    if (doubt !== undefined)
      return unresolved(doubt, { ...place, ...(faulty === transfer && { networkFee }) })
    if (faulty !== transfer) return { state: 'VOID', usedBy: hash }
    return {
      state: 'FAILED',
      refusal: refusedDestination(withdrawal, `the network failed transaction ${hash}: ${err}`),
      networkFee,
      ...(!walletLackedMoney(shown, made.err) && { byRecipient: true as const }),
    }
  }
  const { lamports, tokens } = changesOf(made, shown.accounts)
  const arrived = (transfer.mint === undefined ? lamports : tokens).get(transfer.target) ?? 0n
  const networkFee = feeIn(costOfOne(payment, transfer, lamports))
  if (arrived === transfer.units) return { state: 'CONFIRMED', ...place, networkFee }
  const rose = `the recipient's balance rose by ${arrived} of ${transfer.units} units`
  return unresolved(toBeJudged(`${hash} was made, and ${rose}`), { ...place, networkFee })
}

/**
 * A payment's part of what the wallet has lost beyond the payments of a transaction: the rent of the account that it made, and a
 * share of the fee. The parts of all add up to it, to the lamport.
 */
export function costOfOne(
  { from, transfers }: ParsedPayment,
  transfer: ParsedTransfer,
  lamports: ReadonlyMap<Address, bigint>,
): bigint {
  const moved = transfers.reduce(
    (sum, other) => sum + (other.mint === undefined ? other.units : rentOf(other, lamports)),
    0n,
  )
  const fee = -(lamports.get(from) ?? 0n) - moved
  const share = { of: transfers.length, rank: transfers.indexOf(transfer) }
  return partOf(fee, share) + rentOf(transfer, lamports)
}

/** The rent that the wallet has paid for the account of a recipient. */
export const rentOf = ({ madeFor, target }: ParsedTransfer, lamports: ReadonlyMap<Address, bigint>): bigint =>
  madeFor === undefined ? 0n : (lamports.get(target) ?? 0n)

/** The payment that made a transaction fail: the one of the instruction that failed, or the first where none did. */
function faultyIn(
  { transfers }: ParsedPayment,
  { accounts }: ParsedTransaction,
  err: NonNullable<MadeTransaction['err']>,
): ParsedTransfer {
  const { index, account } = failureIn(err)
  return (
    transfers.find(
      ({ target, instructions: [first, last] }) =>
        (index !== undefined && index >= first && index <= last) ||
        (account !== undefined && target === accounts[account]),
    ) ?? transfers[0]!
  )
}

/** Code 1 of the programs that move money: the account that pays has too little. */
const TOO_LITTLE = '1'
const MOVES_MONEY: readonly Address[] = [SYSTEM, TOKEN, TOKEN_2022]

function walletLackedMoney(
  { instructions }: ParsedTransaction,
  err: NonNullable<MadeTransaction['err']>,
): boolean {
  const { index = -1, code, account } = failureIn(err)
  // The first account is the wallet's own: it must keep its rent.
  return (
    account === 0 ||
    (code === TOO_LITTLE && MOVES_MONEY.some((program) => program === instructions[index]?.program))
  )
}

/** Why the end of a transaction is not believed yet; undefined where the second node has the same. */
function doubtOfEnd(
  chain: SolanaChain,
  hash: string,
  err: MadeTransaction['err'],
  alone?: string,
): Promise<WaitingReason | undefined> {
  const endOf = (of: MadeTransaction['err']) =>
    of === null ? 'was made' : `has failed: ${JSON.stringify(of)}`
  const ask = async (second: SolanaRpc): Promise<SecondWord> => {
    const there = await madeTransaction(second, hash)
    if (there === undefined) return { waits: 'cannot tell yet' }
    if (JSON.stringify(there.err) === JSON.stringify(err)) return undefined
    return { differs: `says that it ${endOf(there.err)}` }
  }
  // A failure waits for a second word in a sandbox, too: its customer would be paid back for what may have been made.
  const { second, mode } = alone === undefined ? { ...chain, mode: 'live' as const } : chain
  return doubtOf({ second, mode }, `the node says that ${hash} ${endOf(err)}`, ask, alone)
}

/** Pages of 1,000 signatures in which the user of a nonce is looked for. */
const PAGES_MAX = 3
const LOOKED_MAX = 50
/**
 * The end of a withdrawal whose nonce has moved, and of which the node knows no signature. That proves nothing: only the other
 * transaction, with its bytes signed by the same key, ends it. Undefined where its own transaction moved the nonce.
 */
async function endOfNonce(
  db: Queryable,
  chain: SolanaChain,
  withdrawal: BroadcastWithdrawal,
): Promise<NonceEnd | undefined> {
  const payment = parsePayment(withdrawal.raw_transaction)
  const own = hashesOf(withdrawal)
  const user = await userOfNonce(chain, payment, own)
  if (user === undefined) return usedByUnseen(`its nonce of ${payment.nonceAccount}`, withdrawal.transfer_id)
  return own.includes(user) ? undefined : usedBy(db, chain, withdrawal, user)
}

/** The transaction that has used a nonce: one of `own`, or another that the wallet's key has signed, by its own bytes. */
export async function userOfNonce(
  { rpc }: SolanaChain,
  use: NonceUse,
  own: readonly string[],
): Promise<string | undefined> {
  const touching = (await signaturesOf(rpc, use.nonceAccount, null, PAGES_MAX)) ?? []
  for (const { signature } of touching.slice(0, LOOKED_MAX)) {
    if (own.includes(signature)) return signature
    const made = await madeTransaction(rpc, signature)
    const shown = made && parse(made.raw)
    if (shown?.hash === signature && shown.isSigned && usesNonceOf(shown, use)) return signature
  }
  return undefined
}

const usesNonceOf = (shown: ReturnType<typeof parse>, { nonceAccount, nonce, from }: NonceUse): boolean =>
  shown.nonceAccount === nonceAccount && shown.lifetime === nonce && shown.signers.includes(from)

/** Whether this transaction has used the nonce of a withdrawal's bytes, finalized (`NetworkAdapter.usedBy`). */
export async function usedBy(
  db: Queryable,
  chain: SolanaChain,
  withdrawal: BroadcastWithdrawal,
  hash: string,
): Promise<NonceEnd> {
  const facts = await chain.facts()
  const kept = paymentIn(withdrawal.raw_transaction)
  if (kept === undefined) return mayBeMined('its bytes are no payment on a nonce account')
  const made = await madeTransaction(chain.rpc, hash)
  if (made === undefined) return mayBeMined(`the node of ${NETWORK} has no finalized transaction ${hash}`)
  const transfer = transferOf(facts, kept, withdrawal)
  const shown = parse(made.raw)
  const isOwn = hashesOf(withdrawal).includes(hash)
  if (isOwn && made.err === null) return mayBeMined(`${hash} was signed for it, and may pay it`)
  if (shown.hash !== hash || !shown.isSigned)
    return mayBeMined(`the node's answer for ${hash} is not signed as ${hash}`)
  if (!usesNonceOf(shown, kept)) return mayBeMined(`${hash} has another nonce, or another wallet signed it`)
  // Its own has ended without paying it where another payment of it made it fail.
  if (isOwn && made.err !== null && faultyIn(kept, shown, made.err) === transfer)
    return mayBeMined(`${hash} failed because of it: 'not-paid' refunds it, and posts the fee`)
  if (!(await readHasMoved(chain.rpc, kept))) return mayBeMined(`${hash} has not moved its nonce yet`)
  return endedBy(
    db,
    { network: NETWORK, transfer_id: withdrawal.transfer_id, hash },
    {
      isSamePayment: made.err === null && samePayment(paymentIn(made.raw), transfer) !== undefined,
      doubt: () => doubtOfEnd(chain, hash, made.err, NOTHING_ELSE),
    },
  )
}

/** What a withdrawal has a transaction pay; undefined where the node has no mint of its asset. */
export function wantedOf(facts: Facts, withdrawal: Withdrawal) {
  const { asset, amount, destination_address } = withdrawal
  const token = facts.tokens.get(asset)
  if (token === undefined && asset !== GAS_ASSET) return undefined
  const target = targetOf({ to: destination_address as Address, ...(token && { token }) })
  return { target, units: onChain(asset, amount), mint: token?.mint }
}

/** The payment of a transaction that pays a withdrawal. Throws an Error where there is none. */
function transferOf(facts: Facts, payment: ParsedPayment, withdrawal: Withdrawal): ParsedTransfer {
  const wanted = wantedOf(facts, withdrawal)
  const found = wanted && samePayment(payment, wanted)
  if (found === undefined) throw new Error('none of its payments pays the withdrawal')
  return found
}

/** The payment of a transaction that pays the same units of the same asset to the same account. */
export const samePayment = (
  payment: ParsedPayment | undefined,
  { target, units, mint }: Pick<ParsedTransfer, 'target' | 'units' | 'mint'>,
): ParsedTransfer | undefined =>
  payment?.transfers.find((other) => other.target === target && other.units === units && other.mint === mint)
