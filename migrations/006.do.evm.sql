-- What the EVM networks need: nonces of the hot wallets, and the sweeping of deposit addresses.

-- The next nonce of each hot wallet. Allotted in the transaction that keeps what is signed with it. Nobody's: a hot
-- wallet pays for everybody.
create table evm_nonces (
  network text not null,
  address text not null,
  next_nonce bigint not null,
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
create index evm_holdings_stale on evm_holdings (network, stale_at) where stale_at is not null;
create index evm_holdings_held on evm_holdings (network, asset, balance) where balance > 0;

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
  primary key (customer_id, id),
  constraint evm_sweeps_kind check (kind in ('TOP_UP', 'SWEEP')),
  constraint evm_sweeps_state check (state in ('SIGNED', 'BROADCAST', 'DONE', 'FAILED')),
  constraint evm_sweeps_ended check ((state in ('DONE', 'FAILED')) = (ended_at is not null)),
  constraint evm_sweeps_amount check (amount > 0)
);
-- One at a time at an address: the next one begins with what the last one has left.
create unique index evm_sweeps_under_way on evm_sweeps (customer_id, network, address)
  where state in ('SIGNED', 'BROADCAST');
create index evm_sweeps_of_network on evm_sweeps (network) where state in ('SIGNED', 'BROADCAST');
create index evm_sweeps_of_address on evm_sweeps (customer_id, network, address);
