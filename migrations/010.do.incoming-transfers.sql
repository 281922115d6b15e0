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
  primary key (customer_id, network, crypto_tx_hash, crypto_tx_index),
  constraint incoming_transfers_state check (state in ('WAITING', 'CREDITED', 'REORGANISED')),
  constraint incoming_transfers_reason check (
    reason in ('FAILED', 'BELOW_MINIMUM', 'SECOND_NODE', 'NODES_DISAGREE') and state = 'WAITING' or reason is null),
  constraint incoming_transfers_credited check ((state = 'WAITING') = (transfer_id is null)),
  constraint incoming_transfers_amount check (amount > 0)
);
create index incoming_transfers_waiting on incoming_transfers (network, due_at) where state = 'WAITING';
create index incoming_transfers_at on incoming_transfers (customer_id, network, address, asset);
create index incoming_transfers_blocks on incoming_transfers (network, block_number) where state = 'CREDITED';
create index incoming_transfers_reorganised on incoming_transfers (network) where state = 'REORGANISED';

-- The cursors before the current one, newest first: where reading goes on after a reorganisation.
alter table network_cursors add column earlier text[] not null default '{}';
-- Until when a worker reads the network. It saves requests; that nothing is recorded twice rests on the cursor alone.
alter table network_cursors add column leased_until timestamptz;

-- Whether a simulated transaction pays an address that was given out, and has not been read as a deposit yet. Its
-- reader needs no cursor, which was a time, and missed what was written after the clock had moved. Null: not known yet.
alter table simulated_chain add column arrives boolean;
create index simulated_chain_arrives on simulated_chain (crypto_network) where arrives is not false;
