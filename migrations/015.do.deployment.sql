-- The deployment that this database belongs to: its mode for good, and in live mode the issuer of its tokens. At most one row.
create table deployment (
  id smallint primary key constraint deployment_one_row check (id = 1),
  mode text not null constraint deployment_mode check (mode in ('sandbox', 'live')),
  issuer text constraint deployment_issuer check (issuer is null or mode = 'live'),
  stamped_at timestamptz not null
);

-- The command line knows an identity's id and nothing else.
create index identities_id on identities (id);
