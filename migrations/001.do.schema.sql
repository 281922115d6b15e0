-- The whole schema. Every tenant-owned table has customer_id as the first column of its keys (ARCHITECTURE.md, "Tenancy").
-- Timestamps are microseconds; ids are UUIDv7 made from the record's own created_at (src/db/ids.ts),
-- so that the order of ids is the order of creation and the primary key serves the lists.
--
-- `mac` is a MAC with a key that is not in the database, so that write access to the database is not enough to make or
-- change the row (src/audit/row-macs.ts). It covers `sealed_at`, the moment at which it was made.
--
-- What the service's role may do with each table: src/db/privileges.ts. Where each is on a distributed database: src/db/distribution.ts.

create table customers (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null
);

-- Limits of single customers that differ from the deployment's: an operator sets them, and every process reads all of them. 0: no limit.
create table customer_limits (
  customer_id uuid not null,
  name text not null,
  value bigint not null,
  updated_at timestamptz not null,
  primary key (customer_id, name),
  constraint customer_limits_value check (value >= 0)
);

create table api_clients (
  customer_id uuid not null references customers,
  id uuid not null,
  -- SHA-256 of a 256-bit random secret, which is shown once and not kept.
  secret_hash bytea not null,
  scopes text[] not null,
  created_at timestamptz not null,
  disabled_at timestamptz,
  -- A rotated client accepts its previous secret until a time.
  previous_secret_hash bytea,
  previous_secret_expires_at timestamptz,
  updated_at timestamptz not null,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, id),
  constraint api_clients_scopes check (array_to_string(scopes, ' ') !~ '(^| )operators:')
);
-- Each process asks every second which clients were disabled while a token of theirs may be good.
create index api_clients_disabled on api_clients (disabled_at) where disabled_at is not null;
-- The token endpoint knows a client id and nothing else.
create index api_clients_id on api_clients (id);

-- The keys that sign access tokens. Every process of this deployment verifies with them.
create table signing_keys (
  id text primary key,
  created_at timestamptz not null,
  -- A JWE (RFC 7516) whose content is the private key as a JWK. Gone once the key is retired.
  encrypted_jwk text,
  -- Of those whose time has come, the newest one signs.
  signs_from timestamptz not null,
  -- From then on its tokens are refused.
  retired_at timestamptz,
  constraint signing_keys_retired check ((encrypted_jwk is null) = (retired_at is not null))
);

-- Operators: people who sign in. An operator acts for any customer, one for each access token, or for one customer only.
create table operators (
  id uuid primary key,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  name text not null,
  role text not null,
  -- The only customer that it may act for.
  customer_id uuid,
  -- Its account at an OpenID provider. A subject is unique only within its issuer.
  openid_issuer text,
  openid_subject text,
  disabled_at timestamptz,
  -- Raised when the role changes and when it is disabled. Access tokens of an earlier generation are refused.
  generation integer not null,
  sealed_at timestamptz,
  mac text,
  constraint operators_openid unique (openid_issuer, openid_subject),
  constraint operators_openid_whole check ((openid_issuer is null) = (openid_subject is null)),
  constraint operators_role check (role in ('VIEWER', 'OPERATOR', 'APPROVER', 'ADMIN'))
);

-- One-time links. Only the hash of the secret is stored.
create table operator_links (
  hash bytea primary key,
  operator_id uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  sealed_at timestamptz,
  mac text
);
create index operator_links_operator on operator_links (operator_id);

-- What an operator signs in with on its devices (Web Authentication).
create table operator_passkeys (
  id uuid primary key,
  operator_id uuid not null,
  created_at timestamptz not null,
  used_at timestamptz,
  name text not null,
  -- In base64url, as browsers send it.
  credential_id text not null,
  public_key bytea not null,
  -- The authenticator's counter of signatures: one that falls shows a copied passkey. Many authenticators always send 0.
  signatures bigint not null,
  transports text[] not null,
  removed_at timestamptz,
  sealed_at timestamptz,
  mac text,
  constraint operator_passkeys_credential_id unique (credential_id)
);
create index operator_passkeys_operator on operator_passkeys (operator_id, id);

create table operator_sessions (
  id uuid primary key,
  operator_id uuid not null,
  created_at timestamptz not null,
  -- The latest access token. A session that takes none for an hour ends.
  used_at timestamptz not null,
  expires_at timestamptz not null,
  secret_hash bytea not null,
  method text not null,
  passkey_id uuid,
  ended_at timestamptz,
  sealed_at timestamptz,
  mac text,
  constraint operator_sessions_secret_hash unique (secret_hash),
  constraint operator_sessions_method check (method in ('LINK', 'PASSKEY', 'OPENID'))
);
-- Every process reads the sessions that ended lately, each second.
create index operator_sessions_ended on operator_sessions (ended_at) where ended_at is not null;
create index operator_sessions_operator on operator_sessions (operator_id, id);

-- Challenges of passkeys and of an OpenID provider that were answered: each is answered once. A row is deleted when its
-- challenge has expired.
create table operator_challenges (
  hash bytea primary key,
  expires_at timestamptz not null
);
create index operator_challenges_expires_at on operator_challenges (expires_at);

-- The deployment that this database belongs to: its mode for good, and in live mode the issuer of its tokens. At most one row.
create table deployment (
  id smallint primary key,
  mode text not null,
  issuer text,
  stamped_at timestamptz not null,
  sealed_at timestamptz,
  mac text,
  constraint deployment_issuer check (issuer is null or mode = 'live'),
  constraint deployment_mode check (mode in ('sandbox', 'live')),
  constraint deployment_one_row check (id = 1)
);

create table identities (
  customer_id uuid not null references customers,
  id uuid not null,
  ref_id text not null,
  type text not null,
  status text not null,
  user_disabled boolean not null default false,
  admin_disabled boolean not null default false,
  details jsonb not null,
  metadata jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  tax_details jsonb,
  tax_details_not_required boolean,
  customer_due_diligence jsonb,
  is_merchant boolean,
  last_kyc_refresh_date timestamptz,
  -- In a sandbox: the simulated result of each check, from which the status follows.
  sandbox_checks jsonb,
  primary key (customer_id, id),
  constraint identities_ref_id unique (customer_id, ref_id),
  constraint identities_status check (status in ('PENDING', 'ERROR', 'APPROVED', 'DENIED', 'DISABLED')),
  constraint identities_type check (type in ('PERSON', 'INSTITUTION'))
);
-- The command line knows an identity's id and nothing else.
create index identities_id on identities (id);

-- The persons who stand behind an institution. A removed member keeps its row: who had access, and until when.
create table institution_members (
  customer_id uuid not null,
  id uuid not null,
  institution_id uuid not null,
  identity_id uuid not null,
  roles text[] not null,
  ownership text,
  position text,
  name text,
  removed_at timestamptz,
  primary key (customer_id, id),
  foreign key (customer_id, identity_id) references identities,
  foreign key (customer_id, institution_id) references identities
);
create unique index institution_members_identity on institution_members (customer_id, institution_id, identity_id) where removed_at is null;

