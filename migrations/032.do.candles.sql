-- Candles: open, high, low and close of each minute and of each increment. A longer candle is made of the shorter ones.

-- The four prices are null where all of them equal `price`. `exact_increment` is the shortest increment, in minutes, that
-- contains the whole record of the minute: candles of that length, and longer ones, are exact. Only the average is known
-- of minutes that were imported before this migration, so no candle of theirs is exact (2147483647). Simulated minutes
-- have one price each.
alter table price_minutes
  add column exact_increment integer not null default 2147483647,
  add column open numeric,
  add column high numeric,
  add column low numeric,
  add column close numeric,
  add constraint price_minutes_candle check (num_nulls(open, high, low, close) in (0, 4));
alter table price_minutes alter column exact_increment drop default;
update price_minutes set exact_increment = 1 where market_id in (select id from markets where source = 'SIMULATED');

alter table price_points
  add column open numeric,
  add column high numeric,
  add column low numeric,
  add column close numeric,
  add column exact_increment integer;

update price_points point
set open = made.open, high = made.high, low = made.low, close = made.close, exact_increment = made.exact_increment
from (
  select market_id, minute - minute % 5 as starts_at,
         (array_agg(price order by minute))[1] as open, max(price) as high,
         min(price) as low, (array_agg(price order by minute desc))[1] as close, max(exact_increment) as exact_increment
  from price_minutes
  group by 1, 2
) made
where point.market_id = made.market_id and point.increment_minutes = 5 and point.starts_at = made.starts_at;

-- Each length from the next shorter one. Weeks begin on a Monday: 5760 is the first one of 1970.
do $$
declare
  lengths constant integer[] := array[5, 15, 30, 60, 120, 720, 1440, 10080, 20160, 40320];
begin
  for place in 2 .. array_length(lengths, 1) loop
    update price_points point
    set open = made.open, high = made.high, low = made.low, close = made.close, exact_increment = made.exact_increment
    from (
      select market_id,
             case when lengths[place] > 1440
               then starts_at - (starts_at - 5760 + lengths[place]) % lengths[place]
               else starts_at - starts_at % lengths[place]
             end as starts_at,
             (array_agg(open order by starts_at))[1] as open, max(high) as high,
             min(low) as low, (array_agg(close order by starts_at desc))[1] as close,
             max(exact_increment) as exact_increment
      from price_points
      where increment_minutes = lengths[place - 1]
      group by market_id, 2
    ) made
    where point.market_id = made.market_id and point.increment_minutes = lengths[place]
      and point.starts_at = made.starts_at;
  end loop;
end $$;

alter table price_points
  alter column open set not null,
  alter column high set not null,
  alter column low set not null,
  alter column close set not null,
  alter column exact_increment set not null;
