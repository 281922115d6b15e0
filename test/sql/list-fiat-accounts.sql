-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select id, customer_id, status, fiat_account_owner, fiat_network_instructions, ref_id,
identity_id, account_id, metadata, created_at, coalesce(updated_at, created_at) as updated_at, deleted_at from fiat_accounts
    where customer_id = $1
      and id >= $2
      and id < $3
      and id = any ($4::uuid[])
      and ref_id = any ($5::text[])
      and status = any ($6::text[])
      and (deleted_at is null or $7)
    order by id desc
    limit 101;
