-- Transactions of the hot wallet that were made outside of Bursar, and that an operator has said are the platform's own.
-- The entries of each are in the platform's ledger, under its id.
create table acknowledged_transactions (
  network text not null,
  crypto_tx_hash text not null,
  id uuid not null,
  acknowledged_at timestamptz not null,
  primary key (network, crypto_tx_hash)
);
