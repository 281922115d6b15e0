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
