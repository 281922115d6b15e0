-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

with incoming as (
  select distinct on (minute) minute, second, price, exact_increment,
         case when moved then open end as open, case when moved then high end as high,
         case when moved then low end as low, case when moved then close end as close
  from (
    select first + step as minute, second, coalesce((open + high + low + close) * 0.25, open) as price, place,
           exact_increment, open, high, low, close,
           greatest(open, high, low, close) > least(open, high, low, close) as moved
    from unnest($3::integer[], $4::smallint[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[], $9::integer[])
      with ordinality as record (first, second, open, high, low, close, exact_increment, place)
    cross join generate_series(0, $2::integer - 1) as step
  ) covered
  order by minute, second desc, place desc
), written as (
  insert into price_minutes as kept
    (market_id, covers_minutes, minute, second, price, exact_increment, open, high, low, close)
  select $1, $2, minute, second, trim_scale(price), exact_increment,
         trim_scale(open), trim_scale(high), trim_scale(low), trim_scale(close)
  from incoming
  on conflict (market_id, minute) do update
  set covers_minutes = excluded.covers_minutes, second = excluded.second, price = excluded.price,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
  where (excluded.covers_minutes, -excluded.second) <= (kept.covers_minutes, -kept.second)
    and (excluded.covers_minutes, excluded.second, excluded.price, excluded.exact_increment,
         excluded.open, excluded.high, excluded.low, excluded.close)
      is distinct from (kept.covers_minutes, kept.second, kept.price, kept.exact_increment,
                        kept.open, kept.high, kept.low, kept.close)
  returning minute, price, exact_increment, open, high, low, close
), compared as materialized (
  select w.*, (select price from price_minutes m where m.market_id = $1 and m.minute = w.minute) as before
  from written w
), of_1 as (
  select minute as starts_at,
         price - coalesce(before, 0) as sum,
         case when before is null then 1 else 0 end as minutes,
         exact_increment, coalesce(open, price) as open, coalesce(high, price) as high,
         coalesce(low, price) as low, coalesce(close, price) as close
  from compared
),
of_5 as (
  select starts_at - starts_at % 5 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_1
      union all
      select kept.*, false
      from (select distinct starts_at - starts_at % 5 as touched from of_1) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select minute as starts_at, exact_increment, coalesce(open, price) as open, coalesce(high, price) as high,
         coalesce(low, price) as low, coalesce(close, price) as close
      from price_minutes where market_id = $1) candle
        where starts_at >= touched and starts_at < touched + 5
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_5 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 5, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_5
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_15 as (
  select starts_at - starts_at % 15 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_5
      union all
      select kept.*, false
      from (select distinct starts_at - starts_at % 15 as touched from of_5) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 5) candle
        where starts_at >= touched and starts_at < touched + 15
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_15 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 15, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_15
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_30 as (
  select starts_at - starts_at % 30 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_15
      union all
      select kept.*, false
      from (select distinct starts_at - starts_at % 30 as touched from of_15) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 15) candle
        where starts_at >= touched and starts_at < touched + 30
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_30 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 30, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_30
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_60 as (
  select starts_at - starts_at % 60 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_30
      union all
      select kept.*, false
      from (select distinct starts_at - starts_at % 60 as touched from of_30) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 30) candle
        where starts_at >= touched and starts_at < touched + 60
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_60 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 60, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_60
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_120 as (
  select starts_at - starts_at % 120 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_60
      union all
      select kept.*, false
      from (select distinct starts_at - starts_at % 120 as touched from of_60) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 60) candle
        where starts_at >= touched and starts_at < touched + 120
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_120 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 120, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_120
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_720 as (
  select starts_at - starts_at % 720 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_120
      union all
      select kept.*, false
      from (select distinct starts_at - starts_at % 720 as touched from of_120) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 120) candle
        where starts_at >= touched and starts_at < touched + 720
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_720 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 720, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_720
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_1440 as (
  select starts_at - starts_at % 1440 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_720
      union all
      select kept.*, false
      from (select distinct starts_at - starts_at % 1440 as touched from of_720) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 720) candle
        where starts_at >= touched and starts_at < touched + 1440
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_1440 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 1440, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_1440
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_10080 as (
  select starts_at - (starts_at - 5760 + 10080) % 10080 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_1440
      union all
      select kept.*, false
      from (select distinct starts_at - (starts_at - 5760 + 10080) % 10080 as touched from of_1440) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 1440) candle
        where starts_at >= touched and starts_at < touched + 10080
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_10080 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 10080, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_10080
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_20160 as (
  select starts_at - (starts_at - 5760 + 20160) % 20160 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_10080
      union all
      select kept.*, false
      from (select distinct starts_at - (starts_at - 5760 + 20160) % 20160 as touched from of_10080) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 10080) candle
        where starts_at >= touched and starts_at < touched + 20160
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_20160 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 20160, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_20160
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
),
of_40320 as (
  select starts_at - (starts_at - 5760 + 40320) % 40320 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
         max(exact_increment) as exact_increment,
         (array_agg(open order by starts_at))[1] as open, max(high) as high,
         min(low) as low, (array_agg(close order by starts_at desc))[1] as close
  from (
    select distinct on (starts_at) *
    from (
      select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_20160
      union all
      select kept.*, false
      from (select distinct starts_at - (starts_at - 5760 + 40320) % 40320 as touched from of_20160) span
      cross join lateral (
        select starts_at, 0, 0, exact_increment, open, high, low, close
        from (select starts_at, exact_increment, open, high, low, close
      from price_points where market_id = $1 and increment_minutes = 20160) candle
        where starts_at >= touched and starts_at < touched + 40320
        offset 0
      ) kept
    ) both_of_them
    order by starts_at, changed desc
  ) made_of
  group by 1
), written_40320 as (
  insert into price_points as kept
    (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
  select $1, 40320, starts_at, minutes, sum, exact_increment, open, high, low, close
  from of_40320
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
      exact_increment = excluded.exact_increment,
      open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
)
select (select count(*)::integer from written) as changed,
       array(select starts_at from of_1440) as days, newest.*
from (values (0)) one_row
left join (select minute, price from written order by minute desc limit 1) newest on true;

update price_points day
set counts = array[minutes,
      (select count(*) from price_points
       where market_id = $1 and increment_minutes = 5
         and starts_at >= day.starts_at and starts_at < day.starts_at + 1440),
      (select count(*) from price_points
       where market_id = $1 and increment_minutes = 15
         and starts_at >= day.starts_at and starts_at < day.starts_at + 1440),
      (select count(*) from price_points
       where market_id = $1 and increment_minutes = 30
         and starts_at >= day.starts_at and starts_at < day.starts_at + 1440),
      (select count(*) from price_points
       where market_id = $1 and increment_minutes = 60
         and starts_at >= day.starts_at and starts_at < day.starts_at + 1440),
      (select count(*) from price_points
       where market_id = $1 and increment_minutes = 120
         and starts_at >= day.starts_at and starts_at < day.starts_at + 1440),
      (select count(*) from price_points
       where market_id = $1 and increment_minutes = 720
         and starts_at >= day.starts_at and starts_at < day.starts_at + 1440),
      (select count(*) from price_points
       where market_id = $1 and increment_minutes = 1440
         and starts_at >= day.starts_at and starts_at < day.starts_at + 1440)]
where market_id = $1 and increment_minutes = 1440 and starts_at = any ($2::integer[]);

update price_points four_weeks
set counts = (
  select array[sum(counts[1]), sum(counts[2]), sum(counts[3]), sum(counts[4]), sum(counts[5]), sum(counts[6]), sum(counts[7]), sum(counts[8])]
  from price_points
  where market_id = $1 and increment_minutes = 1440
    and starts_at >= four_weeks.starts_at and starts_at < four_weeks.starts_at + 40320
)
where market_id = $1 and increment_minutes = 40320 and starts_at = any ($2::integer[]);
