import { Type } from 'typebox'
import { registerCustomer } from '../../access/customers/create-customer.ts'
import { listCustomers } from '../../access/customers/list-customers.ts'
import { Closed, Items, Nothing, OneOf, Text, TextOrNull, Timestamp, Uuid } from '../../contract/fields.ts'
import { transaction } from '../../db/database.ts'
import {
  changeLimit,
  CUSTOMER_LIMITS,
  LIMIT_VALUE_MAX,
  requestDefaults,
  shownLimitsOf,
} from '../../money/records/customer-limits.ts'
import { operatorOperation } from '../operation.ts'

/** The customers of the deployment, and the limits of the token's customer: what `bursar customer` does. */

export const listAllCustomers = operatorOperation({
  method: 'GET',
  url: '/v2/operators/customers',
  scope: 'operators:read_customer',
  summary: 'List Customers',
  reply: Items(
    Type.Object({
      customer_id: Uuid('Customer.'),
      name: Type.String({ description: 'Its name.' }),
      created_at: Timestamp('Creation time.'),
      disabled_at: TextOrNull('When it was disabled; null unless it is.'),
      clients: Type.Integer({ description: 'API clients that are not disabled.' }),
      profiles: Type.Integer({ description: 'Profiles.' }),
    }),
  ),
  run: async ({ shared }) => ({ items: await listCustomers(shared) }),
})

export const makeCustomer = operatorOperation({
  method: 'POST',
  url: '/v2/operators/customers',
  scope: 'operators:write_customer',
  summary: 'Create Customer',
  repeats: 'a second request makes a second customer; List Customers shows what exists',
  body: Closed({ name: Text(200, 'Its name.', 1) }),
  reply: Type.Object({ customer_id: Uuid('Customer.'), profile_id: Uuid('Its first profile.') }),
  run: ({ body: { name }, origin, shared }) => registerCustomer(shared, name, origin),
})

export const listLimits = operatorOperation({
  method: 'GET',
  url: '/v2/operators/limits',
  scope: 'operators:read_customer',
  summary: 'List Customer Limits',
  reply: Items(
    Type.Object({
      limit: OneOf(CUSTOMER_LIMITS, 'The limit.'),
      value: Type.Integer({ description: '0: no limit.' }),
      is_default: Type.Boolean({ description: 'Whether nobody has set it.' }),
      records: Type.Optional(
        Type.Integer({ description: 'Of a limit of records: how many the customer has.' }),
      ),
    }),
  ),
  run: async ({ customerId, db, settings }) => ({
    items: await shownLimitsOf(db, requestDefaults(settings), customerId),
  }),
})

/** Sets a limit of the customer; without `value`, the default holds again. */
export const putLimit = operatorOperation({
  method: 'PUT',
  url: '/v2/operators/limits/:limit',
  scope: 'operators:write_customer',
  summary: 'Put Customer Limit',
  params: Closed({ limit: OneOf(CUSTOMER_LIMITS, 'The limit.') }),
  body: Closed({
    value: Type.Optional(Type.Integer({ minimum: 0, maximum: LIMIT_VALUE_MAX, description: '0: no limit.' })),
  }),
  reply: Nothing,
  async run({ params: { limit }, body: { value }, customerId, origin, db }) {
    await transaction(db, (tx) => changeLimit(tx, customerId, limit, value, origin))
    return {}
  },
})