-- ref_id is unique among what one API client made (spec 2.5), not in the whole customer.
create table accounts (
  customer_id uuid not null references customers,
  id uuid not null,
  client_id text not null,
  identity_id uuid not null,
  ref_id text,
  type text not null,
  description text,
  user_disabled boolean not null default false,
  admin_disabled boolean not null default false,
  metadata jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (customer_id, id),
  constraint accounts_ref_id unique (customer_id, ref_id, client_id),
  constraint accounts_type check (type in ('BROKERAGE', 'TRADITIONAL_IRA', 'ROTH_IRA', 'SEP_IRA', 'FINANCIAL_ADVISOR')),
  foreign key (customer_id, identity_id) references identities
);
-- The command line knows an account id and nothing else.
create index accounts_id on accounts (id);
create index accounts_identity on accounts (customer_id, identity_id, id);

create table account_members (
  customer_id uuid not null,
  id uuid not null,
  account_id uuid not null,
  identity_id uuid not null,
  roles text[] not null,
  removed_at timestamptz,
  primary key (customer_id, id),
  foreign key (customer_id, account_id) references accounts,
  foreign key (customer_id, identity_id) references identities
);
create unique index account_members_identity on account_members (customer_id, account_id, identity_id) where removed_at is null;

create table profiles (
  customer_id uuid not null references customers,
  id uuid not null,
  type text not null,
  nickname text not null,
  description text,
  account_id uuid,
  created_at timestamptz not null,
  -- A deactivated profile takes no new money by its customer's own doing.
  deactivated_at timestamptz,
  primary key (customer_id, id),
  constraint profiles_nickname unique (customer_id, nickname),
  constraint profiles_type check (type in ('NORMAL', 'DEFAULT')),
  foreign key (customer_id, account_id) references accounts
);
-- The profile that was made with an account.
create unique index profiles_account on profiles (customer_id, account_id) where account_id is not null;
create index profiles_deactivated on profiles (customer_id) where deactivated_at is not null;
-- A customer has one profile that is its default one, and is paid its rewards there.
create unique index profiles_default on profiles (customer_id) where type = 'DEFAULT';
-- A transfer to another customer finds its receiver by the id of a profile alone.
create index profiles_id on profiles (id);

-- One row per profile and asset: what may be spent now. The ledger (src/money/ledger) is its only writer.
-- Filled to a half, so that an update finds room on the same page and touches no index.
create table balances (
  customer_id uuid not null,
  profile_id uuid not null,
  asset text not null,
  available numeric not null,
  -- How many entries this balance has.
  version bigint not null,
  updated_at timestamptz not null,
  mac text,
  primary key (customer_id, profile_id, asset),
  constraint balances_not_negative check (available >= 0),
  foreign key (customer_id, profile_id) references profiles
) with (fillfactor = 50);

-- The record of a money movement (spec 2.1). No foreign keys here and on entries: a posting needs the
-- balance row, which has one, and a check per row costs more than the row.
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
  created_at timestamptz not null,
  updated_at timestamptz not null,
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
  -- As the client gave it; not part of the wire record.
  beneficiary jsonb,
  -- Of a withdrawal: over what it pays, made when it was accepted (src/audit/withdrawal-macs.ts).
  mac text,
  primary key (customer_id, id),
  constraint transfers_ref_id unique (customer_id, ref_id),
  constraint transfers_amount check (amount > 0),
  constraint transfers_direction check (direction in ('CREDIT', 'DEBIT')),
  constraint transfers_fee check (fee >= 0),
  constraint transfers_status check (status in ('PENDING', 'COMPLETED', 'FAILED')),
  constraint transfers_total check (total >= 0)
);
create index transfers_account on transfers (customer_id, account_id, id) where account_id is not null;
-- A deposit that was seen and is gone is FAILED. When the same output is mined again, it is another transfer.
create unique index transfers_arrival on transfers (customer_id, crypto_network, crypto_tx_hash, crypto_tx_index)
where type = 'CRYPTO_DEPOSIT' and status <> 'FAILED';
-- A conversion is an internal transfer of a profile to itself, whose group has the id of its debit: no other transfer's has.
create index transfers_conversions on transfers (customer_id, id) where type = 'INTERNAL_TRANSFER_DEBIT' and group_id = id;
create index transfers_crypto_tx_hash on transfers (customer_id, crypto_tx_hash) where crypto_tx_hash is not null;
create index transfers_group on transfers (customer_id, group_id) where group_id is not null;
create index transfers_identity on transfers (customer_id, identity_id, id) where identity_id is not null;
-- What the settlement worker still has to begin.
create index transfers_pending on transfers (customer_id, id) where status = 'PENDING';
create index transfers_profile on transfers (customer_id, profile_id, id);
create index transfers_updated_at on transfers (customer_id, updated_at, id);

-- Double entry. The entries of one event of one transfer sum to zero per asset; the primary key makes
-- posting an event twice impossible. An entry on a profile carries the balance it left behind.
create table entries (
  customer_id uuid not null,
  transfer_id uuid not null,
  event text not null,
  position smallint not null,
  -- 'profile' or a platform account (src/money/ledger/entries.ts).
  account text not null,
  profile_id uuid,
  asset text not null,
  amount numeric not null,
  balance_after numeric,
  version bigint,
  created_at timestamptz not null,
  primary key (customer_id, transfer_id, event, position),
  constraint entries_amount check (amount <> 0),
  constraint entries_event check (event in ('CREATED', 'SETTLED', 'REFUNDED', 'SWEPT')),
  constraint entries_not_negative check (balance_after >= 0),
  constraint entries_profile check (
    (account = 'profile') = (profile_id is not null)
    and (profile_id is null) = (balance_after is null)
    and (profile_id is null) = (version is null)
  )
);
-- The balance as of any moment is the last entry at or before it: one look-up.
create index entries_balance_history on entries (customer_id, profile_id, asset, created_at, version) where profile_id is not null;
-- What a day's transactions have cost. Withdrawals post that when they end, and so the index costs their acceptance nothing.
create index entries_network_fees on entries (account, created_at) where account like 'network_fees:%';
-- What is in custody on a network, and what its fees have cost, summed over all customers without reading the
-- ledger. Withdrawals post neither when they are made, so the index costs their write path nothing but its condition.
create index entries_on_networks on entries (account, asset) include (amount)
where account like 'custody:%' or account like 'network_fees:%';

-- Append-only, held by privileges: not even the owner may change or remove an entry. (A superuser may do
-- anything; the service warns when it runs as one.)
revoke update, delete, truncate on entries from public, current_user;

-- The search finds a withdrawal by its destination address and by its memo. The worker that begins a withdrawal writes these
-- names, so that taking a withdrawal costs no further index.
create table withdrawal_names (
  customer_id uuid not null,
  -- An address in its canonical spelling, or a memo as it was given.
  name text not null,
  transfer_id uuid not null,
  found_by text not null,
  primary key (customer_id, name, transfer_id, found_by),
  constraint withdrawal_names_found_by check (found_by in ('ADDRESS', 'MEMO'))
);

create table fee_quotes (
  customer_id uuid not null references customers,
  id uuid not null,
  asset text not null,
  crypto_network text not null,
  destination_address text not null,
  fee numeric not null,
  amount numeric,
  total numeric,
  expires_at timestamptz not null,
  -- The one withdrawal that used it.
  transfer_id uuid,
  created_at timestamptz not null,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, id),
  constraint fee_quotes_amount_or_total check ((amount is null) <> (total is null))
);
create index fee_quotes_expired on fee_quotes (expires_at) where transfer_id is null;
-- The history of a withdrawal shows the quote that it used.
create index fee_quotes_of_transfer on fee_quotes (customer_id, transfer_id) where transfer_id is not null;
-- Quotes that no withdrawal has used: a customer may have so many, and expired ones are deleted.
create index fee_quotes_open on fee_quotes (customer_id, expires_at) where transfer_id is null;
-- For the deletion of old rows (src/upkeep/retention).
create index fee_quotes_used on fee_quotes (expires_at) where transfer_id is not null;

