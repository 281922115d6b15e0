-- The schema that the migrations make, as PostgreSQL's catalogues tell it. For readers: nothing runs this file.
-- `npm run schema` writes it, and a test compares it with a freshly migrated database.
-- Where no grants are shown, the owner may do all. What the service's role may do: src/db/privileges.ts.

create table account_members (
  customer_id uuid not null,
  id uuid not null,
  account_id uuid not null,
  identity_id uuid not null,
  roles text[] not null,
  removed_at timestamp with time zone,
  constraint account_members_pkey PRIMARY KEY (customer_id, id),
  constraint account_members_customer_id_account_id_fkey FOREIGN KEY (customer_id, account_id) REFERENCES accounts(customer_id, id),
  constraint account_members_customer_id_identity_id_fkey FOREIGN KEY (customer_id, identity_id) REFERENCES identities(customer_id, id)
);
CREATE UNIQUE INDEX account_members_identity ON account_members USING btree (customer_id, account_id, identity_id) WHERE removed_at IS NULL;

create table accounts (
  customer_id uuid not null,
  id uuid not null,
  client_id text not null,
  identity_id uuid not null,
  ref_id text,
  type text not null,
  description text,
  user_disabled boolean not null default false,
  admin_disabled boolean not null default false,
  metadata jsonb,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint accounts_pkey PRIMARY KEY (customer_id, id),
  constraint accounts_ref_id UNIQUE (customer_id, ref_id, client_id),
  constraint accounts_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint accounts_customer_id_identity_id_fkey FOREIGN KEY (customer_id, identity_id) REFERENCES identities(customer_id, id),
  constraint accounts_type CHECK (type = ANY (ARRAY['BROKERAGE'::text, 'TRADITIONAL_IRA'::text, 'ROTH_IRA'::text, 'SEP_IRA'::text, 'FINANCIAL_ADVISOR'::text]))
);
CREATE INDEX accounts_id ON accounts USING btree (id);
CREATE INDEX accounts_identity ON accounts USING btree (customer_id, identity_id, id);

create table acknowledged_transactions (
  network text not null,
  crypto_tx_hash text not null,
  id uuid not null,
  acknowledged_at timestamp with time zone not null,
  constraint acknowledged_transactions_pkey PRIMARY KEY (network, crypto_tx_hash)
);

create table api_clients (
  customer_id uuid not null,
  id uuid not null,
  secret_hash bytea not null,
  scopes text[] not null,
  created_at timestamp with time zone not null,
  disabled_at timestamp with time zone,
  previous_secret_hash bytea,
  previous_secret_expires_at timestamp with time zone,
  updated_at timestamp with time zone not null,
  sealed_at timestamp with time zone,
  mac text,
  constraint api_clients_pkey PRIMARY KEY (customer_id, id),
  constraint api_clients_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint api_clients_scopes CHECK (array_to_string(scopes, ' '::text) !~ '(^| )operators:'::text)
);
CREATE INDEX api_clients_disabled ON api_clients USING btree (disabled_at) WHERE disabled_at IS NOT NULL;
CREATE INDEX api_clients_id ON api_clients USING btree (id);

create table approval_decisions (
  customer_id uuid not null,
  approval_id uuid not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  approver_id uuid not null,
  decision text not null,
  signed jsonb not null,
  constraint approval_decisions_pkey PRIMARY KEY (customer_id, approval_id, id)
);

create table approvals (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  transfer_id uuid,
  change jsonb,
  change_digest text,
  required smallint not null,
  role text not null,
  rule_id text,
  policy_version bigint not null,
  initiator_type text not null,
  initiator_id text not null,
  deadline timestamp with time zone not null,
  status text not null,
  approved_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint approvals_pkey PRIMARY KEY (customer_id, id),
  constraint approvals_subject CHECK ((transfer_id IS NULL) = (change IS NOT NULL) AND (change IS NULL) = (change_digest IS NULL))
);
CREATE UNIQUE INDEX approvals_change ON approvals USING btree (customer_id, change_digest) WHERE change_digest IS NOT NULL AND (status = ANY (ARRAY['PENDING'::text, 'APPROVED'::text]));
CREATE INDEX approvals_open ON approvals USING btree (customer_id, deadline) WHERE change IS NOT NULL AND (status = ANY (ARRAY['PENDING'::text, 'APPROVED'::text]));
CREATE UNIQUE INDEX approvals_transfer ON approvals USING btree (customer_id, transfer_id) WHERE transfer_id IS NOT NULL;

create table approvers (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  name text not null,
  operator_id uuid,
  client_id uuid,
  role text not null,
  key jsonb not null,
  thumbprint text not null,
  status text not null,
  revoked_at timestamp with time zone,
  constraint approvers_pkey PRIMARY KEY (customer_id, id),
  constraint approvers_revoked CHECK ((status = 'REVOKED'::text) = (revoked_at IS NOT NULL))
);
CREATE UNIQUE INDEX approvers_key ON approvers USING btree (customer_id, thumbprint) WHERE status = 'ACTIVE'::text;

create table audit_heads (
  customer_id uuid not null,
  "position" bigint not null,
  hash bytea not null,
  covered_from timestamp with time zone not null,
  constraint audit_heads_pkey PRIMARY KEY (customer_id)
) with (fillfactor=20);

create table audit_links (
  customer_id uuid not null,
  "position" bigint not null,
  created_at timestamp with time zone not null,
  digests bytea not null,
  hash bytea not null,
  constraint audit_links_pkey PRIMARY KEY (customer_id, "position"),
  constraint audit_links_digests CHECK (length(digests) > 0 AND (length(digests) % 32) = 0),
  constraint audit_links_hash CHECK (length(hash) = 32)
);

create table audit_log (
  customer_id uuid not null,
  id uuid not null,
  "position" bigint not null,
  created_at timestamp with time zone not null,
  actor_type text not null,
  actor_id text not null,
  action text not null,
  subject_type text not null,
  subject_id text,
  subject_ids uuid[],
  request_ids uuid[],
  ips text[],
  outcome text not null,
  ledger_event text,
  changes json,
  constraint audit_log_pkey PRIMARY KEY (customer_id, id),
  constraint audit_log_actor_type CHECK (actor_type = ANY (ARRAY['API_CLIENT'::text, 'OPERATOR'::text, 'WORKER'::text, 'COMMAND_LINE'::text])),
  constraint audit_log_outcome CHECK (outcome = ANY (ARRAY['DONE'::text, 'REFUSED'::text])),
  constraint audit_log_subject CHECK ((subject_id IS NULL) <> (subject_ids IS NULL))
) with (toast_tuple_target=8160);
CREATE INDEX audit_log_action ON audit_log USING btree (customer_id, action, id);
CREATE INDEX audit_log_actor ON audit_log USING btree (customer_id, actor_id, id);
CREATE INDEX audit_log_actor_action ON audit_log USING btree (customer_id, actor_id, action, id);
CREATE INDEX audit_log_actor_type ON audit_log USING btree (customer_id, actor_type, id);
CREATE INDEX audit_log_position ON audit_log USING btree (customer_id, "position");
CREATE INDEX audit_log_refused ON audit_log USING btree (customer_id, id) WHERE outcome = 'REFUSED'::text;
CREATE INDEX audit_log_subject ON audit_log USING btree (customer_id, subject_id, id) WHERE subject_id IS NOT NULL;
CREATE INDEX audit_log_subject_type ON audit_log USING btree (customer_id, subject_type, id) WHERE subject_id IS NOT NULL;

