-- The keys that sign access tokens, encrypted: a JWE (RFC 7516) whose content is the private key as a JWK. What
-- private_jwk holds in plain text is encrypted by the step of this migration that has the master key (src/upgrade.ts).
alter table signing_keys
  alter column private_jwk drop not null,
  add column encrypted_jwk text, -- gone once the key is retired
  add column signs_from timestamptz, -- of those whose time has come, the newest one signs
  add column retired_at timestamptz; -- from then on its tokens are refused
update signing_keys set signs_from = created_at;
alter table signing_keys
  alter column signs_from set not null,
  add constraint signing_keys_retired check ((encrypted_jwk is null and private_jwk is null) = (retired_at is not null));
