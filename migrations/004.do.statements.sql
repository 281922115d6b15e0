-- The annual rate of the USDG reward, from a day on. What is set later for the same day counts from then on; nothing
-- is changed or removed, so that every statement can be derived again.
create table reward_rates (
  effective_from date not null,
  set_at timestamptz not null,
  rate numeric not null constraint reward_rates_rate check (rate >= 0 and rate <= 1),
  primary key (effective_from, set_at)
);

-- Monthly statements (spec 2.4). Once GENERATED, a statement's amounts do not change.
create table statements (
  customer_id uuid not null references customers,
  id uuid not null,
  ref_id text not null,
  type text not null,
  product text not null,
  status text not null constraint statements_status check (
    status in ('STATEMENT_STATUS_INITIATED', 'STATEMENT_STATUS_GENERATED', 'STATEMENT_STATUS_PAID')
  ),
  asset text not null,
  total_amount_owed numeric,
  amount_paid numeric,
  period_start timestamptz not null,
  period_end timestamptz not null,
  transfer_id uuid, -- what it was paid with; none where nothing was owed
  generated_at timestamptz,
  paid_at timestamptz,
  created_at timestamptz not null,
  primary key (customer_id, id),
  constraint statements_ref_id unique (customer_id, ref_id),
  constraint statements_generated check (
    (status = 'STATEMENT_STATUS_INITIATED') = (generated_at is null)
    and (generated_at is null) = (total_amount_owed is null)
    and (generated_at is null) = (amount_paid is null)
  ),
  constraint statements_paid check (
    (status = 'STATEMENT_STATUS_PAID') = (paid_at is not null)
    and (paid_at is null or amount_paid = total_amount_owed)
  )
);
create index statements_period on statements (customer_id, period_start, id);
-- The command line knows a statement id and nothing else.
create index statements_id on statements (id);
create index statements_unpaid on statements (customer_id, id) where status = 'STATEMENT_STATUS_GENERATED';