create table balances (
  customer_id uuid not null,
  profile_id uuid not null,
  asset text not null,
  available numeric not null,
  version bigint not null,
  updated_at timestamp with time zone not null,
  mac text,
  constraint balances_pkey PRIMARY KEY (customer_id, profile_id, asset),
  constraint balances_customer_id_profile_id_fkey FOREIGN KEY (customer_id, profile_id) REFERENCES profiles(customer_id, id),
  constraint balances_not_negative CHECK (available >= 0::numeric)
) with (fillfactor=50);

create table bank_wires (
  asset text not null,
  direction text not null,
  bank_reference text not null,
  kind text not null,
  amount numeric not null,
  transfer_id uuid not null,
  memo_id text,
  returned_transfer_id uuid,
  recorded_by text not null,
  recorded_at timestamp with time zone not null,
  constraint bank_wires_pkey PRIMARY KEY (asset, direction, bank_reference),
  constraint bank_wires_returned UNIQUE (returned_transfer_id),
  constraint bank_wires_transfer UNIQUE (transfer_id),
  constraint bank_wires_amount CHECK (amount > 0::numeric),
  constraint bank_wires_kind CHECK (direction = 'OUT'::text AND kind = 'SENT'::text AND memo_id IS NULL AND returned_transfer_id IS NULL OR direction = 'IN'::text AND (kind = ANY (ARRAY['DEPOSIT'::text, 'SENT_BACK'::text])) AND memo_id IS NOT NULL AND returned_transfer_id IS NULL OR direction = 'IN'::text AND kind = 'RETURN'::text AND memo_id IS NULL AND returned_transfer_id IS NOT NULL)
);

create table credited_deposits (
  customer_id uuid not null,
  network text not null,
  crypto_tx_hash text not null,
  crypto_tx_index text not null,
  transfer_id uuid not null,
  constraint credited_deposits_pkey PRIMARY KEY (customer_id, network, crypto_tx_hash, crypto_tx_index)
);

create table crypto_destination_addresses (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  identity_id uuid,
  crypto_network text not null,
  address text not null,
  canonical_address text not null,
  nickname text not null,
  bookmarked boolean not null,
  travelrule_metadata jsonb,
  status text not null,
  cooling_until timestamp with time zone,
  approved_at timestamp with time zone,
  rejected_at timestamp with time zone,
  sealed_at timestamp with time zone,
  mac text,
  constraint crypto_destination_addresses_pkey PRIMARY KEY (customer_id, id),
  constraint crypto_destination_addresses_identity_fkey FOREIGN KEY (customer_id, identity_id) REFERENCES identities(customer_id, id),
  constraint crypto_destination_addresses_approved CHECK (status <> 'APPROVED'::text OR approved_at IS NOT NULL),
  constraint crypto_destination_addresses_rejected CHECK ((status = 'REJECTED'::text) = (rejected_at IS NOT NULL)),
  constraint crypto_destination_addresses_status CHECK (status = ANY (ARRAY['PENDING'::text, 'APPROVED'::text, 'REJECTED'::text]))
);
CREATE UNIQUE INDEX crypto_destination_addresses_address ON crypto_destination_addresses USING btree (customer_id, crypto_network, canonical_address, COALESCE(identity_id, '00000000-0000-0000-0000-000000000000'::uuid));
CREATE INDEX crypto_destination_addresses_cooling ON crypto_destination_addresses USING btree (cooling_until) WHERE status = 'PENDING'::text;

create table customer_fee_checks (
  customer_id uuid not null,
  network text not null,
  counted_from timestamp with time zone not null,
  constraint customer_fee_checks_pkey PRIMARY KEY (customer_id, network)
);

create table customer_freezes (
  customer_id uuid not null,
  subject uuid not null,
  reason text not null,
  detail text not null,
  created_at timestamp with time zone not null,
  lifted_at timestamp with time zone,
  sealed_at timestamp with time zone,
  mac text,
  constraint customer_freezes_pkey PRIMARY KEY (customer_id, subject, reason, created_at)
);
CREATE UNIQUE INDEX customer_freezes_in_force ON customer_freezes USING btree (customer_id, subject, reason) WHERE lifted_at IS NULL;

create table customer_limits (
  customer_id uuid not null,
  name text not null,
  value bigint not null,
  updated_at timestamp with time zone not null,
  constraint customer_limits_pkey PRIMARY KEY (customer_id, name),
  constraint customer_limits_value CHECK (value >= 0)
);

create table customers (
  id uuid not null,
  name text not null,
  created_at timestamp with time zone not null,
  constraint customers_pkey PRIMARY KEY (id)
);

create table decided_orchestrations (
  customer_id uuid not null,
  orchestration_id uuid not null,
  transfer_id uuid,
  constraint decided_orchestrations_pkey PRIMARY KEY (customer_id, orchestration_id)
);

create table deployment (
  id smallint not null,
  mode text not null,
  issuer text,
  stamped_at timestamp with time zone not null,
  sealed_at timestamp with time zone,
  mac text,
  constraint deployment_pkey PRIMARY KEY (id),
  constraint deployment_issuer CHECK (issuer IS NULL OR mode = 'live'::text),
  constraint deployment_mode CHECK (mode = ANY (ARRAY['sandbox'::text, 'live'::text])),
  constraint deployment_one_row CHECK (id = 1)
);

create table deposit_addresses (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  crypto_network text not null,
  address text not null,
  conversion_target_asset text not null,
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamp with time zone not null,
  derivation text,
  sealed_at timestamp with time zone,
  mac text,
  constraint deposit_addresses_pkey PRIMARY KEY (customer_id, id),
  constraint deposit_addresses_address UNIQUE (customer_id, address, crypto_network),
  constraint deposit_addresses_ref_id UNIQUE (customer_id, ref_id),
  constraint deposit_addresses_customer_id_profile_id_fkey FOREIGN KEY (customer_id, profile_id) REFERENCES profiles(customer_id, id),
  constraint deposit_addresses_conversion CHECK (conversion_target_asset = ANY (ARRAY['NO_CONVERSION'::text, 'USD'::text]))
);
CREATE INDEX deposit_addresses_of_chain ON deposit_addresses USING btree (address);
CREATE INDEX deposit_addresses_profile ON deposit_addresses USING btree (customer_id, profile_id, id);

