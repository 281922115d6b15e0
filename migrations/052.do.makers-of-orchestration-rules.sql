-- The API client or operator that made a rule: the initiator of the transfers that the rule makes, for policy and approvals.
-- Null: the rule was made before actors were recorded.
alter table orchestration_rules add column created_by jsonb;
