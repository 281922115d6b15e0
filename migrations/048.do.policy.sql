-- The rules of each customer for payments, one row for each version: the newest one counts. A row never changes. Its MAC,
-- by a key that is not in the database, covers all of it.
create table policies (
  customer_id uuid not null references customers,
  version integer not null,
  document jsonb not null,
  mac text not null,
  created_at timestamptz not null,
  constraint policies_pkey primary key (customer_id, version),
  constraint policies_version check (version > 0)
);

-- What each rule with a limit has counted, for each subject: a profile, an identity, a destination or the customer. Every
-- batch of payments rewrites the rows that it counts in, so each page has room for new versions of its rows.
create table policy_windows (
  customer_id uuid not null,
  rule_id text not null,
  -- The asset of the amounts; USD for values in USD.
  asset text not null,
  subject text not null,
  -- Pairs of the time of the latest payment of a bucket, in microseconds since 1970, and the bucket's sum.
  buckets jsonb not null,
  -- When nothing in it counts any more.
  ends_at timestamptz not null,
  constraint policy_windows_pkey primary key (customer_id, rule_id, asset, subject)
) with (fillfactor = 50);
-- For the deletion of old rows (src/retention).
create index policy_windows_ends_at on policy_windows (ends_at);