create table entries (
  customer_id uuid not null,
  transfer_id uuid not null,
  event text not null,
  "position" smallint not null,
  account text not null,
  profile_id uuid,
  asset text not null,
  amount numeric not null,
  balance_after numeric,
  version bigint,
  created_at timestamp with time zone not null,
  constraint entries_pkey PRIMARY KEY (customer_id, transfer_id, event, "position"),
  constraint entries_amount CHECK (amount <> 0::numeric),
  constraint entries_event CHECK (event = ANY (ARRAY['CREATED'::text, 'SETTLED'::text, 'REFUNDED'::text, 'SWEPT'::text])),
  constraint entries_not_negative CHECK (balance_after >= 0::numeric),
  constraint entries_profile CHECK ((account = 'profile'::text) = (profile_id IS NOT NULL) AND (profile_id IS NULL) = (balance_after IS NULL) AND (profile_id IS NULL) = (version IS NULL))
);
CREATE INDEX entries_balance_history ON entries USING btree (customer_id, profile_id, asset, created_at, version) WHERE profile_id IS NOT NULL;
CREATE INDEX entries_network_fees ON entries USING btree (account, created_at) WHERE account ~~ 'network_fees:%'::text;
CREATE INDEX entries_on_networks ON entries USING btree (account, asset) INCLUDE (amount) WHERE account ~~ 'custody:%'::text OR account ~~ 'network_fees:%'::text;
grant insert, references, select, trigger on entries to owner;

create table event_history (
  id smallint not null,
  complete_from timestamp with time zone not null,
  constraint event_history_pkey PRIMARY KEY (id),
  constraint event_history_one_row CHECK (id = 1)
);

create table events (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  type text not null,
  object_id uuid not null,
  object jsonb,
  is_test boolean not null,
  constraint events_pkey PRIMARY KEY (customer_id, id)
) partition by RANGE (id);
CREATE INDEX events_object ON ONLY events USING btree (customer_id, object_id, id) WHERE object IS NOT NULL;
CREATE INDEX events_type ON ONLY events USING btree (customer_id, type, id) WHERE type <> ALL (ARRAY['transfer.crypto_withdrawal.pending'::text, 'transfer.crypto_withdrawal.completed'::text, 'transfer.internal_transfer_debit.completed'::text, 'transfer.internal_transfer_credit.completed'::text]);

create table evm_holdings (
  customer_id uuid not null,
  network text not null,
  address text not null,
  asset text not null,
  balance numeric not null,
  stale_at timestamp with time zone,
  constraint evm_holdings_pkey PRIMARY KEY (customer_id, network, address, asset)
);
CREATE INDEX evm_holdings_held ON evm_holdings USING btree (network, asset, balance) WHERE balance > 0::numeric;
CREATE INDEX evm_holdings_stale ON evm_holdings USING btree (network, stale_at) WHERE stale_at IS NOT NULL;

create table evm_nonces (
  network text not null,
  address text not null,
  next_nonce bigint not null,
  acknowledged_nonces bigint[] not null default '{}'::bigint[],
  constraint evm_nonces_pkey PRIMARY KEY (network, address)
);

create table evm_sweeps (
  customer_id uuid not null,
  id uuid not null,
  network text not null,
  address text not null,
  kind text not null,
  asset text not null,
  amount numeric not null,
  state text not null,
  raw_transaction bytea not null,
  crypto_tx_hash text not null,
  replaced text[] not null,
  network_fee numeric,
  created_at timestamp with time zone not null,
  signed_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  audit_block bigint,
  lost_since timestamp with time zone,
  constraint evm_sweeps_pkey PRIMARY KEY (customer_id, id),
  constraint evm_sweeps_amount CHECK (amount > 0::numeric),
  constraint evm_sweeps_cost CHECK ((ended_at IS NULL) = (network_fee IS NULL)),
  constraint evm_sweeps_ended CHECK ((state = ANY (ARRAY['DONE'::text, 'FAILED'::text, 'VOID'::text])) = (ended_at IS NOT NULL)),
  constraint evm_sweeps_kind CHECK (kind = ANY (ARRAY['TOP_UP'::text, 'SWEEP'::text])),
  constraint evm_sweeps_state CHECK (state = ANY (ARRAY['SIGNED'::text, 'BROADCAST'::text, 'DONE'::text, 'FAILED'::text, 'VOID'::text]))
);
CREATE INDEX evm_sweeps_audit ON evm_sweeps USING btree (network, audit_block) WHERE audit_block IS NOT NULL;
CREATE INDEX evm_sweeps_ended ON evm_sweeps USING btree (network, created_at) WHERE kind = 'TOP_UP'::text AND (state = ANY (ARRAY['DONE'::text, 'FAILED'::text]));
CREATE INDEX evm_sweeps_hash ON evm_sweeps USING btree (network, crypto_tx_hash);
CREATE INDEX evm_sweeps_of_address ON evm_sweeps USING btree (customer_id, network, address);
CREATE INDEX evm_sweeps_of_network ON evm_sweeps USING btree (network) WHERE state = ANY (ARRAY['SIGNED'::text, 'BROADCAST'::text]);
CREATE INDEX evm_sweeps_replaced ON evm_sweeps USING gin (replaced) WHERE replaced <> '{}'::text[];
CREATE UNIQUE INDEX evm_sweeps_under_way ON evm_sweeps USING btree (customer_id, network, address) WHERE state = ANY (ARRAY['SIGNED'::text, 'BROADCAST'::text]);

create table failed_transactions (
  network text not null,
  crypto_tx_hash text not null,
  failed_at timestamp with time zone not null,
  counts boolean not null,
  constraint failed_transactions_pkey PRIMARY KEY (network, crypto_tx_hash)
);

create table fee_quotes (
  customer_id uuid not null,
  id uuid not null,
  asset text not null,
  crypto_network text not null,
  destination_address text not null,
  fee numeric not null,
  amount numeric,
  total numeric,
  expires_at timestamp with time zone not null,
  transfer_id uuid,
  created_at timestamp with time zone not null,
  sealed_at timestamp with time zone,
  mac text,
  constraint fee_quotes_pkey PRIMARY KEY (customer_id, id),
  constraint fee_quotes_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint fee_quotes_amount_or_total CHECK ((amount IS NULL) <> (total IS NULL))
);
CREATE INDEX fee_quotes_expired ON fee_quotes USING btree (expires_at) WHERE transfer_id IS NULL;
CREATE INDEX fee_quotes_of_transfer ON fee_quotes USING btree (customer_id, transfer_id) WHERE transfer_id IS NOT NULL;
CREATE INDEX fee_quotes_open ON fee_quotes USING btree (customer_id, expires_at) WHERE transfer_id IS NULL;
CREATE INDEX fee_quotes_used ON fee_quotes USING btree (expires_at) WHERE transfer_id IS NOT NULL;

create table fiat_accounts (
  customer_id uuid not null,
  id uuid not null,
  status text not null,
  fiat_account_owner jsonb not null,
  fiat_network_instructions jsonb not null,
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone,
  deleted_at timestamp with time zone,
  constraint fiat_accounts_pkey PRIMARY KEY (customer_id, id),
  constraint fiat_accounts_ref_id UNIQUE (customer_id, ref_id),
  constraint fiat_accounts_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint fiat_accounts_status CHECK (status = ANY (ARRAY['PENDING'::text, 'APPROVED'::text, 'REJECTED'::text]))
);

