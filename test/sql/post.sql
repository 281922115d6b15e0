-- Written by test/generated-sql.test.ts, for readers. Parameters are $1, $2 and so on.

with made as (
  insert into balances (customer_id, updated_at, profile_id, asset, available, version, mac)
  select $1, $2, unnest($4::uuid[]), unnest($5::text[]), unnest($6::numeric[]), unnest($7::bigint[]), unnest($8::text[])
), moved as (
  update balances b
  set available = m.available, version = m.version, mac = m.mac, updated_at = $2
  from (
    select available, version, mac, (
      select ctid from balances
      where customer_id = $1 and profile_id = n.profile_id and asset = n.asset and version = n.version_read
    ) as place
    from (select unnest($9::uuid[]), unnest($10::text[]), unnest($11::numeric[]), unnest($12::bigint[]), unnest($13::text[]), unnest($14::bigint[])) n (profile_id, asset, available, version, mac, version_read)
  ) m
  where b.ctid = m.place
  returning 1
), posted as (
  insert into entries (customer_id, created_at, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version)
  select $1, $2, unnest($15::uuid[]), unnest($16::text[]), unnest($17::smallint[]), unnest($18::text[]), unnest($19::uuid[]), unnest($20::text[]), unnest($21::numeric[]), unnest($22::numeric[]), unnest($23::bigint[])
), recorded as (
  insert into transfers (customer_id, created_at, updated_at, id, profile_id, identity_id, account_id, group_id, fiat_account_id, type, direction, status, asset, balance_asset, ref_id, memo, mac, destination_address, crypto_network, crypto_tx_hash, crypto_tx_index, amount, fee, total, notional_value, secondary_status, status_details, metadata, auto_conversion, beneficiary)
  select $1, $2, $2, unnest($24::uuid[]), unnest($25::uuid[]), unnest($26::uuid[]), unnest($27::uuid[]), unnest($28::uuid[]), unnest($29::uuid[]), unnest($30::text[]), unnest($31::text[]), unnest($32::text[]), unnest($33::text[]), unnest($34::text[]), unnest($35::text[]), unnest($36::text[]), unnest($37::text[]), unnest($38::text[]), unnest($39::text[]), unnest($40::text[]), unnest($41::text[]), unnest($42::numeric[]), unnest($43::numeric[]), unnest($44::numeric[]), unnest($45::numeric[]), unnest($46::jsonb[]), unnest($47::jsonb[]), unnest($48::jsonb[]), unnest($49::jsonb[]), unnest($50::jsonb[])
), told as (
  insert into events (customer_id, created_at, is_test, id, type, object_id)
  select $1, $2, false, unnest($51::uuid[]), unnest($52::text[]), unnest($53::uuid[])
)
select 1 / ((select count(*) from moved) = $3)::int;

with moved as (
  update balances b
  set available = m.available, version = m.version, mac = m.mac, updated_at = $2
  from (
    select available, version, mac, (
      select ctid from balances
      where customer_id = $1 and profile_id = n.profile_id and asset = n.asset and version = n.version_read
    ) as place
    from (select unnest($4::uuid[]), unnest($5::text[]), unnest($6::numeric[]), unnest($7::bigint[]), unnest($8::text[]), unnest($9::bigint[])) n (profile_id, asset, available, version, mac, version_read)
  ) m
  where b.ctid = m.place
  returning 1
), posted as (
  insert into entries (customer_id, created_at, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version)
  select $1, $2, unnest($10::uuid[]), unnest($11::text[]), unnest($12::smallint[]), unnest($13::text[]), unnest($14::uuid[]), unnest($15::text[]), unnest($16::numeric[]), unnest($17::numeric[]), unnest($18::bigint[])
), recorded as (
  insert into transfers (customer_id, created_at, updated_at, id, profile_id, identity_id, account_id, group_id, fiat_account_id, type, direction, status, asset, balance_asset, ref_id, memo, mac, destination_address, crypto_network, crypto_tx_hash, crypto_tx_index, amount, fee, total, notional_value, secondary_status, status_details, metadata, auto_conversion, beneficiary)
  select $1, $2, $2, unnest($19::uuid[]), unnest($20::uuid[]), unnest($21::uuid[]), unnest($22::uuid[]), unnest($23::uuid[]), unnest($24::uuid[]), unnest($25::text[]), unnest($26::text[]), unnest($27::text[]), unnest($28::text[]), unnest($29::text[]), unnest($30::text[]), unnest($31::text[]), unnest($32::text[]), unnest($33::text[]), unnest($34::text[]), unnest($35::text[]), unnest($36::text[]), unnest($37::numeric[]), unnest($38::numeric[]), unnest($39::numeric[]), unnest($40::numeric[]), unnest($41::jsonb[]), unnest($42::jsonb[]), unnest($43::jsonb[]), unnest($44::jsonb[]), unnest($45::jsonb[])
), told as (
  insert into events (customer_id, created_at, is_test, id, type, object_id)
  select $1, $2, false, unnest($46::uuid[]), unnest($47::text[]), unnest($48::uuid[])
)
select 1 / ((select count(*) from moved) = $3)::int;
