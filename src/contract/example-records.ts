/**
 * Ids used in the examples of operations. They are fixed, because openapi.json is checked in. A sandbox with a demo
 * customer replaces them by the demo's own ids, so that the examples in `/docs` work unchanged.
 */
export const EXAMPLE = {
  customer_id: '0192f3a4-0000-7000-8000-000000000001',
  profile_id: '0192f3a4-0000-7000-8000-000000000002',
  memo_id: 'K3Z9QH7T2M5XW8RB',
  instructions_id: '0192f3a4-0000-7000-8000-00000000000a',
  identity_id: '0192f3a4-0000-7000-8000-000000000003',
  institution_id: '0192f3a4-0000-7000-8000-0000000000d1',
  institution_member_id: '0192f3a4-0000-7000-8000-0000000000d2',
  account_id: '0192f3a4-0000-7000-8000-000000000004',
  account_member_id: '0192f3a4-0000-7000-8000-0000000000d3',
  account_profile_id: '0192f3a4-0000-7000-8000-000000000005',
  fiat_account_id: '0192f3a4-0000-7000-8000-000000000006',
  orchestration_rule_id: '0192f3a4-0000-7000-8000-000000000007',
  orchestration_id: '0192f3a4-0000-7000-8000-000000000008',
  transfer_id: '0192f3a4-0000-7000-8000-000000000009',
  /** An unused client, which examples rotate and delete. */
  client_id: '0192f3a4-0000-7000-8000-00000000000b',
  event_id: '0192f3a4-0000-7000-8000-0000000000e3',
  /** An endpoint that gets tests only. */
  webhook_id: '0192f3a4-0000-7000-8000-0000000000e1',
  /** An endpoint that examples delete. */
  unused_webhook_id: '0192f3a4-0000-7000-8000-0000000000e2',
  statement_id: '0192f3a4-0000-7000-8000-00000000000c',
}
export type ExampleRecords = typeof EXAMPLE

/** Replaces the fixed ids in a text by those of the given records. */
export const withRecords = (text: string, records: ExampleRecords): string =>
  Object.entries(EXAMPLE).reduce(
    (filled, [name, stable]) => filled.replaceAll(stable, records[name as keyof ExampleRecords]),
    text,
  )
