-- What withdrawals and deposits on real chains need beyond the simulated ones.

-- Why a withdrawal is not signed yet (the hot wallet is short, fees are above their ceiling), and since when.
alter table broadcasts add column waiting_reason text;
alter table broadcasts add column waiting_since timestamptz;

-- Transactions that another one has replaced, with the same nonce or inputs: any of them may be the one that is made.
create table replaced_transactions (
  customer_id uuid not null,
  transfer_id uuid not null,
  crypto_tx_hash text not null,
  raw_transaction bytea not null,
  replaced_at timestamptz not null,
  primary key (customer_id, transfer_id, crypto_tx_hash)
);

-- How far each network has been read for deposits. Nobody's: a block holds everybody's.
create table network_cursors (
  network text primary key,
  cursor text not null,
  updated_at timestamptz not null
);

-- An output or log is credited once, however often its block is read.
create unique index transfers_arrival on transfers (customer_id, crypto_network, crypto_tx_hash, crypto_tx_index)
  where type = 'CRYPTO_DEPOSIT';
-- A chain knows an address and nothing else.
create index deposit_addresses_of_chain on deposit_addresses (address);
-- Where the key of an address comes from, for a network that derives them.
alter table deposit_addresses add column derivation text;

-- Lists by profile.
create index deposit_addresses_profile on deposit_addresses (customer_id, profile_id, id);
create index fiat_deposit_instructions_profile on fiat_deposit_instructions (customer_id, profile_id, id);
-- A customer has one profile that is its default one, and is paid its rewards there.
create unique index profiles_default on profiles (customer_id) where type = 'DEFAULT';
-- The simulated chains are read for deposits as real ones are.
create index simulated_chain_time on simulated_chain (crypto_network, broadcast_at, hash);
