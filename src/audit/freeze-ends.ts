/** The ends of freezes. The service's role writes `lifted_at`, so it is the MAC of an end that ends a freeze. */

export interface Seal {
  sealed: string
  mac: string | null
}

/** SQL: what the MAC of the end of a customer's or profile's freeze `r` covers, as `sealOf` writes it (sealed-rows.ts). */
export const SEALED_END =
  'json_build_array(r.customer_id::text, r.reason::text, r.created_at::text, r.subject::text, (extract(epoch from r.lifted_at) * 1000000)::bigint, (extract(epoch from r.sealed_at) * 1000000)::bigint)::text'

/** Whether a freeze holds: it has no end, or its end was written without the master key. */
export const holds = (
  { lifted_at, sealed, mac }: Seal & { lifted_at: string | null },
  isEnd: (end: Seal) => boolean,
): boolean => lifted_at === null || !isEnd({ sealed, mac })
