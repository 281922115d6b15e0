-- From when on the costs of a customer's failed withdrawals are counted, where that is less than a day: they froze the customer
-- then. What was spent before is held neither against it again nor against the network.
create table customer_fee_checks (
  customer_id uuid not null,
  network text not null,
  counted_from timestamptz not null,
  primary key (customer_id, network)
);

-- Whether a transaction is a sweep's is asked while nothing can be signed.
create index evm_sweeps_hash on evm_sweeps (network, crypto_tx_hash);
create index evm_sweeps_replaced on evm_sweeps using gin (replaced) where replaced <> '{}';
