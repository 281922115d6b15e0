-- Written by test/generated-sql.test.ts, for readers. Parameters are $1, $2 and so on.

with incoming as (
  select distinct on (minute) minute, second, price
  from (
    select first + step as minute, second, coalesce((open + high + low + close) * 0.25, open) as price, place
    from unnest($3::integer[], $4::smallint[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[])
      with ordinality as record (first, second, open, high, low, close, place)
    cross join generate_series(0, $2::integer - 1) as step
  ) covered
  order by minute, second desc, place desc
), written as (
  insert into price_minutes as kept (market_id, covers_minutes, minute, second, price)
  select $1, $2, minute, second, trim_scale(price)
  from incoming
  on conflict (market_id, minute) do update
  set covers_minutes = excluded.covers_minutes, second = excluded.second, price = excluded.price
  where (excluded.covers_minutes, -excluded.second) <= (kept.covers_minutes, -kept.second)
    and (excluded.covers_minutes, excluded.second, excluded.price)
      is distinct from (kept.covers_minutes, kept.second, kept.price)
  returning minute, price
), compared as materialized (
  select minute, price,
         (select price from price_minutes m where m.market_id = $1 and m.minute = w.minute) as before
  from written w
), of_1 as (
  select minute as starts_at,
         price - coalesce(before, 0) as sum,
         case when before is null then 1 else 0 end as minutes
  from compared
),
of_5 as (
  select starts_at - starts_at % 5 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_1
  group by 1
), written_5 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 5, starts_at, minutes, sum
  from of_5
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_15 as (
  select starts_at - starts_at % 15 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_5
  group by 1
), written_15 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 15, starts_at, minutes, sum
  from of_15
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_30 as (
  select starts_at - starts_at % 30 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_15
  group by 1
), written_30 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 30, starts_at, minutes, sum
  from of_30
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_60 as (
  select starts_at - starts_at % 60 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_30
  group by 1
), written_60 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 60, starts_at, minutes, sum
  from of_60
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_120 as (
  select starts_at - starts_at % 120 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_60
  group by 1
), written_120 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 120, starts_at, minutes, sum
  from of_120
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_720 as (
  select starts_at - starts_at % 720 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_120
  group by 1
), written_720 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 720, starts_at, minutes, sum
  from of_720
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_1440 as (
  select starts_at - starts_at % 1440 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_720
  group by 1
), written_1440 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 1440, starts_at, minutes, sum
  from of_1440
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_10080 as (
  select starts_at - (starts_at - 5760 + 10080) % 10080 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_1440
  group by 1
), written_10080 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 10080, starts_at, minutes, sum
  from of_10080
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_20160 as (
  select starts_at - (starts_at - 5760 + 20160) % 20160 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_10080
  group by 1
), written_20160 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 20160, starts_at, minutes, sum
  from of_20160
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
),
of_40320 as (
  select starts_at - (starts_at - 5760 + 40320) % 40320 as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes
  from of_20160
  group by 1
), written_40320 as (
  insert into price_points as kept (market_id, increment_minutes, starts_at, minutes, sum)
  select $1, 40320, starts_at, minutes, sum
  from of_40320
  order by starts_at
  on conflict (market_id, increment_minutes, starts_at) do update
  set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum
)
select (select count(*)::integer from written) as changed,
       array(select starts_at from of_1440) as days;

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
