-- ONE_NODE: one node says so, and it is too large for that. CONFIRMATIONS: an amount like this needs more of them. HAS_TOKENS: the
-- hot wallet of BITCOIN_CASH cannot spend a coin with tokens on it, and a person returns it.
do $$
begin
  alter table incoming_transfers drop constraint incoming_transfers_reason;
  alter table incoming_transfers add constraint incoming_transfers_reason check (
    reason in ('FAILED', 'BELOW_MINIMUM', 'SECOND_NODE', 'ONE_NODE', 'CONFIRMATIONS', 'NODES_DISAGREE', 'SCREENING', 'FORGED',
               'HAS_TOKENS')
    and state = 'WAITING'
    or reason is null
  );
end
$$;
