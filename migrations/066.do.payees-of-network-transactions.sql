-- What signing over a real network must know of all customers is in this table, so that it asks no other node of a cluster:
-- whom a transaction pays, and whether all of that has ended.
-- In a block, because a distributed database takes one statement at a time, with one change of a table.
do $$
begin
  alter table network_transactions
    add column customer_ids uuid[] not null default '{}',
    add column transfer_ids uuid[] not null default '{}',
    add column ended_at timestamptz;
  alter table network_transactions drop constraint network_transactions_kind;
  alter table network_transactions
    add constraint network_transactions_kind check (kind in ('WITHDRAWALS', 'MARKED', 'TOP_UP'));
  alter table network_transactions
    add constraint network_transactions_payees check (cardinality(customer_ids) = cardinality(transfer_ids));

  -- Transactions of simulated networks are JSON. Of EVM networks, those that have ended are of no use here.
  create table kept_before as
  select network, crypto_tx_hash, kind,
         (array_agg(raw_transaction) filter (where raw_transaction is not null))[1] as raw_transaction,
         array_agg(customer_id) as customer_ids, array_agg(transfer_id) as transfer_ids,
         bool_and(ended) as ended, min(signed_at) as signed_at
  from (
    select b.network, b.crypto_tx_hash, 'WITHDRAWALS' as kind, b.raw_transaction, b.customer_id, b.transfer_id,
           b.state = 'DONE' as ended, coalesce(b.signed_at, b.created_at) as signed_at
    from outgoing_transfers b
    where b.crypto_tx_hash is not null and b.network <> 'WIRE'
      and (b.state <> 'DONE' or b.network in ('BITCOIN', 'LITECOIN', 'BITCOIN_CASH'))
    union all
    select b.network, r.crypto_tx_hash, 'WITHDRAWALS', r.raw_transaction, b.customer_id, b.transfer_id,
           b.state = 'DONE', coalesce(r.signed_at, b.created_at)
    from replaced_transactions r
    join outgoing_transfers b on b.customer_id = r.customer_id and b.transfer_id = r.transfer_id
    where b.network <> 'WIRE' and (b.state <> 'DONE' or b.network in ('BITCOIN', 'LITECOIN', 'BITCOIN_CASH'))
    union all
    select s.network, s.crypto_tx_hash, 'TOP_UP', s.raw_transaction, s.customer_id, s.id, false, s.signed_at
    from evm_sweeps s
    where s.kind = 'TOP_UP' and s.state in ('SIGNED', 'BROADCAST')
  ) kept
  where raw_transaction is null or left(encode(raw_transaction, 'hex'), 2) <> '7b'
  group by network, crypto_tx_hash, kind;

  update network_transactions n
  set customer_ids = k.customer_ids, transfer_ids = k.transfer_ids
  from kept_before k
  where k.network = n.network and k.crypto_tx_hash = n.crypto_tx_hash;

  insert into network_transactions
    (network, crypto_tx_hash, raw_transaction, kind, payments, customer_ids, transfer_ids, signed_at)
  select network, crypto_tx_hash, raw_transaction, kind, cardinality(transfer_ids), customer_ids, transfer_ids, signed_at
  from kept_before
  where raw_transaction is not null
  on conflict (network, crypto_tx_hash) do nothing;

  -- A transaction that no withdrawal has any more ended, too.
  update network_transactions set ended_at = signed_at where transfer_ids = '{}';
  update network_transactions n set ended_at = n.signed_at
  from kept_before k
  where k.network = n.network and k.crypto_tx_hash = n.crypto_tx_hash and k.ended;

  drop table kept_before;

  create index network_transactions_open on network_transactions (network) where ended_at is null;
  create index network_transactions_transfers on network_transactions using gin (transfer_ids);
end
$$;
