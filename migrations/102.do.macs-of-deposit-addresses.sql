-- A deposit address carries a MAC with a key that is not in the database, so that write access to the database is not enough to have
-- what somebody pays to an address of their own credited (src/records/row-macs.ts).
alter table deposit_addresses add column sealed_at timestamptz;
alter table deposit_addresses add column mac text;

-- FORGED: the deposit address has no right MAC.
alter table incoming_transfers drop constraint incoming_transfers_reason;
alter table incoming_transfers add constraint incoming_transfers_reason check (
  reason in ('FAILED', 'BELOW_MINIMUM', 'SECOND_NODE', 'NODES_DISAGREE', 'SCREENING', 'FORGED') and state = 'WAITING'
  or reason is null);
