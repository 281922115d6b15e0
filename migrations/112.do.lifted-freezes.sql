-- A freeze that has ended stays, with the MAC of its end: the service's role may not delete it, and cannot make the MAC. So
-- whoever has that role ends no freeze.
alter table freezes add column lifted_at timestamptz;
alter table freezes add column sealed_at timestamptz;
alter table freezes add column mac text;
alter table freezes drop constraint freezes_pkey;
alter table freezes add constraint freezes_pkey primary key (kind, subject, reason, created_at);
create unique index freezes_in_force on freezes (kind, subject, reason) where lifted_at is null;

alter table customer_freezes add column lifted_at timestamptz;
alter table customer_freezes add column sealed_at timestamptz;
alter table customer_freezes add column mac text;
alter table customer_freezes drop constraint customer_freezes_pkey;
alter table customer_freezes add constraint customer_freezes_pkey primary key (customer_id, subject, reason, created_at);
create unique index customer_freezes_in_force on customer_freezes (customer_id, subject, reason) where lifted_at is null;
