-- A transfer to another customer finds its receiver by the id of a profile alone. A conversion is an internal transfer of a
-- profile to itself, whose group has the id of its debit: no other transfer's has.
create index profiles_id on profiles (id);
create index transfers_conversions on transfers (customer_id, id)
where type = 'INTERNAL_TRANSFER_DEBIT' and group_id = id;
