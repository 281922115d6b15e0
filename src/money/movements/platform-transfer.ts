import { formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Database } from '../../db/database.ts'
import { onPlatform, onProfile } from '../ledger/entries.ts'
import type { Transfer } from '../ledger/transfer.ts'
import type { Movement, View } from './decision.ts'
import { post } from './post.ts'
import { isRetryable } from './batches.ts'
import type { Ledger } from './queue.ts'

/** A transfer from a customer's profile to a profile of another customer. */
export interface PlatformTransfer extends Partial<
  Pick<Transfer, 'ref_id' | 'identity_id' | 'account_id' | 'metadata'>
> {
  customer_id: string
  from_profile_id: string
  to_profile_id: string
  asset: string
  /** In minor units. */
  minor: bigint
  recipient_metadata?: Transfer['metadata']
  origin: Origin
  requireCaller: () => void
  dryRun?: boolean | undefined
}

const PLATFORM = originOfLoop('transfers-between-customers')

/** How often a transfer is decided again after a conflict with another movement. */
const ATTEMPTS_MAX = 20
/** Most transfers of one customer that wait for their turn in this process. */
const WAITING_MAX = 100

/** The transfers of each customer that are under way or wait. Each holds a connection while it runs, so they run in turn. */
const turns = new Map<string, { waiting: number; last: Promise<unknown> }>()

/**
 * Moves money to another customer (API behaviour, Paxos transfers): a debit and a credit with one group_id, in one
 * transaction. Returns the debit. Throws the sender's refusals before a missing receiver, so that a profile's existence
 * shows only to somebody who could pay it; not-found for an unknown or deactivated receiver.
 */
export async function transferToCustomer(
  db: Database,
  ledger: Ledger,
  asked: PlatformTransfer,
): Promise<Transfer> {
  const receiver = await findReceiver(db, asked.to_profile_id)
  if (receiver === asked.customer_id)
    throw problem.badRequest(
      'to_profile_id is a profile of your own: use POST /v2/transfer/internal',
      'to_profile_id',
    )
  if (receiver === undefined) {
    await ledger.submit(asked.customer_id, { ...sidesOf(asked, '').debit, dryRun: true })
    throw problem.notFound('profile', asked.to_profile_id)
  }
  return inTurn(asked.customer_id, () => postBoth(db, ledger, asked, receiver))
}

async function inTurn<T>(customerId: string, work: () => Promise<T>): Promise<T> {
  const turn = turns.get(customerId) ?? { waiting: 0, last: Promise.resolve() }
  if (turn.waiting >= WAITING_MAX)
    throw problem.unavailable('too many transfers of this customer are waiting; nothing was moved; try again')
  turns.set(customerId, turn)
  turn.waiting += 1
  const mine = turn.last.then(work, work)
  turn.last = mine.catch(() => undefined)
  try {
    return await mine
  } finally {
    turn.waiting -= 1
    if (turn.waiting === 0) turns.delete(customerId)
  }
}

async function postBoth(
  db: Database,
  { govern }: Ledger,
  asked: PlatformTransfer,
  receiver: string,
): Promise<Transfer> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const { debit, credit } = sidesOf(asked, receiver)
    // In the order of the customers, so that two transfers in opposite directions do not wait for each other.
    const sides = [
      { customerId: asked.customer_id, movement: debit },
      { customerId: receiver, movement: credit },
    ].sort((a, b) => (a.customerId < b.customerId ? -1 : 1))
    try {
      return await transaction(db, async (tx) => {
        let sent: Transfer | undefined
        for (const { customerId, movement } of sides) {
          const { outcomes } = await post(tx, customerId, [movement], { govern, lookUpRefIds: true })
          const outcome = outcomes[0]!
          if ('refusal' in outcome) throw outcome.refusal
          if (movement === debit) sent = outcome.decision.transfer
        }
        return sent!
      })
    } catch (error) {
      if (!isRetryable(error)) throw error
    }
  }
  throw problem.unavailable('too much contention with other movements; nothing was moved; try again')
}

/** Both sides, which share the group_id of whichever is decided first. */
function sidesOf(asked: PlatformTransfer, receiver: string): { debit: Movement; credit: Movement } {
  const { customer_id, from_profile_id, to_profile_id, asset, minor, origin, dryRun } = asked
  const { identity_id, account_id, ref_id, metadata, recipient_metadata } = asked
  const amount = formatAmount(minor, decimalsOf(asset))
  let group: string | undefined
  const side = ({ now, newId }: View) => ({
    id: newId(),
    group_id: (group ??= newId()),
    status: 'COMPLETED' as const,
    asset,
    balance_asset: asset,
    amount,
    fee: '0',
    total: amount,
    created_at: now.text,
    updated_at: now.text,
  })
  return {
    debit: {
      origin,
      ref_id,
      dryRun,
      requireCaller: asked.requireCaller,
      payment: {
        type: 'PAXOS_TRANSFER_DEBIT',
        ...{ profile_id: from_profile_id, identity_id, account_id, asset, destination: to_profile_id },
      },
      balances: [{ profile_id: from_profile_id, asset }],
      decide: (view) => ({
        transfer: {
          ...side(view),
          ...{ customer_id, profile_id: from_profile_id, identity_id, account_id, ref_id, metadata },
          type: 'PAXOS_TRANSFER_DEBIT',
          direction: 'DEBIT',
        },
        entries: [onProfile(from_profile_id, asset, -minor), onPlatform('between_customers', asset, minor)],
      }),
    },
    credit: {
      // The receiver's audit log names no client, request or address of the sender.
      origin: PLATFORM,
      dryRun,
      balances: [{ profile_id: to_profile_id, asset }],
      decide(view) {
        requireReceiver(view, to_profile_id)
        return {
          transfer: {
            ...side(view),
            ...{ customer_id: receiver, profile_id: to_profile_id, metadata: recipient_metadata },
            type: 'PAXOS_TRANSFER_CREDIT',
            direction: 'CREDIT',
          },
          entries: [onPlatform('between_customers', asset, -minor), onProfile(to_profile_id, asset, minor)],
        }
      },
    },
  }
}

/** To the sender, a profile that was deactivated meanwhile does not exist. */
function requireReceiver({ requireOpen }: View, profileId: string): void {
  try {
    requireOpen(profileId)
  } catch {
    throw problem.notFound('profile', profileId)
  }
}

/** Returns the customer that has this profile, of all customers; undefined if no such profile is open. */
async function findReceiver(db: Database, profileId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ customer_id: string }>({
    name: 'receiver of a transfer',
    text: 'select customer_id from profiles where id = $1 and deactivated_at is null',
    values: [profileId],
  })
  return rows[0]?.customer_id
}
