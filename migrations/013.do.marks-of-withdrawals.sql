-- What was decided of a withdrawal once and for good. CANCELLED: before it was signed. TAKEN: a wire, by an operator who may have
-- sent it, with the SHA-256 of its order. Rows are only ever added.
do $$
begin
  create table if not exists withdrawal_marks (
    customer_id uuid not null,
    transfer_id uuid not null,
    mark text not null,
    order_hash text,
    marked_at timestamptz not null,
    primary key (customer_id, transfer_id, mark),
    constraint withdrawal_marks_mark check (mark in ('CANCELLED', 'TAKEN'))
  );

  insert into withdrawal_marks
  select customer_id, id, 'CANCELLED', null, updated_at
  from transfers
  where status = 'FAILED' and secondary_status ->> 'detail' in (
    'the client cancelled it before it was signed', 'the operator cancelled it before it was signed')
  on conflict do nothing;

  insert into withdrawal_marks
  select l.customer_id, b.transfer_id, 'TAKEN', coalesce(l.changes #>> '{after,order}', b.crypto_tx_hash), l.created_at
  from audit_log l
  join outgoing_transfers b on b.customer_id = l.customer_id and b.transfer_id::text = l.subject_id
  where l.action = 'transfer.take'
  on conflict do nothing;
end
$$;
