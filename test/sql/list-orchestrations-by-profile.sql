-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

with recursive
filters as (
  select $6::text[] as source_asset, $7::text[] as destination_asset, $8::text[] as status,
         $9::uuid[] as profile_id, $10::uuid[] as rule_id, $11::uuid[] as id, $12::text[] as ref_id,
         $13::uuid[] as id_of_ref_id
),
kinds as (
  select first.*
  from (select distinct id from unnest($9::uuid[]) as id) p
  cross join lateral (
    select profile_id, source_asset, destination_asset, status
    from orchestrations
    where profile_id = p.id and customer_id = $1
    order by source_asset, destination_asset, status
    limit 1
  ) first
  union all
  select next.*
  from kinds k
  cross join lateral (
    select profile_id, source_asset, destination_asset, status
    from orchestrations
    where profile_id = k.profile_id and customer_id = $1
      and (source_asset, destination_asset, status) > (k.source_asset, k.destination_asset, k.status)
    order by source_asset, destination_asset, status
    limit 1
  ) next
), streams as (
  select *
  from kinds
  where ($6::text[] is null or source_asset = any ($6))
    and ($7::text[] is null or destination_asset = any ($7))
    and ($8::text[] is null or status = any ($8))
), found as (
    select page.id
    from streams s
    cross join lateral (
      select o.id
      from orchestrations o
      where o.customer_id = $1 and o.profile_id = s.profile_id and o.source_asset = s.source_asset and o.destination_asset = s.destination_asset and o.status = s.status
        and o.id >= $2 and o.id < $3
        and ($4::uuid is null or o.id < $4)
      order by o.id desc
      limit $5
    ) page
    order by page.id desc
    limit $5
  )
  select o.id, o.profile_id, o.identity_id, o.account_id, o.customer_id, o.ref_id, o.status,
o.source_asset, o.destination_asset, o.source_amount, o.source_transfer_id, o.destination_transfer_id,
(select t.status from transfers t
 where t.customer_id = $1 and t.id = o.source_transfer_id) as source_transfer_status,
(select t.status from transfers t
 where t.customer_id = $1 and t.id = o.destination_transfer_id) as destination_transfer_status,
o.fail_reason, o.source, o.destination, o.orchestration_rule_id, o.metadata, o.created_at, o.updated_at
  from found
  join orchestrations o on o.customer_id = $1 and o.id = found.id
  order by o.id desc;
