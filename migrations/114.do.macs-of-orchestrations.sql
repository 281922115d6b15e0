-- An orchestration that is to be paid carries a MAC with a key that is not in the database, so that write access to the database is
-- not enough to have one paid that nobody ordered.
alter table orchestrations add column mac text;
