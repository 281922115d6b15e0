-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select id, nickname, type, description, account_id, deactivated_at from profiles
where customer_id = $1
  and id >= $2
  and id < $3
  and id = any ($4::uuid[])
  and nickname = $5
order by id desc
limit 101;
