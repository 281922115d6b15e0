-- Which clients, operators and sessions ended lately: each process reads it once a second (client-standing.ts). No payment writes such a row.
create index if not exists audit_log_ends on audit_log (created_at)
  where action in ('api_client.disable', 'api_client.delete', 'operator.disable', 'operator.set_role', 'session.revoke');
