-- A rotated client accepts its previous secret until a time.
alter table api_clients
  add column previous_secret_hash bytea,
  add column previous_secret_expires_at timestamptz,
  add column updated_at timestamptz;
update api_clients set updated_at = greatest(created_at, disabled_at);
alter table api_clients alter column updated_at set not null;
