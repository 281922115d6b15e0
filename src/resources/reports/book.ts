import { Type } from 'typebox'
import { Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll, type Database } from '../../db/database.ts'
import type { Request } from '../../http/operation.ts'

/** The parameter by which operators of the deployment choose one customer's entries. */
export const OF_CUSTOMER = {
  customer_id: Type.Optional(Uuid('For operators of the deployment: only the entries of this customer.')),
}

/** Whose entries a report reads: of one customer, or of all and the platform. */
export interface Book {
  db: Database
  customerId: string | undefined
}

/**
 * The book of a caller: an API client's is its customer's, that of an operator of the deployment is the whole ledger. Throws
 * bad-request where anybody else asks for another customer's.
 */
export function bookOf({
  db,
  customerId,
  scopes,
  query,
}: Pick<Request, 'customerId' | 'scopes'> & { db: Database; query: { customer_id?: string } }): Book {
  const asked = query.customer_id?.toLowerCase()
  if (scopes.includes('operators:read_ledger')) return { db: forEverybody(forAll(db)), customerId: asked }
  if (asked !== undefined && asked !== customerId)
    throw problem.badRequest('customer_id: only operators of the deployment name a customer', 'customer_id')
  return { db: forEverybody(db), customerId }
}
