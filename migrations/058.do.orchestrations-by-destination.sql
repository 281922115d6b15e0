-- The history of a transfer names the orchestration that it belongs to. By its source, an orchestration is found by the time
-- of its creation, which is that of the deposit.
create index orchestrations_destination on orchestrations (customer_id, destination_transfer_id)
where destination_transfer_id is not null;
