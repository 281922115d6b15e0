-- The nonce accounts of SOLANA's hot wallets, each a lane: one transaction at a time. Nobody's: a hot wallet pays for everybody.
-- `checked_nonce` is the value up to which every transaction of the account is known, `checked_signature` the newest of them,
-- `used_nonce` the value that a payment was signed with last. `acknowledged`: transactions that were signed without this
-- database, and that an operator has acknowledged.
create table solana_lanes (
  network text not null,
  nonce_account text not null,
  checked_nonce text,
  checked_signature text,
  used_nonce text,
  acknowledged text[] not null default '{}',
  primary key (network, nonce_account)
);
