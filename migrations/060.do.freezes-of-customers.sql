-- A customer's freezes are rows of the customer, read with its balances; the others stay. So the freezes of a distributed database
-- are with their customers, and those of networks on the coordinator: a node that is gone keeps nobody from freezing the others.
create table customer_freezes (
  customer_id uuid not null,
  -- The customer's own id, or the id of one of its profiles.
  subject uuid not null,
  reason text not null,
  detail text not null,
  created_at timestamptz not null,
  constraint customer_freezes_pkey primary key (customer_id, subject, reason)
);
insert into customer_freezes (customer_id, subject, reason, detail, created_at)
select split_part(subject, '/', 1)::uuid, split_part(subject, '/', case kind when 'PROFILE' then 2 else 1 end)::uuid,
       reason, detail, created_at
from freezes
where kind in ('CUSTOMER', 'PROFILE');
delete from freezes where kind in ('CUSTOMER', 'PROFILE');

do $$
begin
  if to_regclass('pg_catalog.pg_dist_partition') is not null then
    -- It was on every node. `migrate` gives it its place.
    perform undistribute_table(logicalrelid) from pg_dist_partition where logicalrelid = 'freezes'::regclass;
  end if;
end
$$;
drop index freezes_of_customer;
alter table freezes drop constraint freezes_kind;
alter table freezes add constraint freezes_kind check (kind in ('ALL', 'NETWORK'));
-- Who placed a freeze while the node of the platform's audit log was gone; null once that is recorded there.
alter table freezes add column unrecorded jsonb;
