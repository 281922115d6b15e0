-- Deposits that are in a block without enough confirmations are shown as PENDING transfers, which have no entries.

-- A deposit that was seen and is gone is FAILED. When the same output is mined again, it is another transfer.
create unique index transfers_arrived on transfers (customer_id, crypto_network, crypto_tx_hash, crypto_tx_index)
  where type = 'CRYPTO_DEPOSIT' and status <> 'FAILED';
drop index transfers_arrival;
alter index transfers_arrived rename to transfers_arrival;

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
  constraint seen_deposits_pkey primary key (customer_id, transfer_id),
  constraint seen_deposits_state check (state in ('PENDING', 'COMPLETED', 'FAILED')),
  constraint seen_deposits_ended check ((state = 'PENDING') = (ended_at is null))
);
create index seen_deposits_output on seen_deposits (customer_id, network, crypto_tx_hash, crypto_tx_index);
create index seen_deposits_pending on seen_deposits (network, block_number) where state = 'PENDING';
create index seen_deposits_failed on seen_deposits (network, ended_at) where state = 'FAILED';
