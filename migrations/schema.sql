-- The schema that the migrations make, as PostgreSQL's catalogues tell it. For readers: nothing runs this file.
-- `npm run schema` writes it, and a test compares it with a freshly migrated database.
-- Where no grants are shown, the owner may do all, and nobody else anything.

create table api_clients (
  customer_id uuid not null,
  id uuid not null,
  secret_hash bytea not null,
  scopes text[] not null,
  created_at timestamp with time zone not null,
  disabled_at timestamp with time zone,
  constraint api_clients_pkey PRIMARY KEY (customer_id, id),
  constraint api_clients_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id)
);
CREATE INDEX api_clients_id ON api_clients USING btree (id);

create table balances (
  customer_id uuid not null,
  profile_id uuid not null,
  asset text not null,
  available numeric not null,
  version bigint not null,
  updated_at timestamp with time zone not null,
  constraint balances_pkey PRIMARY KEY (customer_id, profile_id, asset),
  constraint balances_customer_id_profile_id_fkey FOREIGN KEY (customer_id, profile_id) REFERENCES profiles(customer_id, id),
  constraint balances_not_negative CHECK (available >= 0::numeric)
) with (fillfactor=50);

create table broadcasts (
  customer_id uuid not null,
  transfer_id uuid not null,
  crypto_network text not null,
  state text not null,
  raw_transaction bytea,
  crypto_tx_hash text,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  constraint broadcasts_pkey PRIMARY KEY (customer_id, transfer_id),
  constraint broadcasts_signed CHECK (state = 'HELD'::text OR (raw_transaction IS NULL) = (crypto_tx_hash IS NULL)),
  constraint broadcasts_state CHECK (state = ANY (ARRAY['HELD'::text, 'SIGNED'::text, 'BROADCAST'::text, 'DONE'::text]))
);
CREATE INDEX broadcasts_due ON broadcasts USING btree (customer_id, crypto_network, due_at) WHERE due_at IS NOT NULL;

create table customers (
  id uuid not null,
  name text not null,
  created_at timestamp with time zone not null,
  constraint customers_pkey PRIMARY KEY (id)
);

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
  constraint entries_event CHECK (event = ANY (ARRAY['CREATED'::text, 'SETTLED'::text, 'REFUNDED'::text])),
  constraint entries_not_negative CHECK (balance_after >= 0::numeric),
  constraint entries_profile CHECK ((account = 'profile'::text) = (profile_id IS NOT NULL) AND (profile_id IS NULL) = (balance_after IS NULL) AND (profile_id IS NULL) = (version IS NULL))
);
CREATE INDEX entries_balance_history ON entries USING btree (customer_id, profile_id, asset, created_at, version) WHERE profile_id IS NOT NULL;
grant insert, references, select, trigger on entries to owner;

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
  constraint fee_quotes_pkey PRIMARY KEY (customer_id, id),
  constraint fee_quotes_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint fee_quotes_amount_or_total CHECK ((amount IS NULL) <> (total IS NULL))
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
  constraint fiat_deposit_instructions_pkey PRIMARY KEY (customer_id, id),
  constraint fiat_deposit_instructions_memo_id UNIQUE (customer_id, memo_id),
  constraint fiat_deposit_instructions_ref_id UNIQUE (customer_id, ref_id),
  constraint fiat_deposit_instructions_customer_id_profile_id_fkey FOREIGN KEY (customer_id, profile_id) REFERENCES profiles(customer_id, id),
  constraint fiat_deposit_instructions_status CHECK (status = ANY (ARRAY['VALID'::text, 'DEPRECATED'::text]))
);

create table profiles (
  customer_id uuid not null,
  id uuid not null,
  type text not null,
  nickname text not null,
  description text,
  account_id uuid,
  created_at timestamp with time zone not null,
  constraint profiles_pkey PRIMARY KEY (customer_id, id),
  constraint profiles_nickname UNIQUE (customer_id, nickname),
  constraint profiles_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  constraint profiles_type CHECK (type = ANY (ARRAY['NORMAL'::text, 'DEFAULT'::text]))
);

create table schema_version (
  version bigint not null,
  name text,
  md5 text,
  run_at timestamp with time zone,
  constraint schema_version_pkey PRIMARY KEY (version)
);

create table signing_keys (
  id text not null,
  private_jwk jsonb not null,
  created_at timestamp with time zone not null,
  constraint signing_keys_pkey PRIMARY KEY (id)
);

create table simulated_chain (
  crypto_network text not null,
  hash text not null,
  raw_transaction bytea not null,
  broadcast_at timestamp with time zone not null,
  dropped_at timestamp with time zone,
  constraint simulated_chain_pkey PRIMARY KEY (crypto_network, hash)
);

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
  constraint transfers_pkey PRIMARY KEY (customer_id, id),
  constraint transfers_ref_id UNIQUE (customer_id, ref_id),
  constraint transfers_amount CHECK (amount > 0::numeric),
  constraint transfers_direction CHECK (direction = ANY (ARRAY['CREDIT'::text, 'DEBIT'::text])),
  constraint transfers_fee CHECK (fee >= 0::numeric),
  constraint transfers_status CHECK (status = ANY (ARRAY['PENDING'::text, 'COMPLETED'::text, 'FAILED'::text])),
  constraint transfers_total CHECK (total >= 0::numeric)
);
CREATE INDEX transfers_account ON transfers USING btree (customer_id, account_id, id) WHERE account_id IS NOT NULL;
CREATE INDEX transfers_crypto_tx_hash ON transfers USING btree (customer_id, crypto_tx_hash) WHERE crypto_tx_hash IS NOT NULL;
CREATE INDEX transfers_group ON transfers USING btree (customer_id, group_id) WHERE group_id IS NOT NULL;
CREATE INDEX transfers_identity ON transfers USING btree (customer_id, identity_id, id) WHERE identity_id IS NOT NULL;
CREATE INDEX transfers_pending ON transfers USING btree (customer_id, id) WHERE status = 'PENDING'::text;
CREATE INDEX transfers_profile ON transfers USING btree (customer_id, profile_id, id);
CREATE INDEX transfers_updated_at ON transfers USING btree (customer_id, updated_at, id);
