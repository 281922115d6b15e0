-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select id, customer_id, profile_id, memo_id, status, fiat_network,
routing_number_type, ref_id, identity_id, account_id, metadata, created_at from fiat_deposit_instructions
    where customer_id = $1
      and id >= $2
      and id < $3
      and id = any ($4::uuid[])
      and profile_id = any ($5::uuid[])
      and ref_id = any ($6::text[])
      and fiat_network = any ($7::text[])
    order by id desc
    limit 101;
