-- An approver may be a client of an external issuer, which names its clients as it likes. The last run of bursar verify is seen by
-- metrics, alerts and bursar doctor.
do $$
begin
  alter table approvers alter column client_id type text;
  alter table deployment add column if not exists verified_at timestamptz,
    add column if not exists verify_findings integer;
end
$$;