-- Bank accounts that fiat withdrawals go to.
create table fiat_accounts (
  customer_id uuid not null references customers,
  id uuid not null,
  status text not null,
  fiat_account_owner jsonb not null,
  fiat_network_instructions jsonb not null,
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamptz not null,
  -- A fiat account's metadata can change, and it can be deleted: the row stays for the wires that were sent to it.
  -- Null where it was never changed.
  updated_at timestamptz,
  deleted_at timestamptz,
  primary key (customer_id, id),
  constraint fiat_accounts_ref_id unique (customer_id, ref_id),
  constraint fiat_accounts_status check (status in ('PENDING', 'APPROVED', 'REJECTED'))
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
  created_at timestamptz not null,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, id),
  constraint fiat_deposit_instructions_memo_id unique (customer_id, memo_id),
  constraint fiat_deposit_instructions_ref_id unique (customer_id, ref_id),
  constraint fiat_deposit_instructions_status check (status in ('VALID', 'DEPRECATED')),
  foreign key (customer_id, profile_id) references profiles
);
create index fiat_deposit_instructions_profile on fiat_deposit_instructions (customer_id, profile_id, id);

-- Wires as the bank's statement of the platform's account shows them, recorded by an operator: a deposit that arrived, a
-- withdrawal that was sent, a sent wire that came back. The bank's reference is a wire's identity, whoever's money it is, so
-- that each is recorded once; no customer owns these rows. Rows are only ever added.
create table bank_wires (
  asset text not null,
  direction text not null,
  bank_reference text not null,
  kind text not null,
  amount numeric not null,
  -- The transfer that the wire made or completed.
  transfer_id uuid not null,
  -- Of a deposit: the memo that the wire carried.
  memo_id text,
  -- Of a return: the withdrawal that came back.
  returned_transfer_id uuid,
  recorded_by text not null,
  recorded_at timestamptz not null,
  primary key (asset, direction, bank_reference),
  constraint bank_wires_returned unique (returned_transfer_id),
  constraint bank_wires_transfer unique (transfer_id),
  constraint bank_wires_amount check (amount > 0),
  constraint bank_wires_kind check (
    direction = 'OUT' and kind = 'SENT' and memo_id is null and returned_transfer_id is null
    or direction = 'IN' and kind in ('DEPOSIT', 'SENT_BACK') and memo_id is not null and returned_transfer_id is null
    or direction = 'IN' and kind = 'RETURN' and memo_id is null and returned_transfer_id is not null
  )
);

create table deposit_addresses (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  crypto_network text not null,
  -- In canonical form.
  address text not null,
  conversion_target_asset text not null,
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamptz not null,
  -- Where the key of an address comes from, for a network that derives them.
  derivation text,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, id),
  constraint deposit_addresses_address unique (customer_id, address, crypto_network),
  constraint deposit_addresses_ref_id unique (customer_id, ref_id),
  constraint deposit_addresses_conversion check (conversion_target_asset in ('NO_CONVERSION', 'USD')),
  foreign key (customer_id, profile_id) references profiles
);
-- A chain knows an address and nothing else.
create index deposit_addresses_of_chain on deposit_addresses (address);
-- Lists by profile.
create index deposit_addresses_profile on deposit_addresses (customer_id, profile_id, id);

-- The address book: crypto addresses of others that a customer pays.
create table crypto_destination_addresses (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  identity_id uuid,
  crypto_network text not null,
  -- As it was sent, and in its canonical form, by which it is unique.
  address text not null,
  canonical_address text not null,
  nickname text not null,
  bookmarked boolean not null,
  travelrule_metadata jsonb,
  status text not null,
  -- When the cooling time of an address ends, as it was when the address was created, and when its status changed.
  cooling_until timestamptz,
  approved_at timestamptz,
  rejected_at timestamptz,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, id),
  constraint crypto_destination_addresses_approved check (status <> 'APPROVED' or approved_at is not null),
  constraint crypto_destination_addresses_rejected check ((status = 'REJECTED') = (rejected_at is not null)),
  constraint crypto_destination_addresses_status check (status in ('PENDING', 'APPROVED', 'REJECTED')),
  constraint crypto_destination_addresses_identity_fkey foreign key (customer_id, identity_id) references identities
);
create unique index crypto_destination_addresses_address on crypto_destination_addresses (
  customer_id, crypto_network, canonical_address, (coalesce(identity_id, '00000000-0000-0000-0000-000000000000'))
);
create index crypto_destination_addresses_cooling on crypto_destination_addresses (cooling_until) where status = 'PENDING';

-- What a deposit sets off. source_id is the place that the money comes in at: the rule's own deposit instructions
-- or deposit address, or a profile.
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
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- The identity and account that a rule's orchestrations, and their transfers, are made for.
  identity_id uuid,
  account_id uuid,
  -- The API client or operator that made a rule: the initiator of the transfers that the rule makes, for policy and approvals.
  created_by jsonb,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, id),
  constraint orchestration_rules_ref_id unique (customer_id, ref_id),
  constraint orchestration_rules_status check (status in ('ACTIVE', 'DELETED')),
  foreign key (customer_id, profile_id) references profiles
);
-- A deposit sets off one rule at most.
create unique index orchestration_rules_source on orchestration_rules (customer_id, source_id, source_asset) where status = 'ACTIVE';

-- A movement from a source to a destination (spec 2.3). PROCESSING without a destination transfer, it waits for the
-- worker to make one; with one, for that transfer to end.
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
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- How many orchestrations the deposit that started this one had come through, each paying the address that starts the next.
  hops smallint not null default 0,
  mac text,
  primary key (customer_id, id),
  constraint orchestrations_ref_id unique (customer_id, ref_id),
  constraint orchestrations_completed check (status <> 'COMPLETED' or destination_transfer_id is not null),
  constraint orchestrations_failed check ((status = 'FAILED') = (fail_reason is not null)),
  constraint orchestrations_source_amount check (source_amount > 0),
  constraint orchestrations_status check (status in ('PROCESSING', 'COMPLETED', 'FAILED'))
);
-- The history of a transfer names the orchestration that it belongs to. By its source, an orchestration is found by the time
-- of its creation, which is that of the deposit.
create index orchestrations_destination on orchestrations (customer_id, destination_transfer_id) where destination_transfer_id is not null;
-- Each filter of the list has an index that gives its records in the list's order (list-orchestrations.ts).
create index orchestrations_kind on orchestrations (customer_id, source_asset, destination_asset, status, id);
create index orchestrations_paying on orchestrations (customer_id, destination_transfer_id)
where status = 'PROCESSING' and destination_transfer_id is not null;
create index orchestrations_profile on orchestrations (customer_id, profile_id, source_asset, destination_asset, status, id);
create index orchestrations_rule on orchestrations (customer_id, orchestration_rule_id, status, id) where orchestration_rule_id is not null;
-- What the worker still has to pay out, and what waits for a transfer to end.
create index orchestrations_to_pay on orchestrations (customer_id, id) where status = 'PROCESSING' and destination_transfer_id is null;

