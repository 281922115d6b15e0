-- A balance carries a MAC with a key that is not in the database, so that write access to the database is not enough to have money
-- (src/ledger/balance-macs.ts).
alter table balances add column mac text;
