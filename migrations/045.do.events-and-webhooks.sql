-- Events: one for each change of a status, written in the transaction of the change. Partitioned by id, whose first
-- bits are the time, so that old events are dropped with their partition. The default partition takes what no other does:
-- a missing partition must never stop a payment.
create table events (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  type text not null,
  -- The record whose status changed.
  object_id uuid not null,
  -- Null where the object is read from the record: of transfers and orchestrations, it does not change any more.
  object jsonb,
  is_test boolean not null,
  constraint events_pkey primary key (customer_id, id)
) partition by range (id);
-- An index of every event costs a tenth of all payments (measured: 11 %). The events of transfers and orchestrations are
-- found by the times of their records instead: an id begins with the moment of its change.
create index events_object on events (customer_id, object_id, id) where object is not null;
-- The types that no payment writes by the million. Without it, a list of a rare type reads all events.
create index events_type on events (customer_id, type, id)
where type not in ('transfer.crypto_withdrawal.pending', 'transfer.crypto_withdrawal.completed',
                   'transfer.internal_transfer_debit.completed', 'transfer.internal_transfer_credit.completed');
create table events_default partition of events default;

-- From when on each change has its event: the changes of before have none, and of dropped partitions they are gone.
create table event_history (
  id smallint not null,
  complete_from timestamptz not null,
  constraint event_history_pkey primary key (id),
  constraint event_history_one_row check (id = 1)
);
-- Processes of the previous version write no events. They have an hour to stop.
insert into event_history (id, complete_from)
select 1, clock_timestamp() + case when exists (select from transfers) then interval '1 hour' else interval '0' end;

-- The endpoints of customers.
create table webhooks (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  name text not null,
  url text not null,
  event_types text[] not null,
  payload text not null,
  -- How a delivery authenticates, without its secret.
  auth jsonb not null,
  profile_ids uuid[],
  rate_limit smallint not null,
  status text not null,
  -- The signing secrets and the secret of auth, encrypted with a key derived from the master key.
  encrypted_secrets text not null,
  -- The previous signing secret signs, too, until then.
  previous_secret_until timestamptz,
  -- Every event up to this one has its delivery, if it needs one. Later events may have one already.
  cursor_id uuid not null,
  -- Since the first failure after the last success.
  failing_since timestamptz,
  disabled_reason text,
  -- The rate limit, over all processes: when the next delivery may start, and until when the rate is halved.
  next_at timestamptz not null,
  slow_until timestamptz,
  constraint webhooks_pkey primary key (customer_id, id),
  constraint webhooks_name unique (customer_id, name),
  constraint webhooks_payload check (payload in ('THIN', 'FULL')),
  constraint webhooks_status check (status in ('ACTIVE', 'DISABLED')),
  constraint webhooks_rate_limit check (rate_limit between 1 and 100)
);
create index webhooks_active on webhooks (customer_id, id) where status = 'ACTIVE';

-- A delivery of an event to an endpoint. Partitioned like the events.
create table webhook_deliveries (
  customer_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  object_id uuid not null,
  status text not null,
  created_at timestamptz not null,
  -- The attempts made in all, and the number since it was sent or resent, which gives the delay to the next.
  attempts smallint not null,
  attempts_of_round smallint not null,
  -- When the next attempt is due; null once there is none.
  due_at timestamptz,
  -- A worker makes an attempt. After this time, another worker may.
  leased_until timestamptz,
  ended_at timestamptz,
  constraint webhook_deliveries_pkey primary key (customer_id, webhook_id, event_id),
  constraint webhook_deliveries_status check (status in ('PENDING', 'DELIVERED', 'FAILED')),
  constraint webhook_deliveries_due check ((status = 'PENDING') = (due_at is not null))
) partition by range (event_id);
create index webhook_deliveries_due_at on webhook_deliveries (customer_id, webhook_id, due_at) where status = 'PENDING';
-- An event waits while an earlier one of its record waits for its first attempt.
create index webhook_deliveries_first_attempt on webhook_deliveries (customer_id, webhook_id, object_id, event_id)
  where status = 'PENDING' and attempts = 0;
create index webhook_deliveries_undelivered on webhook_deliveries (customer_id, event_id) where status <> 'DELIVERED';
create table webhook_deliveries_default partition of webhook_deliveries default;

-- The attempts of deliveries. The first id of their time partitions them, like the events.
create table webhook_attempts (
  customer_id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  attempt smallint not null,
  -- Absent where no answer came.
  status_code smallint,
  error text,
  duration_ms integer not null,
  response text,
  constraint webhook_attempts_pkey primary key (customer_id, webhook_id, event_id, id)
) partition by range (id);
create table webhook_attempts_default partition of webhook_attempts default;
