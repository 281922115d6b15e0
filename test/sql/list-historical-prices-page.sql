-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

with clock as materialized (
    select (
select greatest(least(max(minute) + 1, floor(extract(epoch from statement_timestamp()) / 60)::integer), floor(extract(epoch from statement_timestamp()) / 60)::integer - 5)
from price_minutes where market_id = $1) as known
  ), ended as materialized (
    select greatest($4::integer, least($7::integer, (floor(extract(epoch from statement_timestamp()) / 60)::integer - 719) - (floor(extract(epoch from statement_timestamp()) / 60)::integer - 719) % 1440)) as days_to,
           greatest($5::integer, least($6::integer, (floor(extract(epoch from statement_timestamp()) / 60)::integer - 719) - ((floor(extract(epoch from statement_timestamp()) / 60)::integer - 719) - 5760 + 40320) % 40320)) as four_weeks_to
  ), whole as materialized (
    select counts from price_points
    where market_id = $1 and increment_minutes = 1440
      and starts_at >= $4 and starts_at < least($5, (select days_to from ended))
    union all
    select counts from price_points
    where market_id = $1 and increment_minutes = 40320
      and starts_at >= $5 and starts_at < (select four_weeks_to from ended)
    union all
    select counts from price_points
    where market_id = $1 and increment_minutes = 1440
      and starts_at >= (select four_weeks_to from ended) and starts_at < (select days_to from ended)
  )
  select array[
  (select count(*) from (select starts_at, sum, minutes from price_points
      where market_id = $1 and increment_minutes = 60) point
   where starts_at >= $2::integer and starts_at < least($4::integer, $3::integer, (select known from clock) - 60 + 1)) +
  (select count(*) from (select starts_at, sum, minutes from price_points
      where market_id = $1 and increment_minutes = 60) point
   where starts_at >= (select days_to from ended) and starts_at < least($3::integer, $3::integer, (select known from clock) - 60 + 1)) +
    (select coalesce(sum(counts[5]), 0) from whole)]::integer[] as counts;

with block as (
    select *
    from (
      select starts_at, length, (select count(*) from (select starts_at, sum, minutes from price_points
    where market_id = $1 and increment_minutes = 60) point where starts_at >= $2 and starts_at < $3) + sum(points) over (order by starts_at) - points as before
      from (
select starts_at, 1440 as length, counts[5] as points
from price_points
where market_id = $1 and increment_minutes = 1440
  and starts_at >= $3::integer and starts_at < $4::integer union all
select starts_at, 40320 as length, counts[5] as points
from price_points
where market_id = $1 and increment_minutes = 40320
  and starts_at >= $4::integer and starts_at < $5::integer union all
select starts_at, 1440 as length, counts[5] as points
from price_points
where market_id = $1 and increment_minutes = 1440
  and starts_at >= $5::integer and starts_at < $6::integer
      ) whole
    ) counted
    where before <= $7::integer
    order by starts_at desc
    limit 1
  )
  select day.starts_at, (block.before + day.before)::integer as before
  from block
  cross join lateral (
    select starts_at, sum(points) over (order by starts_at) - points as before
    from (
select starts_at, 1440 as length, counts[5] as points
from price_points
where market_id = $1 and increment_minutes = 1440
  and starts_at >= block.starts_at::integer and starts_at < (block.starts_at + block.length)::integer) days
  ) day
  where block.before + day.before <= $7
  order by day.starts_at desc
  limit 1;

select timestamptz 'epoch' + starts_at * interval '1 minute' as timestamp, trim_scale(div(sum * 200000000 + minutes, 2 * minutes) * 0.00000001) as average_price
    from (select starts_at, sum, minutes from price_points
      where market_id = $1 and increment_minutes = 60) point
    where starts_at >= $2::integer and starts_at < least($3::integer, (
select greatest(least(max(minute) + 1, floor(extract(epoch from statement_timestamp()) / 60)::integer), floor(extract(epoch from statement_timestamp()) / 60)::integer - 5)
from price_minutes where market_id = $1) - 60 + 1)
    order by starts_at
    limit $4 offset $5;
