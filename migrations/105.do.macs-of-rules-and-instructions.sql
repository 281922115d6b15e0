-- An orchestration rule, and the instructions that a wire is credited by, carry a MAC with a key that is not in the database, so that
-- write access to the database is not enough to send on what others are paid, or to have it (src/records/row-macs.ts).
alter table orchestration_rules add column sealed_at timestamptz;
alter table orchestration_rules add column mac text;
alter table fiat_deposit_instructions add column sealed_at timestamptz;
alter table fiat_deposit_instructions add column mac text;
