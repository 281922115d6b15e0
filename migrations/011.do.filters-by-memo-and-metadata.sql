-- List Transfers by memo, and by pairs of metadata: each pair of a transfer is a row, in the order of the ids, so that a rare value
-- and a common one are found at once among any number of transfers. Only transfers with a memo or with metadata have such rows.
do $$
begin
  create index if not exists transfers_memo on transfers (customer_id, memo, id) where memo is not null;

  -- The newest address of each key, for the comparison of keys at each start.
  create index if not exists deposit_addresses_key on deposit_addresses (
    crypto_network, (split_part(coalesce(derivation, ''), '/', 1) collate "C"), id desc
  );

  create table if not exists transfer_metadata (
    customer_id uuid not null,
    key text not null,
    value text not null,
    transfer_id uuid not null,
    primary key (customer_id, key, value, transfer_id)
  );

  -- The platform's own transfers have other members there, and are in no list.
  insert into transfer_metadata
  select t.customer_id, pair.key, pair.value, t.id
  from transfers t
  cross join jsonb_each_text(t.metadata) pair
  where t.metadata is not null and t.customer_id <> '00000000-0000-0000-0000-000000000000'
  on conflict do nothing;
end
$$;
