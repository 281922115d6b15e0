-- Limits of single customers that differ from the deployment's: an operator sets them, and every process reads all of them. 0: no limit.
create table customer_limits (
  customer_id uuid not null,
  name text not null,
  value bigint not null,
  updated_at timestamptz not null,
  constraint customer_limits_pkey primary key (customer_id, name),
  constraint customer_limits_value check (value >= 0)
);
