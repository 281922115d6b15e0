-- Deposits over SOLANA (docs/decisions/deposits.md). A holding there has its account on the chain: the address itself, or its
-- associated account of a token. `signature` is the newest transaction of that account that was read, and `balance` is what the
-- account held after it.
do $$
begin
  alter table evm_holdings add column account text, add column signature text;
  create index evm_holdings_accounts on evm_holdings (network, account) where account is not null;

  -- The series of deposit addresses that workers derive for processes without the deposit key: the first number of their paths.
  -- Nobody's: an address has no owner before its record.
  create table address_series (
    network text not null,
    series bigint not null,
    began_at timestamptz not null,
    primary key (network, series)
  );

  -- What such processes ask for, under ids that they have drawn. `signature` is that of the key that vouches for the answers. Rows
  -- are deleted once they are read, at the latest after an hour.
  create table asked_addresses (
    network text not null,
    id uuid not null,
    address text,
    derivation text,
    signature text,
    asked_at timestamptz not null,
    primary key (network, id)
  );
end
$$;
