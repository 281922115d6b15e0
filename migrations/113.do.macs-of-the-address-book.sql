-- An entry of the address book carries a MAC with a key that is not in the database, so that write access to the database is not
-- enough to have an address counted as approved (src/records/row-macs.ts).
alter table crypto_destination_addresses add column sealed_at timestamptz;
alter table crypto_destination_addresses add column mac text;
