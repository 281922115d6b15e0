import { strict as assert } from 'node:assert'
import type { Origin } from '../../contract/actor.ts'
import { parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { recordChanges } from '../../audit/audit.ts'
import { onPlatform, onProfile } from '../../money/ledger/entries.ts'
import type { Movement } from '../../money/movements/decision.ts'
import { post } from '../../money/movements/post.ts'
import { audited } from '../../audit/audited.ts'

export interface Reversed {
  customer_id: string
  statement_id: string
  amount: string
  transfer_id: string
}

/** The reward of a statement cannot be taken back. The message says why. */
export class NotReversible extends Error {}

/**
 * Takes back the reward of a statement that was paid by mistake: a PAXOS_TRANSFER_DEBIT of the paid amount from the
 * customer's default profile to the rewards account. The statement stays PAID, so it is not paid again. The lock on the
 * statement makes the reversal happen once, despite crashes and concurrent commands. Throws NotReversible, and
 * insufficient-funds when the profile no longer has the amount.
 */
export async function reversePayment(db: Database, statementId: string, origin: Origin): Promise<Reversed> {
  return transaction(db, (tx) => reverse(tx, statementId, origin))
}

interface PaidStatement {
  customer_id: string
  ref_id: string
  asset: string
  status: string
  amount_paid: string | null
  profile_id: string | null
}

async function reverse(tx: Transaction, statementId: string, origin: Origin): Promise<Reversed> {
  const { rows: owners } = await tx.query<{ customer_id: string }>(
    'select customer_id from statements where id = $1',
    [statementId],
  )
  const { rows } = await tx.query<PaidStatement>(
    `
    select s.customer_id, s.ref_id, s.asset, s.status, s.amount_paid,
           (select p.id from profiles p where p.customer_id = $1 and p.type = 'DEFAULT') as profile_id
    from statements s
    where s.customer_id = $1 and s.id = $2
    for update`,
    [owners[0]?.customer_id, statementId],
  )
  const [statement] = rows
  if (statement === undefined) throw new NotReversible(`there is no statement ${statementId}`)
  const { customer_id, ref_id, asset, amount_paid: amount, profile_id } = statement
  if (statement.status !== 'STATEMENT_STATUS_PAID' || amount === null)
    throw new NotReversible(`the statement is ${statement.status}: only a paid one can be taken back`)
  const minor = parseStoredAmount(amount, decimalsOf(asset))
  if (minor === 0n) throw new NotReversible('the statement owed nothing, so nothing was paid')
  assert(profile_id !== null, `customer ${customer_id} has no default profile`)
  const { rows: debits } = await tx.query<{ id: string }>(
    `select id from transfers where customer_id = $1 and group_id = $2 and direction = 'DEBIT'`,
    [customer_id, statementId],
  )
  if (debits[0] !== undefined)
    throw new NotReversible(`transfer ${debits[0].id} has taken the reward of this statement back already`)
  const debit: Movement = {
    origin,
    balances: [{ profile_id, asset }],
    decide: ({ now, newId }) => ({
      transfer: {
        id: newId(),
        customer_id,
        profile_id,
        // As in the credit, the platform is the other side, and the memo is the statement's ref_id.
        type: 'PAXOS_TRANSFER_DEBIT',
        direction: 'DEBIT',
        status: 'COMPLETED',
        asset,
        balance_asset: asset,
        amount,
        fee: '0',
        total: amount,
        group_id: statementId,
        memo: ref_id,
        created_at: now.text,
        updated_at: now.text,
      },
      entries: [onProfile(profile_id, asset, -minor), onPlatform('rewards', asset, minor)],
    }),
  }
  const { outcomes, now } = await post(tx, customer_id, [debit])
  const outcome = outcomes[0]!
  if ('refusal' in outcome) throw outcome.refusal
  recordChanges(tx, customer_id, now, [audited(origin, 'statement.reverse', statementId)])
  return { customer_id, statement_id: statementId, amount, transfer_id: outcome.decision.transfer.id }
}
