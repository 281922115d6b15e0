-- Days whose books are closed (docs/decisions/ledger.md, "A day is closed"), in UTC. From the moment on that a row is here, nothing
-- is dated before `until`: the clock of the ledger's transactions is never before it.
create table closed_days (
  day date primary key,
  until timestamptz not null,
  -- SHA-256 of the day's rows of day_sums, also in the audit log; null until they are kept.
  digest text,
  closed_at timestamptz,
  constraint closed_days_closed check ((digest is null) = (closed_at is null))
);

-- The sums of an account in an asset from the beginning of the ledger to the end of a closed day on which it moved. Reports
-- add the entries after the last closed day, and so cost what that time costs.
create table day_sums (
  customer_id uuid not null,
  day date not null,
  account text not null,
  asset text not null,
  debit numeric not null,
  credit numeric not null,
  primary key (customer_id, account, asset, day)
);

-- Entries are only ever added, so that the pages of the table follow their time. The index costs an insertion nearly nothing.
create index entries_created_at on entries using brin (created_at) with (autosummarize = on);
