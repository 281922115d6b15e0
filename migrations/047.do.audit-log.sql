-- The audit log: who changed what. Nothing is written for each payment: a row has all changes of one actor and one action
-- in one transaction. docs/reference/audit-chain.md says what the hashes cover.
create table audit_log (
  customer_id uuid not null,
  id uuid not null,
  -- The link of the chain that covers this row.
  position bigint not null,
  created_at timestamptz not null,
  actor_type text not null,
  actor_id text not null,
  action text not null,
  subject_type text not null,
  -- The record that was changed, or those: transfers and orchestrations by the batch.
  subject_id text,
  subject_ids uuid[],
  -- One for each subject, or one for all of them.
  request_ids uuid[],
  ips text[],
  outcome text not null,
  -- For changes that move money: the event of the subjects' entries, which the chain covers, too.
  ledger_event text,
  -- Of configuration: before and after. Its text is hashed, so it is kept as it was written.
  changes json,
  constraint audit_log_pkey primary key (customer_id, id),
  constraint audit_log_actor_type check (actor_type in ('API_CLIENT', 'OPERATOR', 'WORKER', 'COMMAND_LINE')),
  constraint audit_log_outcome check (outcome in ('DONE', 'REFUSED')),
  constraint audit_log_subject check ((subject_id is null) <> (subject_ids is null))
)
-- A batch's ids have some kilobytes. They stay in the row: compressing them costs more than writing them.
with (toast_tuple_target = 8160);
create index audit_log_position on audit_log (customer_id, position);
create index audit_log_actor on audit_log (customer_id, actor_id, id);
create index audit_log_actor_action on audit_log (customer_id, actor_id, action, id);
create index audit_log_actor_type on audit_log (customer_id, actor_type, id);
create index audit_log_action on audit_log (customer_id, action, id);
-- No payment writes these. The rows of transfers and orchestrations are found by the moments of their changes.
create index audit_log_subject on audit_log (customer_id, subject_id, id) where subject_id is not null;
create index audit_log_subject_type on audit_log (customer_id, subject_type, id) where subject_id is not null;
create index audit_log_refused on audit_log (customer_id, id) where outcome = 'REFUSED';

-- The chain of a customer, or of the platform: one link for each transaction that writes to its audit log.
create table audit_links (
  customer_id uuid not null,
  position bigint not null,
  created_at timestamptz not null,
  -- The digests of the link's rows of audit_log, in the order of their ids, 32 bytes each.
  digests bytea not null,
  -- SHA-256 of the hash of the link before, and of digests.
  hash bytea not null,
  constraint audit_links_pkey primary key (customer_id, position),
  constraint audit_links_digests check (length(digests) > 0 and length(digests) % 32 = 0),
  constraint audit_links_hash check (length(hash) = 32)
);

-- The end of each chain. Its row's lock orders the links.
create table audit_heads (
  customer_id uuid not null,
  position bigint not null,
  hash bytea not null,
  -- Every entry from then on has its row in the audit log.
  covered_from timestamptz not null,
  constraint audit_heads_pkey primary key (customer_id)
)
-- Room for new versions of the row: each link makes one.
with (fillfactor = 20);
-- Processes of the previous version write no audit log. They have an hour to stop.
insert into audit_heads (customer_id, position, hash, covered_from)
select id, 0,
       sha256(convert_to(format('bursar audit chain %s %s', id, (extract(epoch from covered_from) * 1000000)::bigint), 'UTF8')),
       covered_from
from (select id from customers union all select '00000000-0000-0000-0000-000000000000') owners,
     (select clock_timestamp() + case when exists (select from transfers) then interval '1 hour' else interval '0' end
        as covered_from) moment;
