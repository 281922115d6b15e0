-- Up to which block a wallet's own transactions were held against those that are kept here: what it has sent without this
-- database, as after a restore, may be what is about to be paid.
create table wallet_checks (
  network text primary key,
  checked_block text not null,
  updated_at timestamptz not null
);

-- Nonces behind the next one that are known to be withdrawals' all the same: they were made without this database.
alter table evm_nonces add column noted_nonces bigint[] not null default '{}';

-- Whose transaction a hash is. An EVM wallet counts its own, and the simulation makes no others.
create index broadcasts_crypto_tx_hash on broadcasts (network, crypto_tx_hash)
  where network in ('BITCOIN', 'LITECOIN', 'BITCOIN_CASH');
