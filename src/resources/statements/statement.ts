import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import {
  Amount,
  AssetSymbol,
  LENGTH_MAX,
  NamedObject,
  OneOf,
  Timestamp,
  Uuid,
} from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import type { Transaction } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import { insertEvents } from '../../money/ledger/events.ts'

export const REWARD_ASSET = 'USDG'
export const STATEMENT_TYPE = 'STATEMENT_TYPE_USDG_REWARD'
export const PRODUCT = 'USDG_REWARDS'

/** Filters by the customer: the token's, because no other is answered. */
export const OwnCustomerId = (description: string, examples?: string[]) =>
  Type.String({
    maxLength: LENGTH_MAX,
    transform: ['toLowerCase'],
    description,
    ...(examples && { examples }),
  })

/** Throws forbidden for another customer than the token's. */
export function requireOwnCustomer(asked: string | undefined, customerId: string): void {
  if (asked !== undefined && asked !== customerId)
    throw problem.forbidden("customer_id must be the token's customer")
}

export const StatementStatus = OneOf(
  [
    'STATEMENT_STATUS_UNSPECIFIED',
    'STATEMENT_STATUS_INITIATED',
    'STATEMENT_STATUS_GENERATED',
    'STATEMENT_STATUS_PAID',
  ],
  'Status.',
)

export const StatementFiles = Type.Array(
  Type.Object({
    format: Type.String({ description: 'Format of the file.' }),
    url: Type.String({ description: 'Where to download it.' }),
    generated_at: Timestamp('When the file was generated.'),
  }),
  { description: 'Files of the statement: none, because its amounts are all in the record.' },
)

export const Statement = NamedObject('Statement', {
  id: Uuid('Statement id.'),
  ref_id: Type.String({ description: 'Client-visible reference.' }),
  customer_id: Uuid('Customer.'),
  type: OneOf([STATEMENT_TYPE], 'Statement type.'),
  product: OneOf([PRODUCT], 'Product.'),
  status: StatementStatus,
  metadata: Type.Optional(
    Type.Object(
      { total_amount: Amount('Reward of the period.') },
      { description: 'Absent until the statement is generated.' },
    ),
  ),
  statement_balances: Type.Optional(
    Type.Array(
      Type.Object({
        asset: AssetSymbol,
        amount_paid: Amount('Amount paid so far.'),
        total_amount_owed: Amount('Reward of the period.'),
        next_payment_ref_id: Type.Optional(
          Type.String({ description: 'The `ref_id` of its payment. Absent when nothing is left to pay.' }),
        ),
      }),
      { description: 'Balance per asset. Absent until the statement is generated.' },
    ),
  ),
  period_start: Timestamp('Start of the period covered.'),
  period_end: Timestamp('End of the period covered: its last microsecond.'),
  generated_at: Type.Optional(Timestamp('When the statement was generated.')),
  paid_at: Type.Optional(Timestamp('When the statement was paid.')),
  created_at: Timestamp('Creation time.'),
  statement_group_id: Uuid('Groups the versions of a statement. There is one version, so it equals `id`.'),
  version: Type.Integer({ description: 'Version: 1, because a generated statement never changes.' }),
  files: StatementFiles,
})
export type Statement = Static<typeof Statement>

export const STATEMENT_COLUMNS = `s.id, s.ref_id, s.customer_id, s.type, s.product, s.status, s.asset, s.total_amount_owed,
  s.amount_paid, s.period_start, s.period_end, s.generated_at, s.paid_at, s.created_at`

type Stored = 'id' | 'ref_id' | 'customer_id' | 'type' | 'product' | 'status' | 'created_at'
/** A row of `statements`: nulls for fields that are not set yet. */
export type StatementRow = Pick<Statement, Stored | 'period_start' | 'period_end'> & {
  asset: string
  total_amount_owed: string | null
  amount_paid: string | null
  generated_at: string | null
  paid_at: string | null
}

export function paymentRefIdOf({
  customer_id,
  ref_id,
  asset,
  total_amount_owed,
}: Pick<Statement, 'customer_id' | 'ref_id'> & { asset: string; total_amount_owed: string }): string {
  const decimals = decimalsOf(asset)
  const amount = formatAmount(parseStoredAmount(total_amount_owed, decimals), decimals)
  return `${customer_id}-${ref_id}-${asset}-${amount}-seq#1`
}

export const CHANGED_STATEMENT_COLUMNS = 'id, ref_id, customer_id, status, period_start, period_end'
/** A statement whose status changed, as its event shows it. */
export type ChangedStatement = Pick<
  Statement,
  'id' | 'ref_id' | 'customer_id' | 'status' | 'period_start' | 'period_end'
>

/** Writes the event of a statement that is generated or paid at this moment, in the same transaction. */
export async function insertStatementEvent(
  tx: Transaction,
  now: Moment,
  type: 'statement.generated' | 'statement.paid',
  statement: ChangedStatement,
): Promise<void> {
  await insertEvents(tx, statement.customer_id, now, [{ type, object_id: statement.id, object: statement }])
}

export function statementToWire({
  asset,
  total_amount_owed,
  amount_paid,
  generated_at,
  paid_at,
  ...row
}: StatementRow): Statement {
  const owes = (total: string) =>
    parseStoredAmount(amount_paid!, decimalsOf(asset)) < parseStoredAmount(total, decimalsOf(asset))
  return {
    ...row,
    ...(total_amount_owed !== null && {
      metadata: { total_amount: total_amount_owed },
      statement_balances: [
        {
          asset,
          amount_paid: amount_paid!,
          total_amount_owed,
          ...(owes(total_amount_owed) && {
            next_payment_ref_id: paymentRefIdOf({ ...row, asset, total_amount_owed }),
          }),
        },
      ],
    }),
    ...(generated_at !== null && { generated_at }),
    ...(paid_at !== null && { paid_at }),
    statement_group_id: row.id,
    version: 1,
    files: [],
  }
}
