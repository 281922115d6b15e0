-- Written by test/generated-sql.test.ts, for readers. Parameters are $1, $2 and so on.

with made as (
  insert into balances (customer_id, updated_at, profile_id, asset, available, version)
  select $1, $2, * from unnest($4::uuid[], $5::text[], $6::numeric[], $7::bigint[])
), moved as (
  update balances b
  set available = m.available, version = m.version, updated_at = $2
  from (
    select available, version, (
      select ctid from balances
      where customer_id = $1 and profile_id = n.profile_id and asset = n.asset and version = n.version_read
    ) as place
    from unnest($8::uuid[], $9::text[], $10::numeric[], $11::bigint[], $12::bigint[]) as n (profile_id, asset, available, version, version_read)
  ) m
  where b.ctid = m.place
  returning 1
), posted as (
  insert into entries (customer_id, created_at, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version)
  select $1, $2, * from unnest($13::uuid[], $14::text[], $15::smallint[], $16::text[], $17::uuid[], $18::text[], $19::numeric[], $20::numeric[], $21::bigint[])
), recorded as (
  insert into transfers (customer_id, created_at, updated_at, id, profile_id, identity_id, account_id, group_id, fiat_account_id, type, direction, status, asset, balance_asset, ref_id, memo, mac, destination_address, crypto_network, crypto_tx_hash, crypto_tx_index, amount, fee, total, notional_value, secondary_status, status_details, metadata, auto_conversion, beneficiary)
  select $1, $2, $2, * from unnest($22::uuid[], $23::uuid[], $24::uuid[], $25::uuid[], $26::uuid[], $27::uuid[], $28::text[], $29::text[], $30::text[], $31::text[], $32::text[], $33::text[], $34::text[], $35::text[], $36::text[], $37::text[], $38::text[], $39::text[], $40::numeric[], $41::numeric[], $42::numeric[], $43::numeric[], $44::jsonb[], $45::jsonb[], $46::jsonb[], $47::jsonb[], $48::jsonb[])
), told as (
  insert into events (customer_id, created_at, is_test, id, type, object_id)
  select $1, $2, false, * from unnest($49::uuid[], $50::text[], $51::uuid[])
)
select 1 / ((select count(*) from moved) = $3)::int;
