import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { strict as assert } from 'node:assert'
import { Type, type Static } from 'typebox'
import { Amount, Uuid } from '../../contract/fields.ts'
import { parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { eachAlone } from '../../db/each-alone.ts'
import { readClock } from '../../db/ids.ts'
import { ownRowMacs } from '../../audit/sealed-rows.ts'
import { onPlatform, onProfile } from '../../money/ledger/entries.ts'
import type { Movement } from '../../money/movements/decision.ts'
import { post } from '../../money/movements/post.ts'
import { isRetryable } from '../../money/movements/batches.ts'
import { refIdOf, selectDays, type OnStart } from './generate-statements.ts'
import { periodOf, type Period } from './period.ts'
import { holdRewardRates } from './reward-rates.ts'
import { rewardOf } from './reward.ts'
import {
  CHANGED_STATEMENT_COLUMNS,
  insertStatementEvent,
  REWARD_ASSET,
  type ChangedStatement,
} from './statement.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import { forgedBalances } from '../../money/ledger/sealed-balances.ts'

export const Paid = Type.Object({
  customer_id: Uuid('Customer.'),
  statement_id: Uuid('Statement.'),
  ref_id: Type.String({ description: 'The `ref_id` of the statement.' }),
  amount_paid: Amount('What was paid.'),
  transfer_id: Type.Optional(Uuid('The credit; absent where nothing was owed.')),
})
export type Paid = Static<typeof Paid>

/**
 * Pays the generated statements, all of them or those of a period or customer. Each payment is a ledger transaction
 * from the rewards account to the customer's default profile, recorded as a transfer. The database transaction locks
 * the statement, so that it is paid once, despite crashes and concurrent payers. Returns the payments. Throws
 * failures after all other work is done.
 */
export async function payStatements(
  db: Database,
  which: { period?: Period | undefined; customerId?: string | undefined; origin?: Origin } = {},
  onStart: OnStart = () => undefined,
): Promise<Paid[]> {
  const { rows } = await db.query<{ customer_id: string; id: string }>(
    `
    select customer_id, id
    from statements
    where status = 'STATEMENT_STATUS_GENERATED'
      and ($1::timestamptz is null or period_start = $1)
      and ($2::uuid is null or customer_id = $2)
    order by customer_id, period_start`,
    [which.period?.start, which.customerId],
  )
  const onDone = onStart(rows.length)
  const paid: Paid[] = []
  await eachAlone(
    rows,
    ({ id }) => `statement ${id}`,
    async ({ customer_id, id }) => {
      try {
        const payment = await payOnce(db, customer_id, id, which.origin ?? originOfLoop('statements'))
        if (payment !== undefined) paid.push(payment)
      } finally {
        onDone?.()
      }
    },
    'statements were not paid',
  )
  return paid
}

const ATTEMPTS_MAX = 5

async function payOnce(
  db: Database,
  customerId: string,
  id: string,
  origin: Origin,
): Promise<Paid | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    try {
      return await transaction(db, (tx) => pay(tx, customerId, id, origin))
    } catch (error) {
      // Another movement created the same balance first; now it exists.
      if (!isRetryable(error) || attempt === ATTEMPTS_MAX) throw error
    }
  }
}

interface Owed {
  ref_id: string
  asset: string
  total_amount_owed: string
  period_start: string
  generated_at: string
  is_paid: boolean
  profile_id: string | null
}

/**
 * Throws an Error unless a statement owes what the ledger gives for its month, by entries that Bursar wrote, and was not paid
 * before. The service's database role could write a statement or add entries, but cannot remove entries, transfers or
 * records of the audit log.
 */
