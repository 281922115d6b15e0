-- A transaction that pays many withdrawals, of any customers: its bytes are kept once, and the broadcasts name its hash.
-- WITHDRAWALS: signed here. MARKED: an operator said which withdrawals it pays; until all its payments are accounted for,
-- it counts as unknown.
create table network_transactions (
  network text not null,
  crypto_tx_hash text not null,
  raw_transaction bytea not null,
  kind text not null constraint network_transactions_kind check (kind in ('WITHDRAWALS', 'MARKED')),
  payments integer not null,
  signed_at timestamptz not null,
  primary key (network, crypto_tx_hash)
);

-- Which output pays the withdrawal, where its transaction pays several. Its bytes are in network_transactions then.
alter table broadcasts add column crypto_tx_index text;
alter table broadcasts drop constraint broadcasts_signed;
alter table broadcasts add constraint broadcasts_signed
  check (state in ('HELD', 'DONE') or crypto_tx_hash is not null);
alter table replaced_transactions alter column raw_transaction drop not null;
