-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select id, customer_id, ref_id, profile_id, status, nickname, source_asset, destination_asset,
source, destination, identity_id, account_id, created_at, updated_at from orchestration_rules
    where customer_id = $1
      and id >= $2
      and id < $3
      and id = any ($4::uuid[])
      and ref_id = any ($5::text[])
      and profile_id = any ($6::uuid[])
      and status = any ($7::text[])
      and source_asset = any ($8::text[])
    order by id desc
    limit 101;
