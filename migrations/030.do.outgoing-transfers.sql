-- Transfers out of the platform, with how far each one is: the counterpart of incoming_transfers.
alter table broadcasts rename to outgoing_transfers;
alter table outgoing_transfers rename constraint broadcasts_pkey to outgoing_transfers_pkey;
alter table outgoing_transfers rename constraint broadcasts_signed to outgoing_transfers_signed;
alter table outgoing_transfers rename constraint broadcasts_state to outgoing_transfers_state;
alter index broadcasts_crypto_tx_hash rename to outgoing_transfers_crypto_tx_hash;
alter index broadcasts_due rename to outgoing_transfers_due;
alter index broadcasts_ended rename to outgoing_transfers_ended;

-- The nonces above the next one whose transactions an operator has acknowledged.
alter table evm_nonces rename column noted_nonces to acknowledged_nonces;

-- Why a withdrawal waits: a code for programs (src/networks/waiting.ts), and a sentence for people. Workers write both at their
-- next look, so that a sentence which is not known here waits as OTHER for some seconds only.
alter table outgoing_transfers rename column waiting_reason to waiting_detail;
alter table outgoing_transfers add column waiting_code text;
update outgoing_transfers
set waiting_code = case
  when waiting_detail ~ '^the hot wallet has .*(, the withdrawal needs | and the fee are needed)' then 'HOT_WALLET_SHORT'
  when starts_with(waiting_detail, 'the hot wallet has ') then 'KEPT_FOR_OLDER'
  when starts_with(waiting_detail, 'customers'' withdrawals come first') then 'KEPT_FOR_CUSTOMERS'
  when starts_with(waiting_detail, 'not what was accepted') then 'NOT_ACCEPTED'
  when starts_with(waiting_detail, 'an earlier withdrawal') then 'BEHIND_ANOTHER'
  when starts_with(waiting_detail, 'the wallet has ') then 'UNKNOWN_SPENDS'
  when starts_with(waiting_detail, 'the network''s fee') then 'FEE_ABOVE_CEILING'
  when starts_with(waiting_detail, 'gas costs') then 'FEE_ABOVE_CEILING'
  when starts_with(waiting_detail, 'the node is catching up') then 'NODE_BEHIND'
  when starts_with(waiting_detail, 'the node does not know block') then 'NODE_BEHIND'
  when starts_with(waiting_detail, 'the node does not take') then 'NODE_REFUSED'
  when starts_with(waiting_detail, 'the node cannot estimate') then 'NODE_REFUSED'
  when starts_with(waiting_detail, 'the node') then 'NODE_DOWN'
  when starts_with(waiting_detail, 'the chain does not have ') then 'TAKEN_BACK'
  when waiting_detail ~ '^(everything|network|customer|profile) .*(is frozen|is disabled)' then 'FROZEN'
  when starts_with(waiting_detail, 'account ') or starts_with(waiting_detail, 'identity ') then 'NOT_APPROVED'
  when starts_with(waiting_detail, 'an operator is to send it') then 'WIRE_TO_TAKE'
  when starts_with(waiting_detail, 'an operator has taken it') then 'WIRE_TAKEN'
  else 'OTHER'
end
where waiting_detail is not null;
alter table outgoing_transfers add constraint outgoing_transfers_waiting
  check ((waiting_code is null) = (waiting_detail is null));
