-- A removed member keeps its row: who had access, and until when. Removing it again changes nothing.

alter table account_members add column removed_at timestamptz;
alter table account_members drop constraint account_members_identity;
create unique index account_members_identity on account_members (customer_id, account_id, identity_id)
  where removed_at is null;

alter table institution_members add column removed_at timestamptz;
alter table institution_members drop constraint institution_members_identity;
create unique index institution_members_identity on institution_members (customer_id, institution_id, identity_id)
  where removed_at is null;
