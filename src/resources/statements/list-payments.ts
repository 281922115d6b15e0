import { Type, type Static } from 'typebox'
import { parseStoredAmount, formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import {
  Amount,
  AssetSymbol,
  Filter,
  FilterValue,
  FilterWithoutCommas,
  NamedObject,
  OneOf,
  Timestamp,
  Uuid,
} from '../../contract/fields.ts'
import { pageParameters, uuidsOf } from '../../http/lists.ts'
import { listOperation, type Condition } from '../list-operation.ts'
import { OwnCustomerId, paymentRefIdOf, PRODUCT, requireOwnCustomer } from './statement.ts'

const PaymentStatus = OneOf(
  ['PAYMENT_STATUS_PENDING', 'PAYMENT_STATUS_COMPLETED', 'PAYMENT_STATUS_FAILED'],
  'Status: PENDING until the statement is paid, then COMPLETED; never FAILED.',
)

const Payment = NamedObject('StatementPayment', {
  id: Uuid("Payment id: the statement's id, because a statement is paid once."),
  customer_id: Uuid('Customer.'),
  profile_id: Uuid('Profile that is credited.'),
  ref_id: Type.String({
    description: 'The `next_payment_ref_id` that the statement had before it was paid.',
  }),
  product: OneOf([PRODUCT], 'Product.'),
  payment_destination: Uuid('Profile that is credited.'),
  payment_asset: AssetSymbol,
  payment_amount: Amount('Amount.'),
  payment_status: PaymentStatus,
  payment_tx_id: Type.Optional(Uuid('Id of the transfer that paid it.')),
  created_at: Timestamp('Creation time of the statement.'),
  processed_at: Type.Optional(Timestamp('When it was paid.')),
})
type Payment = Static<typeof Payment>

export const listPayments = listOperation({
  url: '/v2/statements/payments',
  scope: 'statements:read_payment',
  alternativeScope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'List Payments',
  description: 'Lists the payments of statements, newest first. A generated statement has a pending payment.',
  example: { query: { limit: 12 } },
  list: 'payments',
  item: Payment,
  names: ['payments', 'items'],
  parameters: {
    ref_ids: FilterWithoutCommas(FilterValue, 'Filter by payment ref_ids.'),
    payment_ids: Filter(FilterValue, 'Filter by payment ids.'),
    customer_id: Type.Optional(OwnCustomerId("Customer id; must be the token's customer.")),
    product: Type.Optional(OneOf([PRODUCT], 'Filter by product.')),
    payment_status: Type.Optional(OneOf([...PaymentStatus.enum], 'Filter by status.')),
  },
  bounded: false,
  page: pageParameters,
  check: ({ query, customerId }) => requireOwnCustomer(query.customer_id, customerId),
  select: `
    select s.id, s.customer_id, s.ref_id as statement_ref_id, p.id as profile_id, s.asset, s.total_amount_owed,
           s.transfer_id, s.created_at, s.paid_at
    from statements s
    join profiles p on p.customer_id = s.customer_id and p.type = 'DEFAULT'`,
  alias: 's',
  orderBy: () => 'created_at',
  where: ({ query }) => [
    ['s.total_amount_owed > 0'],
    ...(query.order === 'ASC' ? [[NONE_IS_TO_COME_BEFORE] as Condition] : []),
    [`${REF_ID} = any (?::text[])`, query.ref_ids],
    ['s.id = any (?::uuid[])', uuidsOf(query.payment_ids)],
    ['s.status = ?', query.payment_status && STATEMENT_STATUS[query.payment_status]],
  ],
  toWire: paymentToWire,
})

const REF_ID =
  "concat(s.customer_id, '-', s.ref_id, '-', s.asset, '-', trim_scale(s.total_amount_owed), '-seq#1')"

/** A statement gets its payment when it is generated. Ascending, no payment comes before one that is still to come. */
const NONE_IS_TO_COME_BEFORE = `
  not exists (
    select 1 from statements earlier
    where earlier.customer_id = $1 and earlier.status = 'STATEMENT_STATUS_INITIATED'
      and (earlier.created_at, earlier.id) < (s.created_at, s.id)
  )`

/** The statement's status for each status of a payment. No statement has the last one. */
const STATEMENT_STATUS: Record<Payment['payment_status'], string> = {
  PAYMENT_STATUS_PENDING: 'STATEMENT_STATUS_GENERATED',
  PAYMENT_STATUS_COMPLETED: 'STATEMENT_STATUS_PAID',
  PAYMENT_STATUS_FAILED: 'FAILED',
}

interface PaymentRow {
  id: string
  customer_id: string
  statement_ref_id: string
  profile_id: string
  asset: string
  total_amount_owed: string
  transfer_id: string | null
  created_at: string
  paid_at: string | null
}

function paymentToWire({
  statement_ref_id,
  asset,
  total_amount_owed,
  transfer_id,
  created_at,
  paid_at,
  ...row
}: PaymentRow): Payment {
  const decimals = decimalsOf(asset)
  return {
    ...row,
    ref_id: paymentRefIdOf({ ...row, ref_id: statement_ref_id, asset, total_amount_owed }),
    product: PRODUCT,
    payment_destination: row.profile_id,
    payment_asset: asset,
    payment_amount: formatAmount(parseStoredAmount(total_amount_owed, decimals), decimals),
    payment_status: paid_at === null ? 'PAYMENT_STATUS_PENDING' : 'PAYMENT_STATUS_COMPLETED',
    ...(transfer_id !== null && { payment_tx_id: transfer_id }),
    created_at,
    ...(paid_at !== null && { processed_at: paid_at }),
  }
}
