-- Written by test/generated-sql.test.ts, for readers. Parameters are $1, $2 and so on.

insert into entries (customer_id, created_at, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version) values ($1, $2, unnest($3::uuid[]), unnest($4::text[]), unnest($5::smallint[]), unnest($6::text[]), unnest($7::uuid[]), unnest($8::text[]), unnest($9::numeric[]), unnest($10::numeric[]), unnest($11::bigint[]));
