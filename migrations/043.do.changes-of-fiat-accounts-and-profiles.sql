-- A fiat account's metadata can change, and it can be deleted: the row stays for the wires that were sent to it.
-- Null where it was never changed.
alter table fiat_accounts add column updated_at timestamptz;
alter table fiat_accounts add column deleted_at timestamptz;

-- A deactivated profile takes no new money by its customer's own doing.
alter table profiles add column deactivated_at timestamptz;
create index profiles_deactivated on profiles (customer_id) where deactivated_at is not null;
