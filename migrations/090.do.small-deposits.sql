-- A deposit below the minimum is not due by time, but by the next arrival at its address or by another minimum. So a flood of
-- them costs the other deposits nothing: only the sum of a place reads them.
do $$
begin
  create index incoming_transfers_due on incoming_transfers (network, due_at)
    where state = 'WAITING' and reason is distinct from 'BELOW_MINIMUM';
  create index incoming_transfers_small on incoming_transfers (customer_id, network, address, asset) include (amount)
    where state = 'WAITING' and reason = 'BELOW_MINIMUM';
  drop index incoming_transfers_waiting;
end $$;
