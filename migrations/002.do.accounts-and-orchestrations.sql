-- Identities and accounts, the places that money comes from and goes to, and orchestrations.

create table identities (
  customer_id uuid not null references customers,
  id uuid not null,
  ref_id text not null,
  type text not null constraint identities_type check (type in ('PERSON', 'INSTITUTION')),
  status text not null
    constraint identities_status check (status in ('PENDING', 'ERROR', 'APPROVED', 'DENIED', 'DISABLED')),
  user_disabled boolean not null default false,
  admin_disabled boolean not null default false,
  details jsonb not null,
  metadata jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (customer_id, id),
  constraint identities_ref_id unique (customer_id, ref_id)
);

-- ref_id is unique among what one API client made (spec 2.5), not in the whole customer.
create table accounts (
  customer_id uuid not null references customers,
  id uuid not null,
  client_id text not null,
  identity_id uuid not null,
  ref_id text,
  type text not null constraint accounts_type
    check (type in ('BROKERAGE', 'TRADITIONAL_IRA', 'ROTH_IRA', 'SEP_IRA', 'FINANCIAL_ADVISOR')),
  description text,
  user_disabled boolean not null default false,
  admin_disabled boolean not null default false,
  metadata jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (customer_id, id),
  constraint accounts_ref_id unique (customer_id, ref_id, client_id),
  foreign key (customer_id, identity_id) references identities
);
-- The command line knows an account id and nothing else.
create index accounts_id on accounts (id);
create index accounts_identity on accounts (customer_id, identity_id, id);

create table account_members (
  customer_id uuid not null,
  id uuid not null,
  account_id uuid not null,
  identity_id uuid not null,
  roles text[] not null,
  primary key (customer_id, id),
  constraint account_members_identity unique (customer_id, account_id, identity_id),
  foreign key (customer_id, account_id) references accounts,
  foreign key (customer_id, identity_id) references identities
);

alter table profiles add foreign key (customer_id, account_id) references accounts;
-- The profile that was made with an account.
create unique index profiles_account on profiles (customer_id, account_id) where account_id is not null;

create table deposit_addresses (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  crypto_network text not null,
  address text not null, -- in canonical form
  conversion_target_asset text not null
    constraint deposit_addresses_conversion check (conversion_target_asset in ('NO_CONVERSION', 'USD')),
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamptz not null,
  primary key (customer_id, id),
  constraint deposit_addresses_address unique (customer_id, address, crypto_network),
  constraint deposit_addresses_ref_id unique (customer_id, ref_id),
  foreign key (customer_id, profile_id) references profiles
);

-- Bank accounts that fiat withdrawals go to.
create table fiat_accounts (
  customer_id uuid not null references customers,
  id uuid not null,
  status text not null constraint fiat_accounts_status check (status in ('PENDING', 'APPROVED', 'REJECTED')),
  fiat_account_owner jsonb not null,
  fiat_network_instructions jsonb not null,
  ref_id text,
  identity_id uuid,
  account_id uuid,
  metadata jsonb,
  created_at timestamptz not null,
  primary key (customer_id, id),
  constraint fiat_accounts_ref_id unique (customer_id, ref_id)
);

-- A wire is sent as a transaction is broadcast: kept before it leaves, and sent again after a crash. Its network
-- is WIRE.
alter table broadcasts rename column crypto_network to network;

-- What a deposit sets off. source_id is the place that the money comes in at: the rule's own deposit instructions
-- or deposit address, or a profile.
create table orchestration_rules (
  customer_id uuid not null,
  id uuid not null,
  ref_id text not null,
  profile_id uuid not null,
  status text not null constraint orchestration_rules_status check (status in ('ACTIVE', 'DELETED')),
  nickname text,
  source_asset text not null,
  destination_asset text not null,
  source jsonb not null,
  destination jsonb not null,
  source_id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (customer_id, id),
  constraint orchestration_rules_ref_id unique (customer_id, ref_id),
  foreign key (customer_id, profile_id) references profiles
);
-- A deposit sets off one rule at most.
create unique index orchestration_rules_source on orchestration_rules (customer_id, source_id, source_asset)
  where status = 'ACTIVE';

-- A movement from a source to a destination (spec 2.3). PROCESSING without a destination transfer, it waits for the
-- worker to make one; with one, for that transfer to end.
create table orchestrations (
  customer_id uuid not null,
  id uuid not null,
  profile_id uuid not null,
  identity_id uuid,
  account_id uuid,
  ref_id text,
  source_asset text not null,
  destination_asset text not null,
  source_amount numeric not null constraint orchestrations_source_amount check (source_amount > 0),
  source_transfer_id uuid,
  destination_transfer_id uuid,
  fail_reason text,
  source jsonb not null,
  destination jsonb not null,
  orchestration_rule_id uuid,
  status text not null constraint orchestrations_status check (status in ('PROCESSING', 'COMPLETED', 'FAILED')),
  metadata jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (customer_id, id),
  constraint orchestrations_ref_id unique (customer_id, ref_id),
  constraint orchestrations_completed check (status <> 'COMPLETED' or destination_transfer_id is not null),
  constraint orchestrations_failed check ((status = 'FAILED') = (fail_reason is not null))
);
-- Each filter of the list has an index that gives its records in the list's order (list-orchestrations.ts).
create index orchestrations_kind on orchestrations (customer_id, source_asset, destination_asset, status, id);
create index orchestrations_profile
  on orchestrations (customer_id, profile_id, source_asset, destination_asset, status, id);
create index orchestrations_rule on orchestrations (customer_id, orchestration_rule_id, status, id)
  where orchestration_rule_id is not null;
-- What the worker still has to pay out, and what waits for a transfer to end.
create index orchestrations_to_pay on orchestrations (customer_id, id)
  where status = 'PROCESSING' and destination_transfer_id is null;
create index orchestrations_paying on orchestrations (customer_id, destination_transfer_id)
  where status = 'PROCESSING' and destination_transfer_id is not null;
