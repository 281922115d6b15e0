import type { Transaction } from '../../db/database.ts'
import { momentAt, PLATFORM_ID, readClock } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import { parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { Problem } from '../../contract/problems.ts'
import { judgeWithdrawals } from '../../governance/approvals/approved-withdrawal.ts'
import { OwnCustody, requirePaidIn } from '../../money/movements/paid-in-limit.ts'
import type { Judgement } from '../../governance/approvals/judge-decisions.ts'
import { describeFreeze, freezesOfSigning, type Freeze } from '../../money/records/freezes.ts'
import { Holders, type Holder } from '../../money/records/holders.ts'
import type { PayoutNetwork, Payer, PaymentRefusal, Withdrawal } from '../../networks/network.ts'
import type { WaitingCode } from '../../contract/waiting-codes.ts'
import type { WaitingReason } from '../../networks/waiting.ts'

/** Whether a withdrawal may be signed now. DEFERRED: it waits. REFUSED: it fails and is refunded. */
export type SigningDecision =
  | { outcome: 'SIGN' }
  | { outcome: 'DEFERRED'; reason: WaitingReason; dueInMs?: number }
  | { outcome: 'REFUSED'; refusal: PaymentRefusal }

type ClaimedAmount = Pick<Withdrawal, 'transfer_id' | 'asset' | 'amount'>

/** A withdrawal with the profile, account and identity whose money it takes. */
interface Held extends Holder {
  transfer_id: string
  needs_approval: boolean
}

/**
 * Decides for each withdrawal whether it may be signed, in the transaction that keeps the signed bytes. It reads again
 * conditions that were true when the withdrawal was accepted: freezes, the standing of its account, its profile's account
 * and its identity, and in a sandbox the customer's deposits over a real network. None of these refuses a withdrawal for
 * good, because each can be reversed: the withdrawal waits, and can be cancelled. It verifies the approvers' signatures
 * again (`judgeWithdrawals`); a rejection, or the deadline, refuses the withdrawal. Returns the decisions by transfer_id.
 */
export async function checkBeforeSigning(
  tx: Transaction,
  { customer_id, network }: { customer_id: string; network: PayoutNetwork },
  claimed: readonly ClaimedAmount[],
  adapter: Pick<Payer, 'paysDepositsOnly'>,
): Promise<Map<string, SigningDecision>> {
  if (customer_id === PLATFORM_ID) return checkTreasury(tx, network, claimed)
  const transferIds = claimed.map(({ transfer_id }) => transfer_id)
  const withdrawals = await selectHolders(tx, customer_id, transferIds)
  const profileIds = [...new Set(withdrawals.map(({ profile_id }) => profile_id))]
  const freezes = await freezesOfSigning(tx, { network, customer_id, profile_ids: profileIds })
  const holders = await Holders.read(tx, customer_id, { profileIds, holders: withdrawals })
  const isLimited = adapter.paysDepositsOnly === true && network !== 'WIRE'
  const assets = claimed.map(({ asset }) => asset)
  const routes = assets.map((asset) => ({ crypto_network: network as CryptoNetwork, asset }))
  const ownCustody = await OwnCustody.read(tx, customer_id, isLimited ? routes : [], 'SIGNED')
  const amounts = new Map(claimed.map((withdrawal) => [withdrawal.transfer_id, withdrawal]))
  const notPaidIn = ({ transfer_id, profile_id }: Held) => {
    const { asset, amount } = amounts.get(transfer_id)!
    const route = { crypto_network: network as CryptoNetwork, asset }
    const minor = parseAmount(amount, decimalsOf(asset))!
    const refusal = refusalOf('NOT_PAID_IN', () =>
      requirePaidIn(profile_id, route, ownCustody.get(route)!, minor),
    )
    if (refusal === undefined) ownCustody.note({ ...route, minor })
    return refusal
  }
  const waiting = await checkApprovals(tx, customer_id, withdrawals)
  return new Map(
    withdrawals.map((withdrawal) => {
      const unapproved = waiting.get(withdrawal.transfer_id)
      if (unapproved !== undefined) return [withdrawal.transfer_id, unapproved]
      const reason =
        frozen(freezes, withdrawal) ??
        barred(holders, withdrawal) ??
        (isLimited ? notPaidIn(withdrawal) : undefined)
      return [
        withdrawal.transfer_id,
        reason === undefined ? { outcome: 'SIGN' } : { outcome: 'DEFERRED', reason },
      ]
    }),
  )
}

/**
 * Decides about the platform's own transfers: nothing is signed on a frozen network. The adapter, which knows the hot
 * wallet's balance, makes a send to cold storage leave enough for customers' withdrawals (`unsignedWithdrawals`).
 */
async function checkTreasury(
  tx: Transaction,
  network: PayoutNetwork,
  claimed: readonly ClaimedAmount[],
): Promise<Map<string, SigningDecision>> {
  const [freeze] = await freezesOfSigning(tx, { network })
  const decision: SigningDecision =
    freeze === undefined ? { outcome: 'SIGN' } : { outcome: 'DEFERRED', reason: reasonOfFreeze(freeze) }
  return new Map(claimed.map(({ transfer_id }) => [transfer_id, decision]))
}

/** A withdrawal is checked again when its approvers have decided, at its deadline, and once a day. */
const APPROVAL_LOOK_MS_MAX = 24 * 60 * 60 * 1000

async function checkApprovals(
  tx: Transaction,
  customerId: string,
  withdrawals: readonly Held[],
): Promise<Map<string, SigningDecision>> {
  const decisions = new Map<string, SigningDecision>()
  const ids = withdrawals.flatMap((withdrawal) => (withdrawal.needs_approval ? withdrawal.transfer_id : []))
  if (ids.length === 0) return decisions
  const judged = await judgeWithdrawals(tx, customerId, ids)
  const now = await readClock(tx)
  for (const [id, { statement, judgement }] of judged) {
    const leftMs = (momentAt(statement.deadline).micros - now.micros) / 1000
    if (judgement.outcome === 'REJECTED') decisions.set(id, refused('an approver rejected it'))
    else if (judgement.outcome === 'PENDING' && leftMs <= 0)
      decisions.set(id, refused(`it was not approved by ${statement.deadline}`))
    else if (judgement.outcome === 'PENDING') {
      const detail = `${judgement.approvals} of ${statement.required} approvers have approved it${refusedSignatures(judgement)}`
      const dueInMs = Math.min(Math.ceil(leftMs), APPROVAL_LOOK_MS_MAX)
      decisions.set(id, { outcome: 'DEFERRED', reason: { code: 'AWAITING_APPROVAL', detail }, dueInMs })
    }
  }
  return decisions
}

const refused = (detail: string): SigningDecision => ({
  outcome: 'REFUSED',
  refusal: { secondary_status: { name: 'CUSTOMER_REJECTED', detail } },
})

/** Names the decisions that do not count: an operator has to find out who wrote them. */
function refusedSignatures({ objections }: Judgement): string {
  const named = objections.slice(0, OBJECTIONS_NAMED_MAX)
  return named.map(({ approver_id, objection }) => `; not that of ${approver_id}: ${objection}`).join('')
}

const OBJECTIONS_NAMED_MAX = 3

async function selectHolders(tx: Transaction, customerId: string, transferIds: string[]): Promise<Held[]> {
  const { rows } = await tx.query<{
    transfer_id: string
    profile_id: string
    account_id: string | null
    identity_id: string | null
    needs_approval: boolean
  }>(
    `
    select id as transfer_id, profile_id, account_id, identity_id, exists (
             select 1 from approvals a where a.customer_id = $1 and a.transfer_id = t.id
           ) as needs_approval
    from transfers t
    where customer_id = $1 and id = any ($2::uuid[])
    order by id`,
    [customerId, transferIds],
  )
  return rows.map((row) => presentOf(row))
}

function frozen(freezes: Freeze[], { profile_id }: Held): WaitingReason | undefined {
  const freeze = freezes.find(({ kind, subject }) => kind !== 'PROFILE' || subject.endsWith(`/${profile_id}`))
  return freeze && reasonOfFreeze(freeze)
}

const reasonOfFreeze = (freeze: Freeze): WaitingReason => ({ code: 'FROZEN', detail: describeFreeze(freeze) })

const barred = (holders: Holders, withdrawal: Held) =>
  refusalOf('NOT_APPROVED', () => holders.requireMayWithdraw(withdrawal))

function refusalOf(code: WaitingCode, check: () => void): WaitingReason | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (error instanceof Problem) return { code, detail: error.detail }
    throw error
  }
}
