-- The newest real price of a market, with a MAC by a key that is not in the database (src/records/row-macs.ts): limits in USD and fees are
-- decided by it, so write access to the database is not enough to change it. A simulated market has none.
alter table markets add column newest_minute integer;
alter table markets add column newest_price numeric;
alter table markets add column sealed_at timestamptz;
alter table markets add column mac text;

update markets m
set (newest_minute, newest_price) = (
  select minute, price from price_minutes where market_id = m.id order by minute desc limit 1
)
where source = 'REAL';
