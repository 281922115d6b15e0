import type { Transaction } from '../../db/database.ts'

/** The versions of customers' policies as rows. What they mean, and whether they can be trusted, is governance's. */

/** In SQL: the version and MAC of a row of `policies`. */
export const POLICY_PLACE = "version || ' ' || mac"

/** Adds a version. Of two versions that are added at the same time, the second violates `policies_pkey`. */
export async function insertPolicy(
  tx: Transaction,
  customerId: string,
  policy: { version: number; document: object; mac: string; created_at: string },
): Promise<void> {
  await tx.query(
    'insert into policies (customer_id, version, document, mac, created_at) values ($1, $2, $3, $4, $5)',
    [customerId, policy.version, policy.document, policy.mac, policy.created_at],
  )
}
