-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select id, customer_id, ref_id, type, status, user_disabled, admin_disabled, tax_details_not_required,
is_merchant, last_kyc_refresh_date, metadata, created_at, updated_at, details, tax_details, customer_due_diligence,
coalesce((select json_agg(json_build_object('id', m.id, 'identity_id', m.identity_id, 'roles', m.roles,
                                            'ownership', m.ownership, 'position', m.position, 'name', m.name)
                          order by m.id)
          from institution_members m
          where m.customer_id = $1 and m.institution_id = identities.id
            and m.removed_at is null
            and identities.type = 'INSTITUTION'), -- persons cost no look-up
         '[]') as institution_members from identities
    where customer_id = $1
      and id >= $2
      and id < $3
    order by id desc
    limit 101;
