-- ONE_NODE: one node says so, and it is too large for that. CONFIRMATIONS: an amount like this needs more of them.
alter table incoming_transfers
  drop constraint incoming_transfers_reason,
  add constraint incoming_transfers_reason check (
    reason in ('FAILED', 'BELOW_MINIMUM', 'SECOND_NODE', 'ONE_NODE', 'CONFIRMATIONS', 'NODES_DISAGREE', 'SCREENING', 'FORGED')
    and state = 'WAITING'
    or reason is null
  );
