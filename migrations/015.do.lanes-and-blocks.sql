-- SOLANA (docs/decisions/withdrawals.md, deposits.md): the signatures of the last payment on a nonce account, whose block tells what
-- it has left there. Deposits are found in blocks, and no account of an address has a place of its own to read on from.
do $$
begin
  alter table solana_lanes add column used_by text[] not null default '{}';
  alter table address_holdings drop column account, drop column signature;
end
$$;
