-- A name for people, and when the client last took an access token. The MAC of the row covers neither: no decision rests on them.
alter table api_clients add column name text, add column last_used_at timestamptz;
