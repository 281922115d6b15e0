/**
 * The place of a table's rows on a distributed database:
 * CUSTOMER: on the shard of the row's customer, together with all other rows of that customer.
 * EVERYWHERE: a copy on each node, because statements read the table together with a customer's rows.
 * READABLE: on the coordinator; other nodes read and write it through the coordinator, in one transaction with a customer's rows.
 * COORDINATOR: on the coordinator alone, unknown to other nodes.
 */
export type TablePlacement = 'CUSTOMER' | 'EVERYWHERE' | 'READABLE' | 'COORDINATOR'

/** The privileges of the service's role on one table, besides `select`. */
export interface TablePrivileges {
  insert?: true
  /** The only columns that it may update. */
  update?: readonly string[]
  delete?: true
}

/** A table: its place, whether the service may insert and delete rows, and the columns that it may update, as words. */
const table = (
  place: TablePlacement,
  may: '' | 'insert' | 'insert delete' = '',
  update = '',
): { place: TablePlacement; privileges: TablePrivileges } => ({
  place,
  privileges: {
    ...(may !== '' && { insert: true }),
    ...(update !== '' && { update: update.split(/\s+/) }),
    ...(may === 'insert delete' && { delete: true }),
  },
})

/**
 * Every table of the schema: its place, and all privileges of the service's role. `migrate` grants these and revokes all others.
 * Another role owns the tables, so no statement of the service can extend its rights (ARCHITECTURE.md, "Two roles").
 *
 * A new table needs a line here, and a newly updated column its name: tests run as the service's role, and `migrate` refuses to
 * distribute a table that it does not know. Processes of the older version still need a privilege until they have stopped. So
 * remove a privilege one release after the last statement that needs it. Tables of prices and of the simulated chain stay on the
 * coordinator alone: their statements use what Citus refuses.
 */
