-- What an operator decided of a withdrawal about which its network said something that only a person can judge, and on
-- what evidence. Rows are only ever added.
create table resolved_withdrawals (
  customer_id uuid not null,
  transfer_id uuid not null,
  outcome text not null,
  evidence text not null,
  -- What the network had said.
  reason text not null,
  resolved_at timestamptz not null,
  primary key (customer_id, transfer_id),
  constraint resolved_withdrawals_outcome check (outcome in ('PAID', 'NOT_PAID'))
);