-- That an orchestration was paid, or refused, holds against whoever has the service's database role: it has a row here that this role can
-- neither change nor delete. The role can set the orchestration and its transfer back.
create table decided_orchestrations (
  customer_id uuid not null,
  orchestration_id uuid not null,
  -- As `destination_transfer_id`; null where the payout was refused.
  transfer_id uuid,
  primary key (customer_id, orchestration_id)
);

-- The annual rate of the USDG reward, from a day on. What is set later for the same day counts from then on; nothing
-- is changed or removed, so that every statement can be derived again.
create table reward_rates (
  effective_from date not null,
  set_at timestamptz not null,
  rate numeric not null,
  sealed_at timestamptz,
  mac text,
  primary key (effective_from, set_at),
  constraint reward_rates_rate check (rate >= 0 and rate <= 1)
);

-- Monthly statements (spec 2.4). Once GENERATED, a statement's amounts do not change.
create table statements (
  customer_id uuid not null references customers,
  id uuid not null,
  ref_id text not null,
  type text not null,
  product text not null,
  status text not null,
  asset text not null,
  total_amount_owed numeric,
  amount_paid numeric,
  period_start timestamptz not null,
  period_end timestamptz not null,
  transfer_id uuid,
  generated_at timestamptz,
  paid_at timestamptz,
  created_at timestamptz not null,
  -- How the reward of a generated statement was computed.
  reward_method text,
  primary key (customer_id, id),
  constraint statements_ref_id unique (customer_id, ref_id),
  constraint statements_generated check (
    (status = 'STATEMENT_STATUS_INITIATED') = (generated_at is null)
    and (generated_at is null) = (total_amount_owed is null)
    and (generated_at is null) = (amount_paid is null)
  ),
  constraint statements_paid check (
    (status = 'STATEMENT_STATUS_PAID') = (paid_at is not null)
    and (paid_at is null or amount_paid = total_amount_owed)
  ),
  constraint statements_reward_method check (reward_method is null or reward_method = 'TIME_WEIGHTED'),
  constraint statements_status check (status in ('STATEMENT_STATUS_INITIATED', 'STATEMENT_STATUS_GENERATED', 'STATEMENT_STATUS_PAID'))
);
-- The command line knows a statement id and nothing else.
create index statements_id on statements (id);
-- The metrics read the age of the oldest statement that is not generated yet.
create index statements_initiated on statements (customer_id, created_at) where status = 'STATEMENT_STATUS_INITIATED';
create index statements_period on statements (customer_id, period_start, id);
create index statements_unpaid on statements (customer_id, id) where status = 'STATEMENT_STATUS_GENERATED';

-- A withdrawal's way over its network: the signed transaction is here, durably, before it is broadcast.
create table outgoing_transfers (
  customer_id uuid not null,
  transfer_id uuid not null,
  network text not null,
  state text not null,
  raw_transaction bytea,
  crypto_tx_hash text,
  -- When the worker looks at it next; null when done.
  due_at timestamptz,
  created_at timestamptz not null,
  -- Why a withdrawal waits: a sentence for people, and in waiting_code a code for programs
  -- (src/networks/waiting.ts). Workers write both at each look.
  waiting_detail text,
  waiting_since timestamptz,
  -- While a worker asks a network's node about a withdrawal, the withdrawal is leased: no other worker asks about it until
  -- the lease is over, and no transaction of the database is open meanwhile.
  leased_until timestamptz,
  -- Which output pays the withdrawal, where its transaction pays several. Its bytes are in network_transactions then.
  crypto_tx_index text,
  waiting_code text,
  -- The history of a transfer tells when each transaction was signed and first accepted by its network, and how many
  -- confirmations it has. They are written by the statements that record each step anyway.
  signed_at timestamptz,
  broadcast_at timestamptz,
  confirmations integer,
  confirmations_needed integer,
  primary key (customer_id, transfer_id),
  constraint outgoing_transfers_signed check ((state in ('HELD', 'DONE')) or crypto_tx_hash is not null),
  constraint outgoing_transfers_state check (state in ('HELD', 'SIGNED', 'BROADCAST', 'DONE')),
  constraint outgoing_transfers_waiting check ((waiting_code is null) = (waiting_detail is null))
);
-- Which withdrawal a deposit is, on every network.
create index outgoing_transfers_crypto_tx_hash on outgoing_transfers (network, crypto_tx_hash) where crypto_tx_hash is not null;
create index outgoing_transfers_due on outgoing_transfers (customer_id, network, due_at) where due_at is not null;
-- What the hot wallet of an EVM network has made and that has ended, newest first. A deep reorganisation may take some of it
-- back: then its kept bytes are broadcast again, and they are found among the newest.
create index outgoing_transfers_ended on outgoing_transfers (network, created_at)
where state = 'DONE' and raw_transaction is not null and (network in ('ETHEREUM', 'POLYGON_POS', 'BASE', 'ARBITRUM_ONE', 'INK', 'XLAYER'));

-- Transactions that another one has replaced, with the same nonce or inputs: any of them may be the one that is made.
create table replaced_transactions (
  customer_id uuid not null,
  transfer_id uuid not null,
  crypto_tx_hash text not null,
  raw_transaction bytea,
  replaced_at timestamptz not null,
  signed_at timestamptz,
  broadcast_at timestamptz,
  primary key (customer_id, transfer_id, crypto_tx_hash)
);
create index replaced_transactions_crypto_tx_hash on replaced_transactions (crypto_tx_hash);

-- What an operator decided of a withdrawal about which its network said something that only a person can judge, and on
-- what evidence. Rows are only ever added.
create table resolved_withdrawals (
  customer_id uuid not null,
  transfer_id uuid not null,
  outcome text not null,
  evidence text not null,
  -- What the network had said.
  reason text not null,
  resolved_at timestamptz not null,
  primary key (customer_id, transfer_id),
  constraint resolved_withdrawals_outcome check (outcome in ('PAID', 'NOT_PAID'))
);

-- A transaction that pays many withdrawals, of any customers: its bytes are kept once, and outgoing_transfers name its hash.
-- WITHDRAWALS: signed here. MARKED: an operator said which withdrawals it pays; until all its payments are accounted for,
-- it counts as unknown.
create table network_transactions (
  network text not null,
  crypto_tx_hash text not null,
  raw_transaction bytea not null,
  kind text not null,
  payments integer not null,
  signed_at timestamptz not null,
  -- What signing over a real network must know of all customers is in this table, so that it asks no other node of a cluster:
  -- whom a transaction pays, and whether all of that has ended.
  customer_ids uuid[] not null default '{}',
  transfer_ids uuid[] not null default '{}',
  ended_at timestamptz,
  -- Kept bytes whose nonce another transaction used can never be mined: its hash. The withdrawal is signed anew only after the chain has
  -- shown that transaction once more, so this is a hint and no proof.
  used_by text,
  primary key (network, crypto_tx_hash),
  constraint network_transactions_kind check (kind in ('WITHDRAWALS', 'MARKED', 'TOP_UP')),
  constraint network_transactions_payees check (cardinality(customer_ids) = cardinality(transfer_ids))
);
create index network_transactions_open on network_transactions (network) where ended_at is null;
create index network_transactions_transfers on network_transactions using gin (transfer_ids);