const TABLES = {
  account_members: table('CUSTOMER', 'insert', 'removed_at'),
  acknowledged_transactions: table('COORDINATOR', 'insert'),
  accounts: table('CUSTOMER', 'insert', 'description metadata user_disabled admin_disabled updated_at'),
  api_clients: table(
    'CUSTOMER',
    'insert',
    `name last_used_at disabled_at updated_at secret_hash previous_secret_hash previous_secret_expires_at
     sealed_at mac`,
  ),
  address_series: table('COORDINATOR', 'insert'),
  // Rows are deleted once they are read.
  asked_addresses: table('COORDINATOR', 'insert delete', 'address derivation signature'),
  audit_heads: table('CUSTOMER', 'insert', 'position hash'),
  audit_links: table('CUSTOMER', 'insert'),
  audit_log: table('CUSTOMER', 'insert'),
  approval_decisions: table('CUSTOMER', 'insert'),
  approvals: table('CUSTOMER', 'insert', 'status approved_at ended_at'),
  failed_transactions: table('READABLE', 'insert', 'counts'),
  // Only the schema's owner makes and revokes approvers.
  approvers: table('CUSTOMER'),
  balances: table('CUSTOMER', 'insert', 'available version updated_at mac'),
  bank_lines: table('COORDINATOR', 'insert'),
  bank_matches: table('EVERYWHERE', 'insert'),
  bank_statements: table('COORDINATOR', 'insert', 'sealed_at mac'),
  bank_wires: table('EVERYWHERE', 'insert'),
  crypto_destination_addresses: table(
    'CUSTOMER',
    'insert',
    'nickname bookmarked travelrule_metadata status approved_at rejected_at updated_at sealed_at mac',
  ),
  // A day is closed once: its digest is set with its sums.
  closed_days: table('EVERYWHERE', 'insert', 'digest closed_at'),
  credited_deposits: table('CUSTOMER', 'insert'),
  day_sums: table('CUSTOMER', 'insert'),
  decided_orchestrations: table('CUSTOMER', 'insert'),
  customer_fee_checks: table('CUSTOMER', 'insert', 'counted_from'),
  // A freeze that has ended stays, with the MAC of its end.
  customer_freezes: table('CUSTOMER', 'insert', 'lifted_at sealed_at mac'),
  customers: table('CUSTOMER', 'insert'),
  deployment: table('READABLE', 'insert', 'mode issuer stamped_at sealed_at mac verified_at verify_findings'),
  // Only the schema's owner lets payments go on unscreened.
  screening_requirement: table('READABLE', 'insert'),
  deposit_addresses: table('CUSTOMER', 'insert', 'sealed_at mac'),
  entries: table('CUSTOMER', 'insert'),
  event_history: table('READABLE'),
  events: table('CUSTOMER', 'insert'),
  address_holdings: table('CUSTOMER', 'insert', 'balance stale_at'),
  evm_nonces: table('READABLE', 'insert', 'next_nonce acknowledged_nonces'),
  sweeps: table(
    'CUSTOMER',
    'insert',
    `amount state raw_transaction crypto_tx_hash replaced network_fee signed_at lost_since ended_at
     audit_block`,
  ),
  // Deletes quotes an hour after they expired unused, and 30 days after they were used.
  fee_quotes: table('CUSTOMER', 'insert delete', 'transfer_id sealed_at mac'),
  fiat_accounts: table('CUSTOMER', 'insert', 'metadata updated_at deleted_at'),
  fiat_deposit_instructions: table('CUSTOMER', 'insert', 'sealed_at mac'),
  freezes: table('READABLE', 'insert', 'unrecorded lifted_at sealed_at mac'),
  identities: table(
    'CUSTOMER',
    'insert',
    `status user_disabled admin_disabled details tax_details tax_details_not_required
     customer_due_diligence is_merchant last_kyc_refresh_date sandbox_checks metadata updated_at`,
  ),
  incoming_transfers: table(
    'CUSTOMER',
    'insert delete',
    'state reason detail cleared block_number block_hash attempts due_at transfer_id sealed_at mac',
  ),
  institution_members: table('CUSTOMER', 'insert', 'removed_at'),
  markets: table('COORDINATOR', '', 'source newest_minute newest_price sealed_at mac'),
  network_cursors: table('COORDINATOR', 'insert', 'cursor updated_at earlier leased_until'),
  network_fee_checks: table('COORDINATOR', 'insert', 'counted_from'),
  network_genesis: table('COORDINATOR', 'insert'),
  // Payees are only added, by add_payees. Nothing is signed again for a withdrawal among the payees, unless the chain itself says
  // that the transaction in `used_by` has used the nonce.
  network_transactions: table('READABLE', 'insert', 'ended_at used_by'),
  // Of an earlier version: the audit log has the challenges that were answered.
  operator_challenges: table('COORDINATOR'),
  operator_links: table('COORDINATOR', 'insert delete', 'used_at sealed_at mac'),
  operator_passkeys: table('COORDINATOR', 'insert', 'used_at signatures removed_at sealed_at mac'),
  // Deletes sessions 30 days after their end.
  operator_sessions: table('COORDINATOR', 'insert delete', 'used_at ended_at sealed_at mac'),
  operators: table('COORDINATOR', 'insert', 'role disabled_at generation updated_at sealed_at mac'),
  orchestration_rules: table('CUSTOMER', 'insert', 'status updated_at sealed_at mac'),
  orchestrations: table('CUSTOMER', 'insert', 'destination_transfer_id fail_reason status updated_at mac'),
  outgoing_transfers: table(
    'CUSTOMER',
    'insert',
    `state raw_transaction crypto_tx_hash due_at waiting_code waiting_detail waiting_since leased_until
     crypto_tx_index signed_at broadcast_at confirmations confirmations_needed`,
  ),
  policies: table('CUSTOMER', 'insert'),
  // Deletes windows a day after nothing in them counts any more.
  policy_windows: table('CUSTOMER', 'insert delete', 'buckets ends_at'),
  price_imports: table('COORDINATOR', 'insert', 'name records finished updated_at'),
  // The first real price removes a market's simulated prices.
  price_minutes: table(
    'COORDINATOR',
    'insert delete',
    'covers_minutes second price exact_increment open high low close',
  ),
  price_points: table(
    'COORDINATOR',
    'insert delete',
    'minutes sum counts exact_increment open high low close',
  ),
  profiles: table('CUSTOMER', 'insert', 'nickname description deactivated_at'),
  replaced_transactions: table('CUSTOMER', 'insert'),
  // A rate is set with its MAC, and never changed.
  reward_rates: table('EVERYWHERE', 'insert', 'sealed_at mac'),
  schema_version: table('COORDINATOR'),
  screenings: table('CUSTOMER', 'insert', 'id state attempts due_at detail decided_at mac'),
  // Deletes seen deposits 30 days after they ended; their transfers stay.
  seen_deposits: table('CUSTOMER', 'insert delete', 'block_number state ended_at'),
  resolved_withdrawals: table('CUSTOMER', 'insert'),
  // Deletes what is posted.
  refills: table('COORDINATOR', 'insert delete', 'detail'),
  signing_keys: table('COORDINATOR', 'insert', 'encrypted_jwk retired_at'),
  // Deletes transactions of a sandbox's simulated networks after 30 days.
  simulated_chain: table('COORDINATOR', 'insert delete', 'broadcast_at dropped_at arrives'),
  solana_lanes: table(
    'READABLE',
    'insert',
    'checked_nonce checked_signature used_nonce used_by acknowledged',
  ),
  statements: table(
    'CUSTOMER',
    'insert',
    'status total_amount_owed amount_paid transfer_id generated_at paid_at reward_method',
  ),
  traces: table('CUSTOMER', 'insert delete'),
  transfer_metadata: table('CUSTOMER', 'insert'),
  // `group_id` and `notional_value` of a deposit, when it is credited.
  transfers: table(
    'CUSTOMER',
    'insert',
    `status updated_at mac secondary_status status_details crypto_tx_hash crypto_tx_index group_id
     notional_value`,
  ),
  wallet_checks: table('COORDINATOR', 'insert', 'checked_block journal_head updated_at'),
  webhook_attempts: table('CUSTOMER', 'insert'),
  webhook_deliveries: table(
    'CUSTOMER',
    'insert',
    'status attempts attempts_of_round due_at leased_until ended_at',
  ),
  webhooks: table(
    'CUSTOMER',
    'insert delete',
    `updated_at name url event_types payload auth profile_ids rate_limit status encrypted_secrets
     previous_secret_until cursor_id failing_since disabled_reason slow_until next_at`,
  ),
  // Only added: a wire that was taken, and a withdrawal that was cancelled, stay that.
  withdrawal_marks: table('CUSTOMER', 'insert'),
  withdrawal_names: table('CUSTOMER', 'insert'),
}

const ofEach = <T>(read: (of: ReturnType<typeof table>) => T): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(TABLES).map(([name, of]) => [name, read(of)]))

export const PRIVILEGES = ofEach(({ privileges }) => privileges)

export const PLACES = ofEach(({ place }) => place)