create table fiat_deposit_instructions (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  memo_id text not null,
  status text not null,
  fiat_network text not null,
  routing_number_type text not null,
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamp with time zone not null,
  sealed_at timestamp with time zone,
  mac text,
  constraint fiat_deposit_instructions_pkey PRIMARY KEY (customer_id, id),
  constraint fiat_deposit_instructions_memo_id UNIQUE (customer_id, memo_id),
  constraint fiat_deposit_instructions_ref_id UNIQUE (customer_id, ref_id),
  constraint fiat_deposit_instructions_customer_id_profile_id_fkey FOREIGN KEY (customer_id, profile_id) REFERENCES profiles(customer_id, id),
  constraint fiat_deposit_instructions_status CHECK (status = ANY (ARRAY['VALID'::text, 'DEPRECATED'::text]))
);
CREATE INDEX fiat_deposit_instructions_profile ON fiat_deposit_instructions USING btree (customer_id, profile_id, id);

create table freezes (
  kind text not null,
  subject text not null,
  reason text not null,
  detail text not null,
  created_at timestamp with time zone not null,
  unrecorded jsonb,
  lifted_at timestamp with time zone,
  sealed_at timestamp with time zone,
  mac text,
  constraint freezes_pkey PRIMARY KEY (kind, subject, reason, created_at),
  constraint freezes_kind CHECK (kind = ANY (ARRAY['ALL'::text, 'NETWORK'::text]))
);
CREATE UNIQUE INDEX freezes_in_force ON freezes USING btree (kind, subject, reason) WHERE lifted_at IS NULL;

create table identities (
  customer_id uuid not null,
  id uuid not null,
  ref_id text not null,
  type text not null,
  status text not null,
  user_disabled boolean not null default false,
  admin_disabled boolean not null default false,
  details jsonb not null,
  metadata jsonb,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  tax_details jsonb,
  tax_details_not_required boolean,
  customer_due_diligence jsonb,
  is_merchant boolean,
  last_kyc_refresh_date timestamp with time zone,
  sandbox_checks jsonb,
  constraint identities_pkey PRIMARY KEY (customer_id, id),
  constraint identities_ref_id UNIQUE (customer_id, ref_id),
  constraint identities_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint identities_status CHECK (status = ANY (ARRAY['PENDING'::text, 'ERROR'::text, 'APPROVED'::text, 'DENIED'::text, 'DISABLED'::text])),
  constraint identities_type CHECK (type = ANY (ARRAY['PERSON'::text, 'INSTITUTION'::text]))
);
CREATE INDEX identities_id ON identities USING btree (id);

create table incoming_transfers (
  customer_id uuid not null,
  network text not null,
  crypto_tx_hash text not null,
  crypto_tx_index text not null,
  address text not null,
  asset text not null,
  amount numeric not null,
  block_number bigint,
  block_hash text,
  state text not null,
  reason text,
  detail text,
  cleared boolean not null,
  transfer_id uuid,
  attempts integer not null,
  found_at timestamp with time zone not null,
  due_at timestamp with time zone not null,
  sealed_at timestamp with time zone,
  mac text,
  constraint incoming_transfers_pkey PRIMARY KEY (customer_id, network, crypto_tx_hash, crypto_tx_index),
  constraint incoming_transfers_amount CHECK (amount > 0::numeric),
  constraint incoming_transfers_credited CHECK ((state = ANY (ARRAY['WAITING'::text, 'UNATTRIBUTED'::text])) = (transfer_id IS NULL)),
  constraint incoming_transfers_reason CHECK ((reason = ANY (ARRAY['FAILED'::text, 'BELOW_MINIMUM'::text, 'SECOND_NODE'::text, 'NODES_DISAGREE'::text, 'SCREENING'::text, 'FORGED'::text])) AND state = 'WAITING'::text OR reason IS NULL),
  constraint incoming_transfers_state CHECK (state = ANY (ARRAY['WAITING'::text, 'CREDITED'::text, 'REORGANISED'::text, 'UNATTRIBUTED'::text]))
);
CREATE INDEX incoming_transfers_at ON incoming_transfers USING btree (customer_id, network, address, asset);
CREATE INDEX incoming_transfers_blocks ON incoming_transfers USING btree (network, block_number) WHERE state = 'CREDITED'::text;
CREATE INDEX incoming_transfers_due ON incoming_transfers USING btree (network, due_at) WHERE state = 'WAITING'::text AND reason IS DISTINCT FROM 'BELOW_MINIMUM'::text;
CREATE INDEX incoming_transfers_reorganised ON incoming_transfers USING btree (network) WHERE state = 'REORGANISED'::text;
CREATE INDEX incoming_transfers_small ON incoming_transfers USING btree (customer_id, network, address, asset) INCLUDE (amount) WHERE state = 'WAITING'::text AND reason = 'BELOW_MINIMUM'::text;
CREATE INDEX incoming_transfers_unattributed ON incoming_transfers USING btree (network) WHERE state = 'UNATTRIBUTED'::text;

create table institution_members (
  customer_id uuid not null,
  id uuid not null,
  institution_id uuid not null,
  identity_id uuid not null,
  roles text[] not null,
  ownership text,
  "position" text,
  name text,
  removed_at timestamp with time zone,
  constraint institution_members_pkey PRIMARY KEY (customer_id, id),
  constraint institution_members_customer_id_identity_id_fkey FOREIGN KEY (customer_id, identity_id) REFERENCES identities(customer_id, id),
  constraint institution_members_customer_id_institution_id_fkey FOREIGN KEY (customer_id, institution_id) REFERENCES identities(customer_id, id)
);
CREATE UNIQUE INDEX institution_members_identity ON institution_members USING btree (customer_id, institution_id, identity_id) WHERE removed_at IS NULL;

create table markets (
  id smallint not null,
  market text not null,
  source text,
  newest_minute integer,
  newest_price numeric,
  sealed_at timestamp with time zone,
  mac text,
  constraint markets_pkey PRIMARY KEY (id),
  constraint markets_market UNIQUE (market),
  constraint markets_source CHECK (source = ANY (ARRAY['SIMULATED'::text, 'REAL'::text]))
);

create table network_cursors (
  network text not null,
  cursor text not null,
  updated_at timestamp with time zone not null,
  earlier text[] not null default '{}'::text[],
  leased_until timestamp with time zone,
  constraint network_cursors_pkey PRIMARY KEY (network)
);

create table network_fee_checks (
  network text not null,
  counted_from timestamp with time zone not null,
  constraint network_fee_checks_pkey PRIMARY KEY (network)
);

create table network_genesis (
  network text not null,
  block_hash text not null,
  recorded_at timestamp with time zone not null,
  constraint network_genesis_pkey PRIMARY KEY (network)
);

create table network_transactions (
  network text not null,
  crypto_tx_hash text not null,
  raw_transaction bytea not null,
  kind text not null,
  payments integer not null,
  signed_at timestamp with time zone not null,
  customer_ids uuid[] not null default '{}'::uuid[],
  transfer_ids uuid[] not null default '{}'::uuid[],
  ended_at timestamp with time zone,
  used_by text,
  constraint network_transactions_pkey PRIMARY KEY (network, crypto_tx_hash),
  constraint network_transactions_kind CHECK (kind = ANY (ARRAY['WITHDRAWALS'::text, 'MARKED'::text, 'TOP_UP'::text])),
  constraint network_transactions_payees CHECK (cardinality(customer_ids) = cardinality(transfer_ids))
);
CREATE INDEX network_transactions_open ON network_transactions USING btree (network) WHERE ended_at IS NULL;
CREATE INDEX network_transactions_transfers ON network_transactions USING gin (transfer_ids);