-- With whom a kept transaction pays is only ever added to: whoever could remove it could have a withdrawal signed twice. So
-- the service's role may not update it, and this function of the schema's owner adds the payees of a transaction that an
-- operator says paid more than what it was kept for.
create function add_payees(network text, hash text, customer_ids uuid[], transfer_ids uuid[]) returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  update public.network_transactions n
  set customer_ids = n.customer_ids || add_payees.customer_ids, transfer_ids = n.transfer_ids || add_payees.transfer_ids,
      ended_at = null
  where n.network = add_payees.network and n.crypto_tx_hash = add_payees.hash
$$;

-- Transactions that the chain has and that moved nothing: their withdrawals were refunded. Two within an hour that no recipient
-- can have caused (counts) stop the network; and while there are some, custody is watched more closely.
create table failed_transactions (
  network text not null,
  crypto_tx_hash text not null,
  failed_at timestamptz not null,
  counts boolean not null,
  primary key (network, crypto_tx_hash)
);

-- Transactions of the hot wallet that were made outside of Bursar, and that an operator has said are the platform's own.
-- The entries of each are in the platform's ledger, under its id.
create table acknowledged_transactions (
  network text not null,
  crypto_tx_hash text not null,
  id uuid not null,
  acknowledged_at timestamptz not null,
  primary key (network, crypto_tx_hash)
);

-- From when on the costs of a customer's failed withdrawals are counted, where that is less than a day: they froze the customer
-- then. What was spent before is held neither against it again nor against the network.
create table customer_fee_checks (
  customer_id uuid not null,
  network text not null,
  counted_from timestamptz not null,
  primary key (customer_id, network)
);

-- From when on a network's fees are compared with the fees taken, where that is less than a day: they stopped it then, and what
-- was spent before is not held against it again.
create table network_fee_checks (
  network text primary key,
  counted_from timestamptz not null
);

-- The hash of a network's first block, as its node said it at first: a node that says another one is on another chain,
-- whatever chain id it tells.
create table network_genesis (
  network text primary key,
  block_hash text not null,
  recorded_at timestamptz not null
);

-- Up to which block a wallet's own transactions were held against those that are kept here: what it has sent without this
-- database, as after a restore, may be what is about to be paid.
create table wallet_checks (
  network text primary key,
  checked_block text not null,
  updated_at timestamptz not null
);

-- The next nonce of each hot wallet. Allotted in the transaction that keeps what is signed with it. Nobody's: a hot
-- wallet pays for everybody.
create table evm_nonces (
  network text not null,
  address text not null,
  next_nonce bigint not null,
  -- Nonces above the next one whose transactions an operator has acknowledged.
  acknowledged_nonces bigint[] not null default '{}',
  primary key (network, address)
);

-- What lies at deposit addresses, as of the last look. `stale_at`: since when the chain may say otherwise.
create table evm_holdings (
  customer_id uuid not null,
  network text not null,
  address text not null,
  asset text not null,
  balance numeric not null,
  stale_at timestamptz,
  primary key (customer_id, network, address, asset)
);
create index evm_holdings_held on evm_holdings (network, asset, balance) where balance > 0;
create index evm_holdings_stale on evm_holdings (network, stale_at) where stale_at is not null;

-- Transactions that sweep: gas from the hot wallet to a deposit address, and what lies there to the hot wallet. Kept
-- before they are broadcast. `network_fee` is what one has really cost, in the asset that pays the network's fees.
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
  -- The hashes of those that this one replaced, with the same nonce: any of them may be the one that is made.
  replaced text[] not null,
  network_fee numeric,
  created_at timestamptz not null,
  signed_at timestamptz not null,
  ended_at timestamptz,
  -- Where a sweep was made that is still to be held against what came in at its address: once deposits are read up to there.
  audit_block bigint,
  -- A sweep whose nonce another transaction took can never be mined. It ends as VOID and costs nothing; lost_since is when
  -- the network first said so, because one answer of a node that lags is not enough.
  lost_since timestamptz,
  primary key (customer_id, id),
  constraint evm_sweeps_amount check (amount > 0),
  constraint evm_sweeps_cost check ((ended_at is null) = (network_fee is null)),
  constraint evm_sweeps_ended check ((state in ('DONE', 'FAILED', 'VOID')) = (ended_at is not null)),
  constraint evm_sweeps_kind check (kind in ('TOP_UP', 'SWEEP')),
  constraint evm_sweeps_state check (state in ('SIGNED', 'BROADCAST', 'DONE', 'FAILED', 'VOID'))
);
create index evm_sweeps_audit on evm_sweeps (network, audit_block) where audit_block is not null;
create index evm_sweeps_ended on evm_sweeps (network, created_at) where kind = 'TOP_UP' and (state in ('DONE', 'FAILED'));
-- Whether a transaction is a sweep's is asked while nothing can be signed.
create index evm_sweeps_hash on evm_sweeps (network, crypto_tx_hash);
create index evm_sweeps_of_address on evm_sweeps (customer_id, network, address);
create index evm_sweeps_of_network on evm_sweeps (network) where state in ('SIGNED', 'BROADCAST');
create index evm_sweeps_replaced on evm_sweeps using gin (replaced) where replaced <> '{}';
-- One at a time at an address: the next one begins with what the last one has left.
create unique index evm_sweeps_under_way on evm_sweeps (customer_id, network, address) where state in ('SIGNED', 'BROADCAST');

-- The simulated network's chain: it stands for something outside of Bursar, so no tenant owns it and
-- no Bursar transaction spans it.
create table simulated_chain (
  crypto_network text not null,
  hash text not null,
  raw_transaction bytea not null,
  broadcast_at timestamptz not null,
  dropped_at timestamptz,
  -- Whether a simulated transaction pays an address that was given out, and has not been read as a deposit yet. Null:
  -- not known yet.
  arrives boolean,
  primary key (crypto_network, hash)
);
create index simulated_chain_arrives on simulated_chain (crypto_network) where arrives is not false;
-- The simulated chains are read for deposits as real ones are.
create index simulated_chain_time on simulated_chain (crypto_network, broadcast_at, hash);

-- How far each network has been read for deposits. Nobody's: a block holds everybody's.
create table network_cursors (
  network text primary key,
  cursor text not null,
  updated_at timestamptz not null,
  -- The cursors before the current one, newest first: where reading goes on after a reorganisation.
  earlier text[] not null default '{}',
  -- Until when a worker reads the network. It saves requests; that nothing is recorded twice rests on the cursor alone.
  leased_until timestamptz
);

