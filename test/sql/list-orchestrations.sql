-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

with recursive
filters as (
  select $6::text[] as source_asset, $7::text[] as destination_asset, $8::text[] as status,
         $9::uuid[] as profile_id, $10::uuid[] as rule_id, $11::uuid[] as id, $12::text[] as ref_id,
         $13::uuid[] as id_of_ref_id
), streams as (select), found as (
    select page.id
    from streams s
    cross join lateral (
      select o.id
      from orchestrations o
      where o.customer_id = $1 and true
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
