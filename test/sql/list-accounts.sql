-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select a.id, a.identity_id, a.description, a.admin_disabled, a.user_disabled, a.metadata, a.ref_id, a.type,
       a.created_at, greatest(a.updated_at, i.updated_at) as updated_at,
       json_build_object('status', i.status, 'user_disabled', i.user_disabled,
                         'admin_disabled', i.admin_disabled) as identity,
       array(select json_build_object('id', m.id, 'identity_id', m.identity_id, 'roles', m.roles)
             from account_members m
             where m.customer_id = $1 and m.account_id = a.id and m.removed_at is null
             order by m.id) as members,
       (select p.id from profiles p where p.customer_id = $1 and p.account_id = a.id) as profile_id
from accounts a
join identities i on i.customer_id = $1 and i.id = a.identity_id
    where a.customer_id = $1
      and a.id >= $2
      and a.id < $3
      and a.id = any ($4::uuid[])
      and a.ref_id = any ($5::text[])
      and a.identity_id = any ($6::uuid[])
      and greatest(a.updated_at, i.updated_at) >= $7::timestamptz
      and greatest(a.updated_at, i.updated_at) < $8::timestamptz
    order by a.id desc
    limit 101;
