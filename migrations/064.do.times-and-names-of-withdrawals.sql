-- The history of a transfer tells when each transaction was signed and first accepted by its network, and how many
-- confirmations it has. They are written by the statements that record each step anyway.
alter table outgoing_transfers
  add column signed_at timestamptz,
  add column broadcast_at timestamptz,
  add column confirmations integer,
  add column confirmations_needed integer;
alter table replaced_transactions
  add column signed_at timestamptz,
  add column broadcast_at timestamptz;

-- The search finds a withdrawal by its destination address and by its memo. The worker that begins a withdrawal writes these
-- names, so that taking a withdrawal costs no further index.
create table withdrawal_names (
  customer_id uuid not null,
  -- An address in its canonical spelling, or a memo as it was given.
  name text not null,
  transfer_id uuid not null,
  found_by text not null constraint withdrawal_names_found_by check (found_by in ('ADDRESS', 'MEMO')),
  primary key (customer_id, name, transfer_id, found_by)
);
insert into withdrawal_names (customer_id, name, transfer_id, found_by)
select customer_id, destination_address, id, 'ADDRESS'
from transfers
where direction = 'DEBIT' and destination_address is not null;
insert into withdrawal_names (customer_id, name, transfer_id, found_by)
select customer_id, memo, id, 'MEMO'
from transfers
where direction = 'DEBIT' and memo is not null;
