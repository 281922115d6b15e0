-- The stamp of the database carries a MAC with a key that is not in the database, so that write access to the database is not enough to
-- make a live database a sandbox (src/records/row-macs.ts).
alter table deployment add column sealed_at timestamptz;
alter table deployment add column mac text;
