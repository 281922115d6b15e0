-- The ledger to compare with, as textbooks and the popular SQL ledgers have it: one transaction per transfer,
-- rows locked in key order, two balances, one transfer, two entries.
create table textbook_accounts (
  id uuid primary key,
  balance numeric not null check (balance >= 0),
  version bigint not null default 0,
  updated_at timestamptz not null default now()
);

create table textbook_transfers (
  id uuid primary key,
  debit_account uuid not null references textbook_accounts,
  credit_account uuid not null references textbook_accounts,
  amount numeric not null check (amount > 0),
  ref_id text not null unique,
  created_at timestamptz not null default now()
);
create index on textbook_transfers (debit_account, created_at);

create table textbook_entries (
  transfer_id uuid not null references textbook_transfers,
  account_id uuid not null references textbook_accounts,
  amount numeric not null,
  balance_after numeric not null,
  version bigint not null,
  created_at timestamptz not null default now(),
  primary key (account_id, version)
);
create index on textbook_entries (transfer_id);

create function textbook_transfer(debit uuid, credit uuid, sent numeric, ref text) returns uuid
language plpgsql as $$
declare
  made uuid := gen_random_uuid();
  debited textbook_accounts;
  credited textbook_accounts;
begin
  perform 1 from textbook_accounts where id in (debit, credit) order by id for update;
  update textbook_accounts set balance = balance - sent, version = version + 1, updated_at = now()
    where id = debit returning * into debited;
  update textbook_accounts set balance = balance + sent, version = version + 1, updated_at = now()
    where id = credit returning * into credited;
  insert into textbook_transfers (id, debit_account, credit_account, amount, ref_id)
    values (made, debit, credit, sent, ref);
  insert into textbook_entries (transfer_id, account_id, amount, balance_after, version)
    values (made, debit, -sent, debited.balance, debited.version),
           (made, credit, sent, credited.balance, credited.version);
  return made;
end
$$;
