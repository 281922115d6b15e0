-- The identity and account that a rule's orchestrations, and their transfers, are made for.
alter table orchestration_rules add column identity_id uuid;
alter table orchestration_rules add column account_id uuid;
