-- Transactions on a chain with which cold storage has paid a hot wallet, until they are posted or acknowledged. Nobody's. A row is a
-- hint alone: what it moved is asked of the nodes. `detail`: why it could not be posted yet.
create table refills (
  network text not null,
  crypto_tx_hash text not null,
  found_at timestamptz not null,
  detail text,
  primary key (network, crypto_tx_hash)
);