-- What has come in at deposit addresses, in a table of its own: recorded with the cursor that read it, credited after
-- that. A deposit that cannot be credited waits here with its reason, and holds up no other.
create table incoming_transfers (
  customer_id uuid not null,
  network text not null,
  crypto_tx_hash text not null,
  crypto_tx_index text not null,
  address text not null,
  asset text not null,
  amount numeric not null,
  -- Where the chain had it when it was found; null on a network that does not say.
  block_number bigint,
  block_hash text,
  state text not null,
  -- Why it is not credited yet, and the detail for an operator.
  reason text,
  detail text,
  -- Its address had come to the minimum deposit, so that it is credited whatever becomes of the others there.
  cleared boolean not null,
  -- The CRYPTO_DEPOSIT that credits it.
  transfer_id uuid,
  attempts integer not null,
  found_at timestamptz not null,
  due_at timestamptz not null,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, network, crypto_tx_hash, crypto_tx_index),
  constraint incoming_transfers_amount check (amount > 0),
  constraint incoming_transfers_credited check ((state in ('WAITING', 'UNATTRIBUTED')) = (transfer_id is null)),
  constraint incoming_transfers_reason check (
    reason in ('FAILED', 'BELOW_MINIMUM', 'SECOND_NODE', 'NODES_DISAGREE', 'SCREENING', 'FORGED') and state = 'WAITING'
    or reason is null
  ),
  constraint incoming_transfers_state check (state in ('WAITING', 'CREDITED', 'REORGANISED', 'UNATTRIBUTED'))
);
create index incoming_transfers_at on incoming_transfers (customer_id, network, address, asset);
create index incoming_transfers_blocks on incoming_transfers (network, block_number) where state = 'CREDITED';
-- A deposit below the minimum is not due by time, but by the next arrival at its address or by another minimum. So a flood of
-- them costs the other deposits nothing: only the sum of a place reads them.
create index incoming_transfers_due on incoming_transfers (network, due_at)
where state = 'WAITING' and reason is distinct from 'BELOW_MINIMUM';
create index incoming_transfers_reorganised on incoming_transfers (network) where state = 'REORGANISED';
create index incoming_transfers_small on incoming_transfers (customer_id, network, address, asset) include (amount)
where state = 'WAITING' and reason = 'BELOW_MINIMUM';
-- UNATTRIBUTED: it was swept from a deposit address, and no deposit was found for it.
create index incoming_transfers_unattributed on incoming_transfers (network) where state = 'UNATTRIBUTED';

-- What was recorded of a deposit, and that it was credited, holds against whoever has the service's database role: a recorded deposit
-- carries a MAC (src/audit/row-macs.ts), and a credited one has a row here that this role can neither change nor delete.
create table credited_deposits (
  customer_id uuid not null,
  network text not null,
  crypto_tx_hash text not null,
  crypto_tx_index text not null,
  transfer_id uuid not null,
  primary key (customer_id, network, crypto_tx_hash, crypto_tx_index)
);

-- Deposits that are in a block without enough confirmations: PENDING transfers, which have no entries.
create table seen_deposits (
  customer_id uuid not null,
  transfer_id uuid not null,
  network text not null,
  crypto_tx_hash text not null,
  crypto_tx_index text not null,
  address text not null,
  -- The newest block that it was seen in.
  block_number bigint not null,
  state text not null,
  seen_at timestamptz not null,
  ended_at timestamptz,
  primary key (customer_id, transfer_id),
  constraint seen_deposits_ended check ((state = 'PENDING') = (ended_at is null)),
  constraint seen_deposits_state check (state in ('PENDING', 'COMPLETED', 'FAILED'))
);
create index seen_deposits_ended on seen_deposits (ended_at) where state <> 'PENDING';
create index seen_deposits_failed on seen_deposits (network, ended_at) where state = 'FAILED';
create index seen_deposits_output on seen_deposits (customer_id, network, crypto_tx_hash, crypto_tx_index);
create index seen_deposits_pending on seen_deposits (network, block_number) where state = 'PENDING';
-- Wires that are PENDING before they are credited or sent back are in seen_deposits, as deposits over networks are: network WIRE,
-- with the bank's reference as the hash and the memo as the address. A reference is PENDING once.
create unique index seen_deposits_wire on seen_deposits (customer_id, crypto_tx_hash) where network = 'WIRE' and state = 'PENDING';

-- Questions about payments to the operator's screening endpoint, and their answers. A row is made when a payment must
-- wait for one.
create table screenings (
  customer_id uuid not null,
  kind text not null,
  -- Of a withdrawal the transfer's id; of a deposit <network>/<hash>/<index>.
  subject text not null,
  -- The id of the question: the same for each time that it is asked.
  id uuid not null,
  created_at timestamptz not null,
  state text not null,
  attempts integer not null,
  -- When it is asked next; while it is asked, when the lease ends.
  due_at timestamptz,
  -- What was wrong with the last answer.
  detail text,
  decided_at timestamptz,
  -- Of an ALLOW: over the payment's details and decided_at. The signer checks it.
  mac text,
  primary key (customer_id, kind, subject),
  constraint screenings_allowed check (state <> 'ALLOWED' or mac is not null and decided_at is not null),
  constraint screenings_due check ((state = 'WAITING') = (due_at is not null)),
  constraint screenings_kind check (kind in ('WITHDRAWAL', 'DEPOSIT')),
  constraint screenings_state check (state in ('WAITING', 'ALLOWED', 'REJECTED', 'ENDED'))
);
create index screenings_due on screenings (due_at) where state = 'WAITING';
create index screenings_rejected on screenings (created_at) where state = 'REJECTED';

-- Since when payments of this deployment must be screened. The first process with the settings of screening makes the row; only
-- the schema's owner removes it. A process without these settings then neither signs nor credits.
create table screening_requirement (
  id smallint primary key,
  since timestamptz not null,
  constraint screening_requirement_one_row check (id = 1)
);

-- What may not move money out: everything, or a network. Each row is one reason; a target stays
-- frozen until its last reason is lifted. An operator sets OPERATOR; the worker sets the others, each with what it saw.
create table freezes (
  kind text not null,
  -- '', or the network's name.
  subject text not null,
  reason text not null,
  detail text not null,
  created_at timestamptz not null,
  -- Who placed a freeze while the node of the platform's audit log was gone; null once that is recorded there.
  unrecorded jsonb,
  -- A freeze that has ended stays, with the MAC of its end: the service's role may not delete it, and cannot make the MAC. So
  -- whoever has that role ends no freeze.
  lifted_at timestamptz,
  sealed_at timestamptz,
  mac text,
  primary key (kind, subject, reason, created_at),
  constraint freezes_kind check (kind in ('ALL', 'NETWORK'))
);
create unique index freezes_in_force on freezes (kind, subject, reason) where lifted_at is null;

-- A customer's freezes are rows of the customer, read with its balances; those of networks are in freezes. So the freezes of a
-- distributed database are with their customers, and those of networks on the coordinator: a node that is gone keeps nobody
-- from freezing the others.
create table customer_freezes (
  customer_id uuid not null,
  -- The customer's own id, or the id of one of its profiles.
  subject uuid not null,
  reason text not null,
  detail text not null,
  created_at timestamptz not null,
  lifted_at timestamptz,
  sealed_at timestamptz,
  mac text,
  primary key (customer_id, subject, reason, created_at)
);
create unique index customer_freezes_in_force on customer_freezes (customer_id, subject, reason) where lifted_at is null;

-- The rules of each customer for payments, one row for each version: the newest one counts. A row never changes. Its MAC,
-- by a key that is not in the database, covers all of it.
create table policies (
  customer_id uuid not null references customers,
  version integer not null,
  document jsonb not null,
  mac text not null,
  created_at timestamptz not null,
  primary key (customer_id, version),
  constraint policies_version check (version > 0)
);

-- What each rule with a limit has counted, for each subject: a profile, an identity, a destination or the customer. Every
-- batch of payments rewrites the rows that it counts in, so each page has room for new versions of its rows.
create table policy_windows (
  customer_id uuid not null,
  rule_id text not null,
  -- The asset of the amounts; USD for values in USD.
  asset text not null,
  subject text not null,
  -- Pairs of the time of the latest payment of a bucket, in microseconds since 1970, and the bucket's sum.
  buckets jsonb not null,
  -- When nothing in it counts any more.
  ends_at timestamptz not null,
  primary key (customer_id, rule_id, asset, subject)
) with (fillfactor = 50);
-- For the deletion of old rows (src/upkeep/retention).
create index policy_windows_ends_at on policy_windows (ends_at);

