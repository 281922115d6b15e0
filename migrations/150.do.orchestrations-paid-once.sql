-- That an orchestration was paid, or refused, holds against whoever has the service's database role: it has a row here that this role can
-- neither change nor delete. The role can set the orchestration and its transfer back.
create table decided_orchestrations (
  customer_id uuid not null,
  orchestration_id uuid not null,
  -- As `destination_transfer_id`; null where the payout was refused.
  transfer_id uuid,
  primary key (customer_id, orchestration_id)
);

insert into decided_orchestrations (customer_id, orchestration_id, transfer_id)
select customer_id, id, destination_transfer_id
from orchestrations
where orchestration_rule_id is not null and (destination_transfer_id is not null or status <> 'PROCESSING');
