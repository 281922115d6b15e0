-- Operators: people who sign in. An operator acts for any customer, one for each access token, or for one customer only.
create table operators (
  id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  name text not null,
  role text not null,
  -- The only customer that it may act for.
  customer_id uuid,
  -- Its account at an OpenID provider. A subject is unique only within its issuer.
  openid_issuer text,
  openid_subject text,
  disabled_at timestamptz,
  -- Raised when the role changes and when it is disabled. Access tokens of an earlier generation are refused.
  generation integer not null,
  constraint operators_pkey primary key (id),
  constraint operators_openid unique (openid_issuer, openid_subject),
  constraint operators_openid_whole check ((openid_issuer is null) = (openid_subject is null)),
  constraint operators_role check (role in ('VIEWER', 'OPERATOR', 'APPROVER', 'ADMIN'))
);

-- One-time links. Only the hash of the secret is stored.
create table operator_links (
  hash bytea not null,
  operator_id uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  constraint operator_links_pkey primary key (hash)
);
create index operator_links_operator on operator_links (operator_id);

-- What an operator signs in with on its devices (Web Authentication).
create table operator_passkeys (
  id uuid not null,
  operator_id uuid not null,
  created_at timestamptz not null,
  used_at timestamptz,
  name text not null,
  -- In base64url, as browsers send it.
  credential_id text not null,
  public_key bytea not null,
  -- The authenticator's counter of signatures: one that falls shows a copied passkey. Many authenticators always send 0.
  signatures bigint not null,
  transports text[] not null,
  removed_at timestamptz,
  constraint operator_passkeys_pkey primary key (id),
  constraint operator_passkeys_credential_id unique (credential_id)
);
create index operator_passkeys_operator on operator_passkeys (operator_id, id);

create table operator_sessions (
  id uuid not null,
  operator_id uuid not null,
  created_at timestamptz not null,
  -- The latest access token. A session that takes none for an hour ends.
  used_at timestamptz not null,
  expires_at timestamptz not null,
  secret_hash bytea not null,
  method text not null,
  passkey_id uuid,
  ended_at timestamptz,
  constraint operator_sessions_pkey primary key (id),
  constraint operator_sessions_secret_hash unique (secret_hash),
  constraint operator_sessions_method check (method in ('LINK', 'PASSKEY', 'OPENID'))
);
create index operator_sessions_operator on operator_sessions (operator_id, id);
-- Every process reads the sessions that ended lately, each second.
create index operator_sessions_ended on operator_sessions (ended_at) where ended_at is not null;

-- Challenges of passkeys and of an OpenID provider that were answered: each is answered once. A row is deleted when its
-- challenge has expired.
create table operator_challenges (
  hash bytea not null,
  expires_at timestamptz not null,
  constraint operator_challenges_pkey primary key (hash)
);
create index operator_challenges_expires_at on operator_challenges (expires_at);

-- The service checks this, too. Here it also holds for a statement made by hand.
alter table api_clients add constraint api_clients_scopes check (array_to_string(scopes, ' ') !~ '(^| )operators:');
