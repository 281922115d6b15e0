-- A withdrawal is ASKED once what the signer process is to sign is stored (ARCHITECTURE, "Worker").
alter table outgoing_transfers
  drop constraint outgoing_transfers_state,
  add constraint outgoing_transfers_state check (state in ('HELD', 'ASKED', 'SIGNED', 'BROADCAST', 'DONE'));
