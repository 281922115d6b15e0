/**
 * The records that the examples of operations name, with stable ids for the document that is checked in. A sandbox
 * that has its demo customer puts the demo's own in their place, so that what `/docs` shows works as it is.
 */
export const EXAMPLE = {
  customer_id: '0192f3a4-0000-7000-8000-000000000001',
  profile_id: '0192f3a4-0000-7000-8000-000000000002',
  memo_id: 'K3Z9QH7T2M5XW8RB',
  identity_id: '0192f3a4-0000-7000-8000-000000000003',
  account_id: '0192f3a4-0000-7000-8000-000000000004',
  account_profile_id: '0192f3a4-0000-7000-8000-000000000005',
  fiat_account_id: '0192f3a4-0000-7000-8000-000000000006',
  orchestration_rule_id: '0192f3a4-0000-7000-8000-000000000007',
  orchestration_id: '0192f3a4-0000-7000-8000-000000000008',
  transfer_id: '0192f3a4-0000-7000-8000-000000000009',
}
export type ExampleRecords = typeof EXAMPLE

/** The same text with these records in place of the stable ones. */
export const withRecords = (text: string, records: ExampleRecords): string =>
  Object.entries(EXAMPLE).reduce(
    (filled, [name, stable]) => filled.replaceAll(stable, records[name as keyof ExampleRecords]),
    text,
  )
