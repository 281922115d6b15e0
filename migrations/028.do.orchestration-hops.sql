-- How many orchestrations the deposit that started this one had come through, each paying the address that starts the next.
alter table orchestrations add column hops smallint not null default 0;
-- Which withdrawal a deposit is, on every network.
drop index broadcasts_crypto_tx_hash;
create index broadcasts_crypto_tx_hash on broadcasts (network, crypto_tx_hash) where crypto_tx_hash is not null;
create index replaced_transactions_crypto_tx_hash on replaced_transactions (crypto_tx_hash);
