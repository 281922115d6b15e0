-- Every tenant-owned table has customer_id as the first column of its keys (ARCHITECTURE.md, "Tenancy").
-- Timestamps are microseconds; ids are UUIDv7 made from the record's own created_at (src/db/ids.ts),
-- so that the order of ids is the order of creation and the primary key serves the lists.

create table customers (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null
);

create table api_clients (
  customer_id uuid not null references customers,
  id uuid not null,
  secret_hash bytea not null, -- SHA-256 of a 256-bit random secret, which is shown once and not kept
  scopes text[] not null,
  created_at timestamptz not null,
  disabled_at timestamptz,
  primary key (customer_id, id)
);
-- The token endpoint knows a client id and nothing else.
create index api_clients_id on api_clients (id);

-- The keys that sign access tokens. Every process of this deployment verifies with them.
create table signing_keys (
  id text primary key,
  private_jwk jsonb not null,
  created_at timestamptz not null
);

create table profiles (
  customer_id uuid not null references customers,
  id uuid not null,
  type text not null constraint profiles_type check (type in ('NORMAL', 'DEFAULT')),
  nickname text not null,
  description text,
  account_id uuid,
  created_at timestamptz not null,
  primary key (customer_id, id),
  constraint profiles_nickname unique (customer_id, nickname)
);

create table fiat_deposit_instructions (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  memo_id text not null,
  status text not null constraint fiat_deposit_instructions_status check (status in ('VALID', 'DEPRECATED')),
  fiat_network text not null,
  routing_number_type text not null,
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamptz not null,
  primary key (customer_id, id),
  constraint fiat_deposit_instructions_memo_id unique (customer_id, memo_id),
  constraint fiat_deposit_instructions_ref_id unique (customer_id, ref_id),
  foreign key (customer_id, profile_id) references profiles
);

-- One row per profile and asset: what may be spent now. The ledger (src/ledger) is its only writer.
-- Filled to a half, so that an update finds room on the same page and touches no index.
create table balances (
  customer_id uuid not null,
  profile_id uuid not null,
  asset text not null,
  available numeric not null constraint balances_not_negative check (available >= 0),
  version bigint not null, -- how many entries this balance has
  updated_at timestamptz not null,
  primary key (customer_id, profile_id, asset),
  foreign key (customer_id, profile_id) references profiles
) with (fillfactor = 50);

-- The record of a money movement (spec 2.1). No foreign keys here and on entries: a posting needs the
-- balance row, which has one, and a check per row costs more than the row.
create table transfers (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  type text not null,
  direction text not null constraint transfers_direction check (direction in ('CREDIT', 'DEBIT')),
  status text not null constraint transfers_status check (status in ('PENDING', 'COMPLETED', 'FAILED')),
  asset text not null,
  balance_asset text,
  amount numeric not null constraint transfers_amount check (amount > 0),
  fee numeric not null constraint transfers_fee check (fee >= 0),
  total numeric not null constraint transfers_total check (total >= 0),
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
  beneficiary jsonb, -- as the client gave it; not part of the wire record
  primary key (customer_id, id),
  constraint transfers_ref_id unique (customer_id, ref_id)
);
create index transfers_profile on transfers (customer_id, profile_id, id);
create index transfers_updated_at on transfers (customer_id, updated_at, id);
create index transfers_crypto_tx_hash on transfers (customer_id, crypto_tx_hash) where crypto_tx_hash is not null;
create index transfers_group on transfers (customer_id, group_id) where group_id is not null;
create index transfers_identity on transfers (customer_id, identity_id, id) where identity_id is not null;
create index transfers_account on transfers (customer_id, account_id, id) where account_id is not null;
-- What the settlement worker still has to begin.
create index transfers_pending on transfers (customer_id, id) where status = 'PENDING';

-- Double entry. The entries of one event of one transfer sum to zero per asset; the primary key makes
-- posting an event twice impossible. An entry on a profile carries the balance it left behind.
create table entries (
  customer_id uuid not null,
  transfer_id uuid not null,
  event text not null constraint entries_event check (event in ('CREATED', 'SETTLED', 'REFUNDED')),
  position smallint not null,
  account text not null, -- 'profile' or a platform account (src/ledger/entries.ts)
  profile_id uuid,
  asset text not null,
  amount numeric not null constraint entries_amount check (amount <> 0),
  balance_after numeric constraint entries_not_negative check (balance_after >= 0),
  version bigint,
  created_at timestamptz not null,
  primary key (customer_id, transfer_id, event, position),
  constraint entries_profile check (
    (account = 'profile') = (profile_id is not null)
    and (profile_id is null) = (balance_after is null)
    and (profile_id is null) = (version is null)
  )
);
-- The balance as of any moment is the last entry at or before it: one look-up.
create index entries_balance_history on entries (customer_id, profile_id, asset, created_at, version)
  where profile_id is not null;

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
  transfer_id uuid, -- the one withdrawal that used it
  created_at timestamptz not null,
  primary key (customer_id, id),
  constraint fee_quotes_amount_or_total check ((amount is null) <> (total is null))
);

-- A withdrawal's way over its network: the signed transaction is here, durably, before it is broadcast.
create table broadcasts (
  customer_id uuid not null,
  transfer_id uuid not null,
  crypto_network text not null,
  state text not null constraint broadcasts_state check (state in ('HELD', 'SIGNED', 'BROADCAST', 'DONE')),
  raw_transaction bytea,
  crypto_tx_hash text,
  due_at timestamptz, -- when the worker looks at it next; null when done
  created_at timestamptz not null,
  primary key (customer_id, transfer_id),
  constraint broadcasts_signed check (state = 'HELD' or (raw_transaction is null) = (crypto_tx_hash is null))
);
create index broadcasts_due on broadcasts (customer_id, crypto_network, due_at) where due_at is not null;

-- The simulated network's chain: it stands for something outside of Bursar, so no tenant owns it and
-- no Bursar transaction spans it.
create table simulated_chain (
  crypto_network text not null,
  hash text not null,
  raw_transaction bytea not null,
  broadcast_at timestamptz not null,
  dropped_at timestamptz,
  primary key (crypto_network, hash)
);

-- Append-only, held by privileges: not even the owner may change or remove an entry. (A superuser may do
-- anything; the service warns when it runs as one.)
revoke update, delete, truncate on entries from public, current_user;