create table operator_challenges (
  hash bytea not null,
  expires_at timestamp with time zone not null,
  constraint operator_challenges_pkey PRIMARY KEY (hash)
);
CREATE INDEX operator_challenges_expires_at ON operator_challenges USING btree (expires_at);

create table operator_links (
  hash bytea not null,
  operator_id uuid not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  sealed_at timestamp with time zone,
  mac text,
  constraint operator_links_pkey PRIMARY KEY (hash)
);
CREATE INDEX operator_links_operator ON operator_links USING btree (operator_id);

create table operator_passkeys (
  id uuid not null,
  operator_id uuid not null,
  created_at timestamp with time zone not null,
  used_at timestamp with time zone,
  name text not null,
  credential_id text not null,
  public_key bytea not null,
  signatures bigint not null,
  transports text[] not null,
  removed_at timestamp with time zone,
  sealed_at timestamp with time zone,
  mac text,
  constraint operator_passkeys_pkey PRIMARY KEY (id),
  constraint operator_passkeys_credential_id UNIQUE (credential_id)
);
CREATE INDEX operator_passkeys_operator ON operator_passkeys USING btree (operator_id, id);

create table operator_sessions (
  id uuid not null,
  operator_id uuid not null,
  created_at timestamp with time zone not null,
  used_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  secret_hash bytea not null,
  method text not null,
  passkey_id uuid,
  ended_at timestamp with time zone,
  sealed_at timestamp with time zone,
  mac text,
  constraint operator_sessions_pkey PRIMARY KEY (id),
  constraint operator_sessions_secret_hash UNIQUE (secret_hash),
  constraint operator_sessions_method CHECK (method = ANY (ARRAY['LINK'::text, 'PASSKEY'::text, 'OPENID'::text]))
);
CREATE INDEX operator_sessions_ended ON operator_sessions USING btree (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX operator_sessions_operator ON operator_sessions USING btree (operator_id, id);

create table operators (
  id uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  name text not null,
  role text not null,
  customer_id uuid,
  openid_issuer text,
  openid_subject text,
  disabled_at timestamp with time zone,
  generation integer not null,
  sealed_at timestamp with time zone,
  mac text,
  constraint operators_pkey PRIMARY KEY (id),
  constraint operators_openid UNIQUE (openid_issuer, openid_subject),
  constraint operators_openid_whole CHECK ((openid_issuer IS NULL) = (openid_subject IS NULL)),
  constraint operators_role CHECK (role = ANY (ARRAY['VIEWER'::text, 'OPERATOR'::text, 'APPROVER'::text, 'ADMIN'::text]))
);

create table orchestration_rules (
  customer_id uuid not null,
  id uuid not null,
  ref_id text not null,
  profile_id uuid not null,
  status text not null,
  nickname text,
  source_asset text not null,
  destination_asset text not null,
  source jsonb not null,
  destination jsonb not null,
  source_id uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  identity_id uuid,
  account_id uuid,
  created_by jsonb,
  sealed_at timestamp with time zone,
  mac text,
  constraint orchestration_rules_pkey PRIMARY KEY (customer_id, id),
  constraint orchestration_rules_ref_id UNIQUE (customer_id, ref_id),
  constraint orchestration_rules_customer_id_profile_id_fkey FOREIGN KEY (customer_id, profile_id) REFERENCES profiles(customer_id, id),
  constraint orchestration_rules_status CHECK (status = ANY (ARRAY['ACTIVE'::text, 'DELETED'::text]))
);
CREATE UNIQUE INDEX orchestration_rules_source ON orchestration_rules USING btree (customer_id, source_id, source_asset) WHERE status = 'ACTIVE'::text;

create table orchestrations (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  identity_id uuid,
  account_id uuid,
  ref_id text,
  source_asset text not null,
  destination_asset text not null,
  source_amount numeric not null,
  source_transfer_id uuid,
  destination_transfer_id uuid,
  fail_reason text,
  source jsonb not null,
  destination jsonb not null,
  orchestration_rule_id uuid,
  status text not null,
  metadata jsonb,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  hops smallint not null default 0,
  mac text,
  constraint orchestrations_pkey PRIMARY KEY (customer_id, id),
  constraint orchestrations_ref_id UNIQUE (customer_id, ref_id),
  constraint orchestrations_completed CHECK (status <> 'COMPLETED'::text OR destination_transfer_id IS NOT NULL),
  constraint orchestrations_failed CHECK ((status = 'FAILED'::text) = (fail_reason IS NOT NULL)),
  constraint orchestrations_source_amount CHECK (source_amount > 0::numeric),
  constraint orchestrations_status CHECK (status = ANY (ARRAY['PROCESSING'::text, 'COMPLETED'::text, 'FAILED'::text]))
);
CREATE INDEX orchestrations_destination ON orchestrations USING btree (customer_id, destination_transfer_id) WHERE destination_transfer_id IS NOT NULL;
CREATE INDEX orchestrations_kind ON orchestrations USING btree (customer_id, source_asset, destination_asset, status, id);
CREATE INDEX orchestrations_paying ON orchestrations USING btree (customer_id, destination_transfer_id) WHERE status = 'PROCESSING'::text AND destination_transfer_id IS NOT NULL;
CREATE INDEX orchestrations_profile ON orchestrations USING btree (customer_id, profile_id, source_asset, destination_asset, status, id);
CREATE INDEX orchestrations_rule ON orchestrations USING btree (customer_id, orchestration_rule_id, status, id) WHERE orchestration_rule_id IS NOT NULL;
CREATE INDEX orchestrations_to_pay ON orchestrations USING btree (customer_id, id) WHERE status = 'PROCESSING'::text AND destination_transfer_id IS NULL;

create table outgoing_transfers (
  customer_id uuid not null,
  transfer_id uuid not null,
  network text not null,
  state text not null,
  raw_transaction bytea,
  crypto_tx_hash text,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  waiting_detail text,
  waiting_since timestamp with time zone,
  leased_until timestamp with time zone,
  crypto_tx_index text,
  waiting_code text,
  signed_at timestamp with time zone,
  broadcast_at timestamp with time zone,
  confirmations integer,
  confirmations_needed integer,
  constraint outgoing_transfers_pkey PRIMARY KEY (customer_id, transfer_id),
  constraint outgoing_transfers_signed CHECK ((state = ANY (ARRAY['HELD'::text, 'DONE'::text])) OR crypto_tx_hash IS NOT NULL),
  constraint outgoing_transfers_state CHECK (state = ANY (ARRAY['HELD'::text, 'SIGNED'::text, 'BROADCAST'::text, 'DONE'::text])),
  constraint outgoing_transfers_waiting CHECK ((waiting_code IS NULL) = (waiting_detail IS NULL))
);
CREATE INDEX outgoing_transfers_crypto_tx_hash ON outgoing_transfers USING btree (network, crypto_tx_hash) WHERE crypto_tx_hash IS NOT NULL;
CREATE INDEX outgoing_transfers_due ON outgoing_transfers USING btree (customer_id, network, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outgoing_transfers_ended ON outgoing_transfers USING btree (network, created_at) WHERE state = 'DONE'::text AND raw_transaction IS NOT NULL AND (network = ANY (ARRAY['ETHEREUM'::text, 'POLYGON_POS'::text, 'BASE'::text, 'ARBITRUM_ONE'::text, 'INK'::text, 'XLAYER'::text]));

create table policies (
  customer_id uuid not null,
  version integer not null,
  document jsonb not null,
  mac text not null,
  created_at timestamp with time zone not null,
  constraint policies_pkey PRIMARY KEY (customer_id, version),
  constraint policies_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint policies_version CHECK (version > 0)
);

create table policy_windows (
  customer_id uuid not null,
  rule_id text not null,
  asset text not null,
  subject text not null,
  buckets jsonb not null,
  ends_at timestamp with time zone not null,
  constraint policy_windows_pkey PRIMARY KEY (customer_id, rule_id, asset, subject)
) with (fillfactor=50);
CREATE INDEX policy_windows_ends_at ON policy_windows USING btree (ends_at);

create table price_imports (
  market_id smallint not null,
  digest bytea not null,
  name text not null,
  records bigint not null,
  finished boolean not null,
  updated_at timestamp with time zone not null,
  constraint price_imports_pkey PRIMARY KEY (market_id, digest),
  constraint price_imports_market_id_fkey FOREIGN KEY (market_id) REFERENCES markets(id)
);

create table price_minutes (
  market_id smallint not null,
  covers_minutes smallint not null,
  minute integer not null,
  second smallint not null,
  price numeric not null,
  exact_increment integer not null,
  open numeric,
  high numeric,
  low numeric,
  close numeric,
  constraint price_minutes_pkey PRIMARY KEY (market_id, minute),
  constraint price_minutes_candle CHECK (num_nulls(open, high, low, close) = ANY (ARRAY[0, 4])),
  constraint price_minutes_price CHECK (price > 0::numeric)
);

create table price_points (
  market_id smallint not null,
  increment_minutes integer not null,
  starts_at integer not null,
  minutes integer not null,
  sum numeric not null,
  counts integer[],
  open numeric not null,
  high numeric not null,
  low numeric not null,
  close numeric not null,
  exact_increment integer not null,
  constraint price_points_pkey PRIMARY KEY (market_id, increment_minutes, starts_at)
);

create table profiles (
  customer_id uuid not null,
  id uuid not null,
  type text not null,
  nickname text not null,
  description text,
  account_id uuid,
  created_at timestamp with time zone not null,
  deactivated_at timestamp with time zone,
  constraint profiles_pkey PRIMARY KEY (customer_id, id),
  constraint profiles_nickname UNIQUE (customer_id, nickname),
  constraint profiles_customer_id_account_id_fkey FOREIGN KEY (customer_id, account_id) REFERENCES accounts(customer_id, id),
  constraint profiles_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint profiles_type CHECK (type = ANY (ARRAY['NORMAL'::text, 'DEFAULT'::text]))
);
CREATE UNIQUE INDEX profiles_account ON profiles USING btree (customer_id, account_id) WHERE account_id IS NOT NULL;
CREATE INDEX profiles_deactivated ON profiles USING btree (customer_id) WHERE deactivated_at IS NOT NULL;
CREATE UNIQUE INDEX profiles_default ON profiles USING btree (customer_id) WHERE type = 'DEFAULT'::text;
CREATE INDEX profiles_id ON profiles USING btree (id);

create table replaced_transactions (
  customer_id uuid not null,
  transfer_id uuid not null,
  crypto_tx_hash text not null,
  raw_transaction bytea,
  replaced_at timestamp with time zone not null,
  signed_at timestamp with time zone,
  broadcast_at timestamp with time zone,
  constraint replaced_transactions_pkey PRIMARY KEY (customer_id, transfer_id, crypto_tx_hash)
);
CREATE INDEX replaced_transactions_crypto_tx_hash ON replaced_transactions USING btree (crypto_tx_hash);

create table resolved_withdrawals (
  customer_id uuid not null,
  transfer_id uuid not null,
  outcome text not null,
  evidence text not null,
  reason text not null,
  resolved_at timestamp with time zone not null,
  constraint resolved_withdrawals_pkey PRIMARY KEY (customer_id, transfer_id),
  constraint resolved_withdrawals_outcome CHECK (outcome = ANY (ARRAY['PAID'::text, 'NOT_PAID'::text]))
);

create table reward_rates (
  effective_from date not null,
  set_at timestamp with time zone not null,
  rate numeric not null,
  sealed_at timestamp with time zone,
  mac text,
  constraint reward_rates_pkey PRIMARY KEY (effective_from, set_at),
  constraint reward_rates_rate CHECK (rate >= 0::numeric AND rate <= 1::numeric)
);

create table schema_version (
  version bigint not null,
  name text,
  md5 text,
  run_at timestamp with time zone,
  constraint schema_version_pkey PRIMARY KEY (version)
);

create table screening_requirement (
  id smallint not null,
  since timestamp with time zone not null,
  constraint screening_requirement_pkey PRIMARY KEY (id),
  constraint screening_requirement_one_row CHECK (id = 1)
);

create table screenings (
  customer_id uuid not null,
  kind text not null,
  subject text not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  state text not null,
  attempts integer not null,
  due_at timestamp with time zone,
  detail text,
  decided_at timestamp with time zone,
  mac text,
  constraint screenings_pkey PRIMARY KEY (customer_id, kind, subject),
  constraint screenings_allowed CHECK (state <> 'ALLOWED'::text OR mac IS NOT NULL AND decided_at IS NOT NULL),
  constraint screenings_due CHECK ((state = 'WAITING'::text) = (due_at IS NOT NULL)),
  constraint screenings_kind CHECK (kind = ANY (ARRAY['WITHDRAWAL'::text, 'DEPOSIT'::text])),
  constraint screenings_state CHECK (state = ANY (ARRAY['WAITING'::text, 'ALLOWED'::text, 'REJECTED'::text, 'ENDED'::text]))
);
CREATE INDEX screenings_due ON screenings USING btree (due_at) WHERE state = 'WAITING'::text;
CREATE INDEX screenings_rejected ON screenings USING btree (created_at) WHERE state = 'REJECTED'::text;

create table seen_deposits (
  customer_id uuid not null,
  transfer_id uuid not null,
  network text not null,
  crypto_tx_hash text not null,
  crypto_tx_index text not null,
  address text not null,
  block_number bigint not null,
  state text not null,
  seen_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint seen_deposits_pkey PRIMARY KEY (customer_id, transfer_id),
  constraint seen_deposits_ended CHECK ((state = 'PENDING'::text) = (ended_at IS NULL)),
  constraint seen_deposits_state CHECK (state = ANY (ARRAY['PENDING'::text, 'COMPLETED'::text, 'FAILED'::text]))
);
CREATE INDEX seen_deposits_ended ON seen_deposits USING btree (ended_at) WHERE state <> 'PENDING'::text;
CREATE INDEX seen_deposits_failed ON seen_deposits USING btree (network, ended_at) WHERE state = 'FAILED'::text;
CREATE INDEX seen_deposits_output ON seen_deposits USING btree (customer_id, network, crypto_tx_hash, crypto_tx_index);
CREATE INDEX seen_deposits_pending ON seen_deposits USING btree (network, block_number) WHERE state = 'PENDING'::text;
CREATE UNIQUE INDEX seen_deposits_wire ON seen_deposits USING btree (customer_id, crypto_tx_hash) WHERE network = 'WIRE'::text AND state = 'PENDING'::text;

create table signing_keys (
  id text not null,
  created_at timestamp with time zone not null,
  encrypted_jwk text,
  signs_from timestamp with time zone not null,
  retired_at timestamp with time zone,
  constraint signing_keys_pkey PRIMARY KEY (id),
  constraint signing_keys_retired CHECK ((encrypted_jwk IS NULL) = (retired_at IS NOT NULL))
);

create table simulated_chain (
  crypto_network text not null,
  hash text not null,
  raw_transaction bytea not null,
  broadcast_at timestamp with time zone not null,
  dropped_at timestamp with time zone,
  arrives boolean,
  constraint simulated_chain_pkey PRIMARY KEY (crypto_network, hash)
);
CREATE INDEX simulated_chain_arrives ON simulated_chain USING btree (crypto_network) WHERE arrives IS NOT FALSE;
CREATE INDEX simulated_chain_time ON simulated_chain USING btree (crypto_network, broadcast_at, hash);

create table statements (
  customer_id uuid not null,
  id uuid not null,
  ref_id text not null,
  type text not null,
  product text not null,
  status text not null,
  asset text not null,
  total_amount_owed numeric,
  amount_paid numeric,
  period_start timestamp with time zone not null,
  period_end timestamp with time zone not null,
  transfer_id uuid,
  generated_at timestamp with time zone,
  paid_at timestamp with time zone,
  created_at timestamp with time zone not null,
  reward_method text,
  constraint statements_pkey PRIMARY KEY (customer_id, id),
  constraint statements_ref_id UNIQUE (customer_id, ref_id),
  constraint statements_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint statements_generated CHECK ((status = 'STATEMENT_STATUS_INITIATED'::text) = (generated_at IS NULL) AND (generated_at IS NULL) = (total_amount_owed IS NULL) AND (generated_at IS NULL) = (amount_paid IS NULL)),
  constraint statements_paid CHECK ((status = 'STATEMENT_STATUS_PAID'::text) = (paid_at IS NOT NULL) AND (paid_at IS NULL OR amount_paid = total_amount_owed)),
  constraint statements_reward_method CHECK (reward_method IS NULL OR reward_method = 'TIME_WEIGHTED'::text),
  constraint statements_status CHECK (status = ANY (ARRAY['STATEMENT_STATUS_INITIATED'::text, 'STATEMENT_STATUS_GENERATED'::text, 'STATEMENT_STATUS_PAID'::text]))
);
CREATE INDEX statements_id ON statements USING btree (id);
CREATE INDEX statements_initiated ON statements USING btree (customer_id, created_at) WHERE status = 'STATEMENT_STATUS_INITIATED'::text;
CREATE INDEX statements_period ON statements USING btree (customer_id, period_start, id);
CREATE INDEX statements_unpaid ON statements USING btree (customer_id, id) WHERE status = 'STATEMENT_STATUS_GENERATED'::text;

create table transfers (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  type text not null,
  direction text not null,
  status text not null,
  asset text not null,
  balance_asset text,
  amount numeric not null,
  fee numeric not null,
  total numeric not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  identity_id uuid,
  account_id uuid,
  ref_id text,
  secondary_status jsonb,
  status_details jsonb,
  metadata jsonb,
  destination_address text,
  crypto_network text,
  crypto_tx_hash text,
  crypto_tx_index text,
  auto_conversion jsonb,
  group_id uuid,
  fiat_account_id uuid,
  notional_value numeric,
  memo text,
  beneficiary jsonb,
  mac text,
  constraint transfers_pkey PRIMARY KEY (customer_id, id),
  constraint transfers_ref_id UNIQUE (customer_id, ref_id),
  constraint transfers_amount CHECK (amount > 0::numeric),
  constraint transfers_direction CHECK (direction = ANY (ARRAY['CREDIT'::text, 'DEBIT'::text])),
  constraint transfers_fee CHECK (fee >= 0::numeric),
  constraint transfers_status CHECK (status = ANY (ARRAY['PENDING'::text, 'COMPLETED'::text, 'FAILED'::text])),
  constraint transfers_total CHECK (total >= 0::numeric)
);
CREATE INDEX transfers_account ON transfers USING btree (customer_id, account_id, id) WHERE account_id IS NOT NULL;
CREATE UNIQUE INDEX transfers_arrival ON transfers USING btree (customer_id, crypto_network, crypto_tx_hash, crypto_tx_index) WHERE type = 'CRYPTO_DEPOSIT'::text AND status <> 'FAILED'::text;
CREATE INDEX transfers_conversions ON transfers USING btree (customer_id, id) WHERE type = 'INTERNAL_TRANSFER_DEBIT'::text AND group_id = id;
CREATE INDEX transfers_crypto_tx_hash ON transfers USING btree (customer_id, crypto_tx_hash) WHERE crypto_tx_hash IS NOT NULL;
CREATE INDEX transfers_group ON transfers USING btree (customer_id, group_id) WHERE group_id IS NOT NULL;
CREATE INDEX transfers_identity ON transfers USING btree (customer_id, identity_id, id) WHERE identity_id IS NOT NULL;
CREATE INDEX transfers_pending ON transfers USING btree (customer_id, id) WHERE status = 'PENDING'::text;
CREATE INDEX transfers_profile ON transfers USING btree (customer_id, profile_id, id);
CREATE INDEX transfers_updated_at ON transfers USING btree (customer_id, updated_at, id);

create table wallet_checks (
  network text not null,
  checked_block text not null,
  updated_at timestamp with time zone not null,
  constraint wallet_checks_pkey PRIMARY KEY (network)
);

create table webhook_attempts (
  customer_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  attempt smallint not null,
  status_code smallint,
  error text,
  duration_ms integer not null,
  response text,
  constraint webhook_attempts_pkey PRIMARY KEY (customer_id, webhook_id, event_id, id)
) partition by RANGE (id);

create table webhook_deliveries (
  customer_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  object_id uuid not null,
  status text not null,
  created_at timestamp with time zone not null,
  attempts smallint not null,
  attempts_of_round smallint not null,
  due_at timestamp with time zone,
  leased_until timestamp with time zone,
  ended_at timestamp with time zone,
  constraint webhook_deliveries_pkey PRIMARY KEY (customer_id, webhook_id, event_id),
  constraint webhook_deliveries_due CHECK ((status = 'PENDING'::text) = (due_at IS NOT NULL)),
  constraint webhook_deliveries_status CHECK (status = ANY (ARRAY['PENDING'::text, 'DELIVERED'::text, 'FAILED'::text]))
) partition by RANGE (event_id);
CREATE INDEX webhook_deliveries_due_at ON ONLY webhook_deliveries USING btree (customer_id, webhook_id, due_at) WHERE status = 'PENDING'::text;
CREATE INDEX webhook_deliveries_first_attempt ON ONLY webhook_deliveries USING btree (customer_id, webhook_id, object_id, event_id) WHERE status = 'PENDING'::text AND attempts = 0;
CREATE INDEX webhook_deliveries_undelivered ON ONLY webhook_deliveries USING btree (customer_id, event_id) WHERE status <> 'DELIVERED'::text;

create table webhooks (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  name text not null,
  url text not null,
  event_types text[] not null,
  payload text not null,
  auth jsonb not null,
  profile_ids uuid[],
  rate_limit smallint not null,
  status text not null,
  encrypted_secrets text not null,
  previous_secret_until timestamp with time zone,
  cursor_id uuid not null,
  failing_since timestamp with time zone,
  disabled_reason text,
  next_at timestamp with time zone not null,
  slow_until timestamp with time zone,
  constraint webhooks_pkey PRIMARY KEY (customer_id, id),
  constraint webhooks_name UNIQUE (customer_id, name),
  constraint webhooks_payload CHECK (payload = ANY (ARRAY['THIN'::text, 'FULL'::text])),
  constraint webhooks_rate_limit CHECK (rate_limit >= 1 AND rate_limit <= 100),
  constraint webhooks_status CHECK (status = ANY (ARRAY['ACTIVE'::text, 'DISABLED'::text]))
);
CREATE INDEX webhooks_active ON webhooks USING btree (customer_id, id) WHERE status = 'ACTIVE'::text;

create table withdrawal_names (
  customer_id uuid not null,
  name text not null,
  transfer_id uuid not null,
  found_by text not null,
  constraint withdrawal_names_pkey PRIMARY KEY (customer_id, name, transfer_id, found_by),
  constraint withdrawal_names_found_by CHECK (found_by = ANY (ARRAY['ADDRESS'::text, 'MEMO'::text]))
);

CREATE OR REPLACE FUNCTION public.add_payees(network text, hash text, customer_ids uuid[], transfer_ids uuid[])
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
  update public.network_transactions n
  set customer_ids = n.customer_ids || add_payees.customer_ids, transfer_ids = n.transfer_ids || add_payees.transfer_ids,
      ended_at = null
  where n.network = add_payees.network and n.crypto_tx_hash = add_payees.hash
$function$;

CREATE OR REPLACE FUNCTION public.keep_partitions(parent text, kept_days integer)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $function$
declare
  weeks_ahead constant integer := 4;
  moved_max constant integer := 10000;
  -- Attaching a partition reads the whole default partition, and all writers wait.
  default_bytes_max constant bigint := 32 * 1024 * 1024;
  -- The smallest id of a moment is its milliseconds in 12 hex digits, and then this (src/db/ids.ts, firstIdAt).
  rest_of_id constant text := '70000000000000000000';
  partition_key text := case parent when 'webhook_deliveries' then 'event_id' else 'id' end;
  this_week timestamp := date_trunc('week', clock_timestamp() at time zone 'UTC');
  oldest_kept timestamp;
  starts timestamp;
  name text;
  first_id uuid;
  end_id uuid;
  waiting integer;
  default_bytes bigint;
begin
  if parent is null or parent not in ('events', 'webhook_deliveries', 'webhook_attempts') then
    raise exception 'keep_partitions: % has no weekly partitions', coalesce(parent, 'null')
      using errcode = 'invalid_parameter_value';
  end if;
  if kept_days is null or kept_days < 7 then
    raise exception 'keep_partitions: kept_days must be 7 or more' using errcode = 'invalid_parameter_value';
  end if;
  -- One process at a time; the others have nothing to do.
  if not pg_try_advisory_xact_lock(7311002) then
    return null;
  end if;

  default_bytes := pg_relation_size(format('public.%I', parent || '_default'));
  if to_regclass('pg_catalog.pg_dist_partition') is not null then
    -- One connection to each node, because partitions are made on all shards of a node in one transaction.
    perform set_config('citus.multi_shard_modify_mode', 'sequential', true);
    -- With Citus, but not distributed, the table is measured as above.
    execute 'select coalesce((select citus_relation_size(logicalrelid) from pg_dist_partition where logicalrelid = $1), $2)'
      into default_bytes using format('public.%I', parent || '_default')::regclass, default_bytes;
  end if;

  for week in 0 .. weeks_ahead loop
    exit when default_bytes > default_bytes_max;
    starts := this_week + week * interval '7 days';
    name := parent || '_' || to_char(starts, 'YYYYMMDD');
    continue when to_regclass(format('public.%I', name)) is not null;
    first_id := (lpad(to_hex((extract(epoch from starts) * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
    end_id := (lpad(to_hex((extract(epoch from starts + interval '7 days') * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
    execute format('select count(*) from (select 1 from public.%I where %I >= $1 and %2$I < $2 limit $3) r',
                   parent || '_default', partition_key)
      into waiting using first_id, end_id, moved_max + 1;
    -- Moving more would stop writers for too long. The default partition keeps these rows until they are too old.
    continue when waiting > moved_max;
    -- A writer that waits for the default partition's lock while another partition takes its rows is refused then. Rows of
    -- these weeks may be written now, so writers wait before they choose a partition.
    if week <= 1 then
      execute format('lock table public.%I in share row exclusive mode', parent);
    end if;
    execute format('create table public.%I (like public.%I including all)', name, parent);
    -- Attaching takes this lock, too. Taken first, no writer adds a row between the copy and the deletion.
    execute format('lock table public.%I in access exclusive mode', parent || '_default');
    execute format('insert into public.%I select * from public.%I where %I >= $1 and %3$I < $2',
                   name, parent || '_default', partition_key) using first_id, end_id;
    execute format('delete from public.%I where %I >= $1 and %2$I < $2', parent || '_default', partition_key)
      using first_id, end_id;
    execute format('alter table public.%I attach partition public.%I for values from (%L) to (%L)',
                   parent, name, first_id, end_id);
    return 'made ' || name;
  end loop;

  -- The history ends an hour before its partition is dropped, because bursar verify reads its end before the events.
  oldest_kept := date_trunc('week', clock_timestamp() at time zone 'UTC' - kept_days * interval '1 day');
  if parent = 'events' then
    update event_history set complete_from = oldest_kept at time zone 'UTC'
    where complete_from < oldest_kept at time zone 'UTC';
  end if;
  oldest_kept := date_trunc('week', clock_timestamp() at time zone 'UTC' - kept_days * interval '1 day' - interval '1 hour');
  select c.relname into name
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent = format('public.%I', parent)::regclass and c.relname ~ ('^' || parent || '_\d{8}$')
    and to_timestamp(right(c.relname, 8), 'YYYYMMDD')::timestamp < oldest_kept
  order by c.relname
  limit 1;
  if found then
    execute format('drop table public.%I', name);
    return 'dropped ' || name;
  end if;

  -- Old rows of the default partition, an hour of them at a time.
  execute format('select %I from public.%I where %1$I < $1 order by 1 limit 1', partition_key, parent || '_default')
    into first_id
    using (lpad(to_hex((extract(epoch from oldest_kept) * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
  if first_id is null then
    return null;
  end if;
  starts := least(oldest_kept, to_timestamp(('x' || left(replace(first_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
                                 at time zone 'UTC' + interval '1 hour');
  end_id := (lpad(to_hex((extract(epoch from starts) * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
  execute format('delete from public.%I where %I < $1', parent || '_default', partition_key) using end_id;
  return 'deleted old rows of ' || parent || '_default';
end
$function$;
