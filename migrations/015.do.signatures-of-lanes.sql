-- The signatures of the last payment on a nonce account: what it has left there is known without the account's other transactions.
alter table solana_lanes add column used_by text[] not null default '{}';
