-- What sweeping costs is in the ledger: an entry's transfer_id may be a sweep's id, under an event of its own.
alter table entries drop constraint entries_event;
alter table entries add constraint entries_event check (event in ('CREATED', 'SETTLED', 'REFUNDED', 'SWEPT'));
alter table evm_sweeps add constraint evm_sweeps_cost check ((ended_at is null) = (network_fee is null));

-- What is in custody on a network, and what its fees have cost, summed over all customers without reading the
-- ledger. Withdrawals post neither when they are made, so the index costs their write path nothing but its condition.
create index entries_on_networks on entries (account, asset) include (amount)
  where account like 'custody:%' or account like 'network_fees:%';
