import { Type } from 'typebox'
import { forAll } from '../../db/database.ts'
import { registerCustomer } from '../../money/records/customer.ts'
import { CustomerSummary, listCustomers } from '../../access/customers/list-customers.ts'
import { Closed, Items, Text, Uuid } from '../../contract/fields.ts'
import { operatorOperation } from '../operation.ts'

/** The customers of the deployment: what `bursar customer` does. */

export const listAllCustomers = operatorOperation({
  method: 'GET',
  url: '/v2/operators/customers',
  scope: 'operators:read_customer',
  summary: 'List Customers',
  reply: Items(CustomerSummary),
  run: async ({ db }) => ({ items: await listCustomers(forAll(db)) }),
})

export const makeCustomer = operatorOperation({
  method: 'POST',
  url: '/v2/operators/customers',
  scope: 'operators:write_customer',
  summary: 'Create Customer',
  repeats: 'a second request makes a second customer; List Customers shows what exists',
  body: Closed({ name: Text(200, 'Its name.', 1) }),
  reply: Type.Object({ customer_id: Uuid('Customer.'), profile_id: Uuid('Its first profile.') }),
  run: ({ body: { name }, origin, db }) => registerCustomer(forAll(db), name, origin),
})
