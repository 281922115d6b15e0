-- A sweep whose nonce another transaction took can never be mined. It ends as VOID and costs nothing; lost_since is when
-- the network first said so, because one answer of a node that lags is not enough.
alter table evm_sweeps drop constraint evm_sweeps_state;
alter table evm_sweeps add constraint evm_sweeps_state
  check (state in ('SIGNED', 'BROADCAST', 'DONE', 'FAILED', 'VOID'));
alter table evm_sweeps drop constraint evm_sweeps_ended;
alter table evm_sweeps add constraint evm_sweeps_ended
  check ((state in ('DONE', 'FAILED', 'VOID')) = (ended_at is not null));
alter table evm_sweeps add column lost_since timestamptz;