async function requireOwed(tx: Transaction, customerId: string, id: string, owed: Owed): Promise<void> {
  const { ref_id, asset, total_amount_owed, generated_at, is_paid } = owed
  if (is_paid) throw new Error(`statement ${id} was paid before (bursar verify)`)
  const [forged] = await forgedBalances(tx, await ownRowMacs(), customerId, REWARD_ASSET)
  if (forged !== undefined) throw new Error(`statement ${id} is not paid: ${forged} (bursar verify)`)
  await holdRewardRates(tx)
  const period = periodOf(owed.period_start.slice(0, 7))!
  if (period.next > (await readClock(tx)).text)
    throw new Error(
      `statement ${id} is of ${period.name}, which has not ended: the clock was ahead (bursar verify)`,
    )
  const days = await selectDays(tx, customerId, period, generated_at)
  const { total } = rewardOf(days)
  const decimals = decimalsOf(REWARD_ASSET)
  if (
    asset !== REWARD_ASSET ||
    ref_id !== refIdOf(customerId, period) ||
    parseStoredAmount(total_amount_owed, decimals) !== parseStoredAmount(total, decimals)
  )
    throw new Error(
      `statement ${id} is not what the ledger gives: it owes ${total_amount_owed} ${asset}, the ledger ${total} (bursar verify)`,
    )
}

/** Pays one statement; undefined when another worker has paid it. */
async function pay(
  tx: Transaction,
  customerId: string,
  id: string,
  origin: Origin,
): Promise<Paid | undefined> {
  const { rows } = await tx.query<Owed>(
    `
    select s.ref_id, s.asset, s.total_amount_owed, s.period_start, s.generated_at,
           exists (select 1 from transfers t where t.customer_id = $1 and t.group_id = $2)
           or exists (select 1 from audit_log l
                      where l.customer_id = $1 and l.action = 'statement.pay'
                        and (l.subject_id = $2::text or l.subject_ids @> array[$2::uuid])) as is_paid,
           (select p.id from profiles p where p.customer_id = $1 and p.type = 'DEFAULT') as profile_id
    from statements s
    where s.customer_id = $1 and s.id = $2 and s.status = 'STATEMENT_STATUS_GENERATED'
    for update`,
    [customerId, id],
  )
  if (rows[0] === undefined) return undefined
  await requireOwed(tx, customerId, id, rows[0])
  const { ref_id, asset, total_amount_owed, profile_id } = rows[0]
  assert(profile_id !== null, `customer ${customerId} has no default profile to pay the reward to`)
  const minor = parseStoredAmount(total_amount_owed, decimalsOf(asset))
  const credit: Movement = {
    origin,
    balances: [{ profile_id, asset }],
    decide: ({ now, newId }) => ({
      transfer: {
        id: newId(),
        customer_id: customerId,
        profile_id,
        // The platform pays; the memo is the statement's ref_id.
        type: 'PAXOS_TRANSFER_CREDIT',
        direction: 'CREDIT',
        status: 'COMPLETED',
        asset,
        balance_asset: asset,
        amount: total_amount_owed,
        fee: '0',
        total: total_amount_owed,
        group_id: id,
        memo: ref_id,
        created_at: now.text,
        updated_at: now.text,
      },
      entries: [onPlatform('rewards', asset, -minor), onProfile(profile_id, asset, minor)],
    }),
  }
  const { outcomes, now } = await post(tx, customerId, minor > 0n ? [credit] : [])
  const [outcome] = outcomes
  if (outcome !== undefined && 'refusal' in outcome) throw outcome.refusal
  const transfer_id = outcome?.decision.transfer.id
  const changed = await tx.query<ChangedStatement>(
    `
    update statements
    set status = 'STATEMENT_STATUS_PAID', paid_at = $3, amount_paid = total_amount_owed, transfer_id = $4
    where customer_id = $1 and id = $2
    returning ${CHANGED_STATEMENT_COLUMNS}`,
    [customerId, id, now.text, transfer_id],
  )
  await insertStatementEvent(tx, now, 'statement.paid', changed.rows[0]!)
  recordChanges(tx, customerId, now, [audited(origin, 'statement.pay', id)])
  return {
    customer_id: customerId,
    statement_id: id,
    ref_id,
    amount_paid: total_amount_owed,
    ...(transfer_id !== undefined && { transfer_id }),
  }
}
