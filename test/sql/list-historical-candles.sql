-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select next, last
from markets
cross join (select (floor(extract(epoch from clock_timestamp()) / 60)::integer - 1) as last) clock
cross join lateral (
  select minute + 1 as next from price_minutes where market_id = markets.id order by minute desc limit 1
) newest
where market = $1 and source = 'SIMULATED' and next <= last;

select starts_at, timestamptz 'epoch' + starts_at * interval '1 minute' as timestamp,
           trim_scale(open) as open, trim_scale(high) as high, trim_scale(low) as low, trim_scale(close) as close,
           exact_increment <= 1 as exact
    from (select minute as starts_at, exact_increment, coalesce(open, price) as open, coalesce(high, price) as high,
         coalesce(low, price) as low, coalesce(close, price) as close
      from price_minutes where market_id = $1) candle
    where starts_at >= $2::integer and starts_at < least($3::integer, (
select greatest(least(max(minute) + 1, floor(extract(epoch from statement_timestamp()) / 60)::integer), floor(extract(epoch from statement_timestamp()) / 60)::integer - 5)
from price_minutes where market_id = $1) - 1 + 1)
    order by starts_at desc
    limit $4;

select starts_at, timestamptz 'epoch' + starts_at * interval '1 minute' as timestamp,
           trim_scale(open) as open, trim_scale(high) as high, trim_scale(low) as low, trim_scale(close) as close,
           exact_increment <= 60 as exact
    from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 60) candle
    where starts_at >= $2::integer and starts_at < least($3::integer, (
select greatest(least(max(minute) + 1, floor(extract(epoch from statement_timestamp()) / 60)::integer), floor(extract(epoch from statement_timestamp()) / 60)::integer - 5)
from price_minutes where market_id = $1) - 60 + 1)
    order by starts_at asc
    limit $4;
