import type { Transaction } from '../../db/database.ts'

/** The versions of customers' policies as rows. What they mean, and whether they can be trusted, is governance's. */

export interface PolicyRow<Document extends object> {
  version: number
  document: Document
  mac: string
  created_at: string
}

/** In SQL: the version and MAC of a row of `policies`. */
export const POLICY_PLACE = "version || ' ' || mac"

/** Adds a version. Of two versions that are added at the same time, the second violates `policies_pkey`. */
export async function insertPolicy(
  tx: Transaction,
  customerId: string,
  { version, document, mac, created_at }: PolicyRow<object>,
): Promise<void> {
  await tx.query(
    'insert into policies (customer_id, version, document, mac, created_at) values ($1, $2, $3, $4, $5)',
    [customerId, version, document, mac, created_at],
  )
}
