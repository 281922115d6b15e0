-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select next, last
from markets
cross join (select (floor(extract(epoch from clock_timestamp()) / 60)::integer - 1) as last) clock
cross join lateral (
  select minute + 1 as next from price_minutes where market_id = markets.id order by minute desc limit 1
) newest
where market = $1 and source = 'SIMULATED' and next <= last;

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
  (select count(*) from (select minute as starts_at, price as sum, 1 as minutes from price_minutes where market_id = $1) point
   where starts_at >= $2::integer and starts_at < least($4::integer, $3::integer, (select known from clock) - 1 + 1)) +
  (select count(*) from (select minute as starts_at, price as sum, 1 as minutes from price_minutes where market_id = $1) point
   where starts_at >= (select days_to from ended) and starts_at < least($3::integer, $3::integer, (select known from clock) - 1 + 1)) +
    (select coalesce(sum(counts[1]), 0) from whole)]::integer[] as counts;

select timestamptz 'epoch' + starts_at * interval '1 minute' as timestamp, trim_scale(round(sum, 8)) as average_price
    from (select minute as starts_at, price as sum, 1 as minutes from price_minutes where market_id = $1) point
    where starts_at >= $2::integer and starts_at < least($3::integer, (
select greatest(least(max(minute) + 1, floor(extract(epoch from statement_timestamp()) / 60)::integer), floor(extract(epoch from statement_timestamp()) / 60)::integer - 5)
from price_minutes where market_id = $1) - 1 + 1)
    order by starts_at
    limit $4 offset $5;