-- The people who may approve, each with the public key of a key file or a passkey. Only the schema's owner writes this
-- table: neither the service's role nor a process of the service can make an approver (docs/decisions/governance.md).
create table approvers (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  name text not null,
  -- The same person as an operator, and as an API client.
  operator_id uuid,
  client_id uuid,
  role text not null,
  -- {kty, crv, x, y?}: a public key as RFC 7517 writes it. Of a passkey also {credential_id, rp_id}.
  key jsonb not null,
  -- The SHA-256 of the key (RFC 7638).
  thumbprint text not null,
  -- ACTIVE or REVOKED.
  status text not null,
  revoked_at timestamptz,
  primary key (customer_id, id),
  constraint approvers_revoked check ((status = 'REVOKED') = (revoked_at is not null))
);
create unique index approvers_key on approvers (customer_id, thumbprint) where status = 'ACTIVE';

-- A withdrawal or a change that waits for approvers. Of a withdrawal, its MAC covers the columns that approvers sign.
create table approvals (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  -- The withdrawal; null for a change.
  transfer_id uuid,
  -- The change: {subject, operation, target {type, id}, values}. Secrets are in it as their SHA-256.
  change jsonb,
  -- The SHA-256 of the change. Repeated requests for one change share an approval.
  change_digest text,
  -- How many approvers are needed, and of which role.
  required smallint not null,
  role text not null,
  rule_id text,
  policy_version bigint not null,
  initiator_type text not null,
  initiator_id text not null,
  deadline timestamptz not null,
  -- PENDING, APPROVED, REJECTED, EXPIRED, CANCELLED; of a change also USED.
  status text not null,
  approved_at timestamptz,
  ended_at timestamptz,
  primary key (customer_id, id),
  constraint approvals_subject check ((transfer_id is null) = (change is not null) and (change is null) = (change_digest is null))
);
create unique index approvals_change on approvals (customer_id, change_digest)
where change_digest is not null and (status in ('PENDING', 'APPROVED'));
-- The deadlines of changes. Those of withdrawals are in outgoing_transfers.
create index approvals_open on approvals (customer_id, deadline) where change is not null and (status in ('PENDING', 'APPROVED'));
create unique index approvals_transfer on approvals (customer_id, transfer_id) where transfer_id is not null;

-- The signed statements of approvers, as they were sent. Append-only. Only signatures count, not rows: a forged row neither
-- approves nor keeps the approver from deciding.
create table approval_decisions (
  customer_id uuid not null,
  approval_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  approver_id uuid not null,
  -- APPROVE or REJECT.
  decision text not null,
  -- {jws}, or {passkey {authenticator_data, client_data_json, signature}}.
  signed jsonb not null,
  primary key (customer_id, approval_id, id)
);

-- Events: one for each change of a status, written in the transaction of the change. Partitioned by id, whose first
-- bits are the time, so that old events are dropped with their partition. The default partition takes what no other does:
-- a missing partition must never stop a payment.
create table events (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  type text not null,
  -- The record whose status changed.
  object_id uuid not null,
  -- Null where the object is read from the record: of transfers and orchestrations, it does not change any more.
  object jsonb,
  is_test boolean not null,
  primary key (customer_id, id)
) partition by range (id);
-- An index of every event costs a tenth of all payments (measured: 11 %). The events of transfers and orchestrations are
-- found by the times of their records instead: an id begins with the moment of its change.
create index events_object on events (customer_id, object_id, id) where object is not null;
-- The types that no payment writes by the million. Without it, a list of a rare type reads all events.
create index events_type on events (customer_id, type, id)
where type not in ('transfer.crypto_withdrawal.pending', 'transfer.crypto_withdrawal.completed',
                   'transfer.internal_transfer_debit.completed', 'transfer.internal_transfer_credit.completed');
create table events_default partition of events default;

-- From when on each change has its event: those of dropped partitions are gone.
create table event_history (
  id smallint primary key,
  complete_from timestamptz not null,
  constraint event_history_one_row check (id = 1)
);

insert into event_history (id, complete_from) values (1, clock_timestamp());

-- The endpoints of customers.
create table webhooks (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  name text not null,
  url text not null,
  event_types text[] not null,
  payload text not null,
  -- How a delivery authenticates, without its secret.
  auth jsonb not null,
  profile_ids uuid[],
  rate_limit smallint not null,
  status text not null,
  -- The signing secrets and the secret of auth, encrypted with a key derived from the master key.
  encrypted_secrets text not null,
  -- The previous signing secret signs, too, until then.
  previous_secret_until timestamptz,
  -- Every event up to this one has its delivery, if it needs one. Later events may have one already.
  cursor_id uuid not null,
  -- Since the first failure after the last success.
  failing_since timestamptz,
  disabled_reason text,
  -- The rate limit, over all processes: when the next delivery may start, and until when the rate is halved.
  next_at timestamptz not null,
  slow_until timestamptz,
  primary key (customer_id, id),
  constraint webhooks_name unique (customer_id, name),
  constraint webhooks_payload check (payload in ('THIN', 'FULL')),
  constraint webhooks_rate_limit check (rate_limit >= 1 and rate_limit <= 100),
  constraint webhooks_status check (status in ('ACTIVE', 'DISABLED'))
);
create index webhooks_active on webhooks (customer_id, id) where status = 'ACTIVE';

-- A delivery of an event to an endpoint. Partitioned like the events.
create table webhook_deliveries (
  customer_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  object_id uuid not null,
  status text not null,
  created_at timestamptz not null,
  -- The attempts made in all, and the number since it was sent or resent, which gives the delay to the next.
  attempts smallint not null,
  attempts_of_round smallint not null,
  -- When the next attempt is due; null once there is none.
  due_at timestamptz,
  -- A worker makes an attempt. After this time, another worker may.
  leased_until timestamptz,
  ended_at timestamptz,
  primary key (customer_id, webhook_id, event_id),
  constraint webhook_deliveries_due check ((status = 'PENDING') = (due_at is not null)),
  constraint webhook_deliveries_status check (status in ('PENDING', 'DELIVERED', 'FAILED'))
) partition by range (event_id);
create index webhook_deliveries_due_at on webhook_deliveries (customer_id, webhook_id, due_at) where status = 'PENDING';
-- An event waits while an earlier one of its record waits for its first attempt.
create index webhook_deliveries_first_attempt on webhook_deliveries (customer_id, webhook_id, object_id, event_id)
where status = 'PENDING' and attempts = 0;
create index webhook_deliveries_undelivered on webhook_deliveries (customer_id, event_id) where status <> 'DELIVERED';
create table webhook_deliveries_default partition of webhook_deliveries default;

-- The attempts of deliveries. The first id of their time partitions them, like the events.
create table webhook_attempts (
  customer_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  attempt smallint not null,
  -- Absent where no answer came.
  status_code smallint,
  error text,
  duration_ms integer not null,
  response text,
  primary key (customer_id, webhook_id, event_id, id)
) partition by range (id);
create table webhook_attempts_default partition of webhook_attempts default;

