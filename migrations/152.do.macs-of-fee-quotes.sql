-- A fee quote carries a MAC with a key that is not in the database, so that write access to the database is not enough to make or change
-- a guaranteed fee (src/records/row-macs.ts).
alter table fee_quotes add column sealed_at timestamptz;
alter table fee_quotes add column mac text;
