-- The MAC of a withdrawal over what it pays, made when it was accepted with a key that is not in the database
-- (src/ledger/withdrawal-macs.ts). Withdrawals that had ended before have none; those that are PENDING are given one by
-- the step of this migration that has the master key (src/upgrade.ts).
alter table transfers add column mac text;

-- Signing keys are encrypted since migration 017.
alter table signing_keys
  drop constraint signing_keys_retired,
  add constraint signing_keys_retired check ((encrypted_jwk is null) = (retired_at is not null)),
  drop column private_jwk;
