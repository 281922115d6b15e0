-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select id, customer_id, ref_id, type, status, user_disabled, admin_disabled, tax_details_not_required,
is_merchant, last_kyc_refresh_date, metadata, created_at, updated_at, details, null::jsonb as tax_details, null::jsonb as customer_due_diligence, '[]'::json as institution_members from identities
    where customer_id = $1
      and id >= $2
      and id < $3
      and id = any ($4::uuid[])
      and ref_id = any ($5::text[])
      and case when user_disabled or admin_disabled then 'DISABLED' else status end = any ($6::text[])
      and type = any ($7::text[])
      and updated_at >= $8::timestamptz
      and updated_at < $9::timestamptz
    order by id asc
    limit 101;
