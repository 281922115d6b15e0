-- Questions about payments to the operator's screening endpoint, and their answers. A row is made when a payment must
-- wait for one.
create table screenings (
  customer_id uuid not null,
  kind text not null,
  -- Of a withdrawal the transfer's id; of a deposit <network>/<hash>/<index>.
  subject text not null,
  -- The id of the question: the same for each time that it is asked.
  id uuid not null,
  created_at timestamptz not null,
  state text not null,
  attempts integer not null,
  -- When it is asked next; while it is asked, when the lease ends.
  due_at timestamptz,
  -- What was wrong with the last answer.
  detail text,
  decided_at timestamptz,
  -- Of an ALLOW: over the payment's details and decided_at. The signer checks it.
  mac text,
  constraint screenings_pkey primary key (customer_id, kind, subject),
  constraint screenings_kind check (kind in ('WITHDRAWAL', 'DEPOSIT')),
  constraint screenings_state check (state in ('WAITING', 'ALLOWED', 'REJECTED', 'ENDED')),
  constraint screenings_due check ((state = 'WAITING') = (due_at is not null)),
  constraint screenings_allowed check (state <> 'ALLOWED' or mac is not null and decided_at is not null)
);
create index screenings_due on screenings (due_at) where state = 'WAITING';
create index screenings_rejected on screenings (created_at) where state = 'REJECTED';

alter table incoming_transfers drop constraint incoming_transfers_reason;
alter table incoming_transfers add constraint incoming_transfers_reason check (
  reason in ('FAILED', 'BELOW_MINIMUM', 'SECOND_NODE', 'NODES_DISAGREE', 'SCREENING') and state = 'WAITING'
  or reason is null);

-- When the cooling time of an address ends, as it was when the address was created, and when its status changed.
alter table crypto_destination_addresses add column cooling_until timestamptz;
alter table crypto_destination_addresses add column approved_at timestamptz;
alter table crypto_destination_addresses add column rejected_at timestamptz;
update crypto_destination_addresses set approved_at = created_at where status = 'APPROVED';
alter table crypto_destination_addresses add constraint crypto_destination_addresses_approved
  check (status <> 'APPROVED' or approved_at is not null);
alter table crypto_destination_addresses add constraint crypto_destination_addresses_rejected
  check ((status = 'REJECTED') = (rejected_at is not null));
create index crypto_destination_addresses_cooling on crypto_destination_addresses (cooling_until)
  where status = 'PENDING';
