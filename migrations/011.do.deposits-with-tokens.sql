-- A coin of BITCOIN_CASH with tokens on it is not credited: the hot wallet cannot spend it, and a person returns it.
do $$
begin
  alter table incoming_transfers drop constraint incoming_transfers_reason;
  alter table incoming_transfers add constraint incoming_transfers_reason check (
    reason in ('FAILED', 'BELOW_MINIMUM', 'SECOND_NODE', 'NODES_DISAGREE', 'SCREENING', 'FORGED', 'HAS_TOKENS')
      and state = 'WAITING'
    or reason is null
  );
end
$$;