-- Makes and drops the weekly partitions of events, deliveries and attempts. The service's role owns no table, so this
-- function of the schema's owner does it, within the limits below. Each call makes one step, so that its locks are short;
-- null when nothing is left to do. ARCHITECTURE.md, "Retention", says which locks it takes. On a distributed database it
-- measures the shards of the default partition, without their indexes.
create function keep_partitions(parent text, kept_days integer) returns text
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
set lock_timeout = '100ms'
as $$
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
$$;
revoke execute on function keep_partitions(text, integer) from public;

select keep_partitions(parent, 90)
from unnest(array['events', 'webhook_deliveries', 'webhook_attempts']) as parent, generate_series(1, 5);

-- The audit log: who changed what. Nothing is written for each payment: a row has all changes of one actor and one action
-- in one transaction. docs/reference/audit-chain.md says what the hashes cover.
create table audit_log (
  customer_id uuid not null,
  id uuid not null,
  -- The link of the chain that covers this row.
  position bigint not null,
  created_at timestamptz not null,
  actor_type text not null,
  actor_id text not null,
  action text not null,
  subject_type text not null,
  -- The record that was changed, or those: transfers and orchestrations by the batch.
  subject_id text,
  subject_ids uuid[],
  -- One for each subject, or one for all of them.
  request_ids uuid[],
  ips text[],
  outcome text not null,
  -- For changes that move money: the event of the subjects' entries, which the chain covers, too.
  ledger_event text,
  -- Of configuration: before and after. Its text is hashed, so it is kept as it was written.
  changes json,
  primary key (customer_id, id),
  constraint audit_log_actor_type check (actor_type in ('API_CLIENT', 'OPERATOR', 'WORKER', 'COMMAND_LINE')),
  constraint audit_log_outcome check (outcome in ('DONE', 'REFUSED')),
  constraint audit_log_subject check ((subject_id is null) <> (subject_ids is null))
)
-- A batch's ids have some kilobytes. They stay in the row: compressing them costs more than writing them.
with (toast_tuple_target = 8160);
create index audit_log_action on audit_log (customer_id, action, id);
create index audit_log_actor on audit_log (customer_id, actor_id, id);
create index audit_log_actor_action on audit_log (customer_id, actor_id, action, id);
create index audit_log_actor_type on audit_log (customer_id, actor_type, id);
create index audit_log_position on audit_log (customer_id, position);
create index audit_log_refused on audit_log (customer_id, id) where outcome = 'REFUSED';
-- No payment writes these. The rows of transfers and orchestrations are found by the moments of their changes.
create index audit_log_subject on audit_log (customer_id, subject_id, id) where subject_id is not null;
create index audit_log_subject_type on audit_log (customer_id, subject_type, id) where subject_id is not null;

-- The chain of a customer, or of the platform: one link for each transaction that writes to its audit log.
create table audit_links (
  customer_id uuid not null,
  position bigint not null,
  created_at timestamptz not null,
  -- The digests of the link's rows of audit_log, in the order of their ids, 32 bytes each.
  digests bytea not null,
  -- SHA-256 of the hash of the link before, and of digests.
  hash bytea not null,
  primary key (customer_id, position),
  constraint audit_links_digests check (length(digests) > 0 and (length(digests) % 32) = 0),
  constraint audit_links_hash check (length(hash) = 32)
);

-- The end of each chain. Its row's lock orders the links.
create table audit_heads (
  customer_id uuid primary key,
  position bigint not null,
  hash bytea not null,
  -- Every entry from then on has its row in the audit log.
  covered_from timestamptz not null
)
-- Room for new versions of the row: each link makes one.
with (fillfactor = 20);

-- The chain of the platform.
insert into audit_heads (customer_id, position, hash, covered_from)
select id, 0,
       sha256(convert_to(format('bursar audit chain %s %s', id, (extract(epoch from covered_from) * 1000000)::bigint), 'UTF8')),
       covered_from
from (select '00000000-0000-0000-0000-000000000000'::uuid as id, clock_timestamp() as covered_from) platform;

-- Market history. It is shared by all customers, so there is no customer_id.
-- Moments are whole minutes since 1970 (UTC), in columns that are named for what begins then.
create table markets (
  id smallint primary key,
  market text not null,
  -- Simulated and real prices are never mixed in a market; null while it has none.
  source text,
  -- The newest real price, which limits in USD and fees are decided by: so it carries the MAC. A simulated market has none.
  newest_minute integer,
  newest_price numeric,
  sealed_at timestamptz,
  mac text,
  constraint markets_market unique (market),
  constraint markets_source check (source in ('SIMULATED', 'REAL'))
);

insert into markets (id, market)
select ordinality, market
from unnest(array[
  'ETHEUR', 'ETHUSD', 'BTCEUR', 'BTCUSD', 'PAXGUSD', 'BCHUSD', 'LTCUSD', 'ETHGBP', 'BTCGBP', 'LTCGBP', 'BCHGBP',
  'USDPUSD', 'ETHBRL', 'BTCBRL', 'LTCBRL', 'BCHBRL', 'USDPGBP', 'USDPBRL', 'LINKUSD', 'MATICUSD', 'AAVEUSD',
  'UNIUSD', 'AAVEMXN', 'BCHMXN', 'BTCMXN', 'ETHMXN', 'LTCMXN', 'USDPMXN', 'AAVEEUR', 'BCHEUR', 'LTCEUR', 'LINKEUR',
  'MATICEUR', 'PAXGEUR', 'SOLEUR', 'USDPEUR', 'UNIEUR', 'PYUSDEUR', 'PYUSDGBP'
]) with ordinality as spec (market, ordinality);

-- What is known of each minute. There are millions of rows: the columns are in the order that wastes no bytes, and
-- there is no foreign key to check, because who writes has locked the market.
create table price_minutes (
  market_id smallint not null,
  -- Of two records of a minute the one that covers less time counts, then the later in the minute, then the newer.
  covers_minutes smallint not null,
  minute integer not null,
  second smallint not null,
  price numeric not null,
  -- The shortest increment, in minutes, that contains the whole record of the minute: candles of that length, and longer ones,
  -- are exact. 2147483647: none is.
  exact_increment integer not null,
  -- The four prices are null where all of them equal `price`.
  open numeric,
  high numeric,
  low numeric,
  close numeric,
  primary key (market_id, minute),
  constraint price_minutes_candle check (num_nulls(open, high, low, close) in (0, 4)),
  constraint price_minutes_price check (price > 0)
);

-- The roll-ups: the sum and the number of the minutes that there are in each increment, so that the average is exact.
create table price_points (
  market_id smallint not null,
  increment_minutes integer not null,
  starts_at integer not null,
  minutes integer not null,
  sum numeric not null,
  -- In a day, and in four weeks: how many points of each increment up to a day begin in it, finest first. By these,
  -- a range of millions of points is counted, and a page deep in it found, without reading them.
  counts integer[],
  open numeric not null,
  high numeric not null,
  low numeric not null,
  close numeric not null,
  exact_increment integer not null,
  primary key (market_id, increment_minutes, starts_at)
);

-- How far each file was imported: a file is known by its content, and by how it was read.
create table price_imports (
  market_id smallint not null references markets,
  digest bytea not null,
  name text not null,
  records bigint not null,
  finished boolean not null,
  updated_at timestamptz not null,
  primary key (market_id, digest)
);
