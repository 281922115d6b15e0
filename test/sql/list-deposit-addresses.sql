-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select id, customer_id, profile_id, crypto_network, address, conversion_target_asset,
ref_id, identity_id, account_id, metadata, created_at from deposit_addresses
    where customer_id = $1
      and id >= $2
      and id < $3
      and id = any ($4::uuid[])
      and address = any ($5::text[])
      and crypto_network = any ($6::text[])
      and identity_id = any ($7::uuid[])
      and account_id = any ($8::uuid[])
    order by id desc
    limit 101;
