-- Wires as the bank's statement of the platform's account shows them, recorded by an operator: a deposit that arrived, a
-- withdrawal that was sent, a sent wire that came back. The bank's reference is a wire's identity, whoever's money it is, so
-- that each is recorded once; no customer owns these rows. Rows are only ever added.
create table bank_wires (
  asset text not null,
  direction text not null,
  bank_reference text not null,
  kind text not null,
  amount numeric not null,
  -- The transfer that the wire made or completed.
  transfer_id uuid not null,
  -- Of a deposit: the memo that the wire carried.
  memo_id text,
  -- Of a return: the withdrawal that came back.
  returned_transfer_id uuid,
  recorded_by text not null,
  recorded_at timestamptz not null,
  primary key (asset, direction, bank_reference),
  constraint bank_wires_transfer unique (transfer_id),
  constraint bank_wires_returned unique (returned_transfer_id),
  constraint bank_wires_amount check (amount > 0),
  constraint bank_wires_kind check (
    (direction = 'OUT' and kind = 'SENT' and memo_id is null and returned_transfer_id is null)
    or (direction = 'IN' and kind = 'DEPOSIT' and memo_id is not null and returned_transfer_id is null)
    or (direction = 'IN' and kind = 'RETURN' and memo_id is null and returned_transfer_id is not null))
);
