-- Which trace of OpenTelemetry a transfer belongs to: only of requests that are sampled (docs/guides/operating.md). Rows are
-- deleted after 30 days. No decision rests on them.
create table traces (
  customer_id uuid not null,
  transfer_id uuid not null,
  created_at timestamptz not null,
  traceparent text not null,
  primary key (customer_id, transfer_id)
);
create index traces_created on traces (created_at);
