-- A rate of rewards carries a MAC with a key that is not in the database, so that write access to the database is not enough to have
-- rewards computed with another (src/records/row-macs.ts).
alter table reward_rates add column sealed_at timestamptz;
alter table reward_rates add column mac text;
