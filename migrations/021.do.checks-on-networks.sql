-- The hash of a network's first block, as its node said it at first: a node that says another one is on another chain,
-- whatever chain id it tells.
create table network_genesis (
  network text primary key,
  block_hash text not null,
  recorded_at timestamptz not null
);

-- From when on a network's fees are compared with the fees taken, where that is less than a day: they stopped it then, and what
-- was spent before is not held against it again.
create table network_fee_checks (
  network text primary key,
  counted_from timestamptz not null
);
-- What a day's transactions have cost. Withdrawals post that when they end, and so the index costs their acceptance nothing.
create index entries_network_fees on entries (account, created_at) where account like 'network_fees:%';

-- Where a sweep was made that is still to be held against what came in at its address: once deposits are read up to there.
alter table evm_sweeps add column audit_block bigint;
create index evm_sweeps_audit on evm_sweeps (network, audit_block) where audit_block is not null;

-- UNATTRIBUTED: it was swept from a deposit address, and no deposit was found for it.
alter table incoming_transfers drop constraint incoming_transfers_state;
alter table incoming_transfers add constraint incoming_transfers_state
  check (state in ('WAITING', 'CREDITED', 'REORGANISED', 'UNATTRIBUTED'));
alter table incoming_transfers drop constraint incoming_transfers_credited;
alter table incoming_transfers add constraint incoming_transfers_credited
  check ((state in ('WAITING', 'UNATTRIBUTED')) = (transfer_id is null));
create index incoming_transfers_unattributed on incoming_transfers (network) where state = 'UNATTRIBUTED';
-- Deposits from before this table, and those that an operator credited: so that it has all that came in at an address.
insert into incoming_transfers (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, state,
                                cleared, transfer_id, attempts, found_at, due_at)
select customer_id, crypto_network, crypto_tx_hash, crypto_tx_index, destination_address, asset, amount, 'CREDITED',
       true, id, 0, created_at, created_at
from transfers
where type = 'CRYPTO_DEPOSIT' and crypto_network is not null and crypto_tx_hash is not null
  and crypto_tx_index is not null and destination_address is not null
on conflict (customer_id, network, crypto_tx_hash, crypto_tx_index) do nothing;
