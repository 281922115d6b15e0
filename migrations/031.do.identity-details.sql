-- What clients tell of an identity beside its details, and the persons who stand behind an institution.

alter table identities
  add column tax_details jsonb,
  add column tax_details_not_required boolean,
  add column customer_due_diligence jsonb,
  add column is_merchant boolean,
  add column last_kyc_refresh_date timestamptz,
  -- In a sandbox: the simulated result of each check, from which the status follows.
  add column sandbox_checks jsonb;

create table institution_members (
  customer_id uuid not null,
  id uuid not null,
  institution_id uuid not null,
  identity_id uuid not null,
  roles text[] not null,
  ownership text,
  position text,
  name text,
  primary key (customer_id, id),
  constraint institution_members_identity unique (customer_id, institution_id, identity_id),
  foreign key (customer_id, institution_id) references identities,
  foreign key (customer_id, identity_id) references identities
);
