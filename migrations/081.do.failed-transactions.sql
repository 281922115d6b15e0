-- Transactions that the chain has and that moved nothing: their withdrawals were refunded. Two within an hour that no recipient can have caused
-- (counts) stop the network; and while there are some, custody is watched more closely.
create table failed_transactions (
  network text not null,
  crypto_tx_hash text not null,
  failed_at timestamptz not null,
  counts boolean not null,
  constraint failed_transactions_pkey primary key (network, crypto_tx_hash)
);
