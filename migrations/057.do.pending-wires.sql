-- Wires that are PENDING before they are credited or sent back are in seen_deposits, as deposits over networks are: network WIRE,
-- with the bank's reference as the hash and the memo as the address. A reference is PENDING once.
create unique index seen_deposits_wire on seen_deposits (customer_id, crypto_tx_hash)
  where network = 'WIRE' and state = 'PENDING';

-- An incoming wire that was sent back to its sender is recorded for good, so that its reference is never credited later.
alter table bank_wires drop constraint bank_wires_kind;
alter table bank_wires add constraint bank_wires_kind check (
  (direction = 'OUT' and kind = 'SENT' and memo_id is null and returned_transfer_id is null)
  or (direction = 'IN' and kind in ('DEPOSIT', 'SENT_BACK') and memo_id is not null and returned_transfer_id is null)
  or (direction = 'IN' and kind = 'RETURN' and memo_id is null and returned_transfer_id is not null));
