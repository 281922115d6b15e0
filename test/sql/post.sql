-- Written by test/generated-sql.test.ts, for readers. Parameters are $1, $2 and so on.

with made as (
  insert into balances (customer_id, updated_at, profile_id, asset, available, version)
  select $1, $2, unnest($4::uuid[]), unnest($5::text[]), unnest($6::numeric[]), unnest($7::bigint[])
), moved as (
  update balances b
  set available = m.available, version = m.version, updated_at = $2
  from (
    select available, version, (
      select ctid from balances
      where customer_id = $1 and profile_id = n.profile_id and asset = n.asset and version = n.version_read
    ) as place
    from (select unnest($8::uuid[]), unnest($9::text[]), unnest($10::numeric[]), unnest($11::bigint[]), unnest($12::bigint[])) n (profile_id, asset, available, version, version_read)
  ) m
  where b.ctid = m.place
  returning 1
), posted as (
  insert into entries (customer_id, created_at, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version)
  select $1, $2, unnest($13::uuid[]), unnest($14::text[]), unnest($15::smallint[]), unnest($16::text[]), unnest($17::uuid[]), unnest($18::text[]), unnest($19::numeric[]), unnest($20::numeric[]), unnest($21::bigint[])
), recorded as (
  insert into transfers (customer_id, created_at, updated_at, id, profile_id, identity_id, account_id, group_id, fiat_account_id, type, direction, status, asset, balance_asset, ref_id, memo, mac, destination_address, crypto_network, crypto_tx_hash, crypto_tx_index, amount, fee, total, notional_value, secondary_status, status_details, metadata, auto_conversion, beneficiary)
  select $1, $2, $2, unnest($22::uuid[]), unnest($23::uuid[]), unnest($24::uuid[]), unnest($25::uuid[]), unnest($26::uuid[]), unnest($27::uuid[]), unnest($28::text[]), unnest($29::text[]), unnest($30::text[]), unnest($31::text[]), unnest($32::text[]), unnest($33::text[]), unnest($34::text[]), unnest($35::text[]), unnest($36::text[]), unnest($37::text[]), unnest($38::text[]), unnest($39::text[]), unnest($40::numeric[]), unnest($41::numeric[]), unnest($42::numeric[]), unnest($43::numeric[]), unnest($44::jsonb[]), unnest($45::jsonb[]), unnest($46::jsonb[]), unnest($47::jsonb[]), unnest($48::jsonb[])
), told as (
  insert into events (customer_id, created_at, is_test, id, type, object_id)
  select $1, $2, false, unnest($49::uuid[]), unnest($50::text[]), unnest($51::uuid[])
)
select 1 / ((select count(*) from moved) = $3)::int;

with moved as (
  update balances b
  set available = m.available, version = m.version, updated_at = $2
  from (
    select available, version, (
      select ctid from balances
      where customer_id = $1 and profile_id = n.profile_id and asset = n.asset and version = n.version_read
    ) as place
    from (select unnest($4::uuid[]), unnest($5::text[]), unnest($6::numeric[]), unnest($7::bigint[]), unnest($8::bigint[])) n (profile_id, asset, available, version, version_read)
  ) m
  where b.ctid = m.place
  returning 1
), posted as (
  insert into entries (customer_id, created_at, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version)
  select $1, $2, unnest($9::uuid[]), unnest($10::text[]), unnest($11::smallint[]), unnest($12::text[]), unnest($13::uuid[]), unnest($14::text[]), unnest($15::numeric[]), unnest($16::numeric[]), unnest($17::bigint[])
), recorded as (
  insert into transfers (customer_id, created_at, updated_at, id, profile_id, identity_id, account_id, group_id, fiat_account_id, type, direction, status, asset, balance_asset, ref_id, memo, mac, destination_address, crypto_network, crypto_tx_hash, crypto_tx_index, amount, fee, total, notional_value, secondary_status, status_details, metadata, auto_conversion, beneficiary)
  select $1, $2, $2, unnest($18::uuid[]), unnest($19::uuid[]), unnest($20::uuid[]), unnest($21::uuid[]), unnest($22::uuid[]), unnest($23::uuid[]), unnest($24::text[]), unnest($25::text[]), unnest($26::text[]), unnest($27::text[]), unnest($28::text[]), unnest($29::text[]), unnest($30::text[]), unnest($31::text[]), unnest($32::text[]), unnest($33::text[]), unnest($34::text[]), unnest($35::text[]), unnest($36::numeric[]), unnest($37::numeric[]), unnest($38::numeric[]), unnest($39::numeric[]), unnest($40::jsonb[]), unnest($41::jsonb[]), unnest($42::jsonb[]), unnest($43::jsonb[]), unnest($44::jsonb[])
), told as (
  insert into events (customer_id, created_at, is_test, id, type, object_id)
  select $1, $2, false, unnest($45::uuid[]), unnest($46::text[]), unnest($47::uuid[])
)
select 1 / ((select count(*) from moved) = $3)::int;
