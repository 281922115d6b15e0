-- Rows that authenticate carry a MAC with a key that is not in the database (src/records/row-macs.ts), so that write access to
-- the database is not enough to make one. The MAC covers sealed_at, the moment at which it was made.
do $$
begin
  alter table api_clients add column sealed_at timestamptz, add column mac text;
  alter table operators add column sealed_at timestamptz, add column mac text;
  alter table operator_sessions add column sealed_at timestamptz, add column mac text;
  alter table operator_links add column sealed_at timestamptz, add column mac text;
  alter table operator_passkeys add column sealed_at timestamptz, add column mac text;
end
$$;
