-- The people who may approve, each with the public key of a key file or a passkey. Only the schema's owner writes this
-- table: neither the service's role nor a process of the service can make an approver (docs/decisions/governance.md).
create table approvers (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  name text not null,
  -- The same person as an operator, and as an API client.
  operator_id uuid,
  client_id uuid,
  role text not null,
  -- {kty, crv, x, y?}: a public key as RFC 7517 writes it. Of a passkey also {credential_id, rp_id}.
  key jsonb not null,
  -- The SHA-256 of the key (RFC 7638).
  thumbprint text not null,
  -- ACTIVE or REVOKED.
  status text not null,
  revoked_at timestamptz,
  constraint approvers_pkey primary key (customer_id, id),
  constraint approvers_revoked check ((status = 'REVOKED') = (revoked_at is not null))
);
create unique index approvers_key on approvers (customer_id, thumbprint) where status = 'ACTIVE';

-- A withdrawal or a change that waits for approvers. Of a withdrawal, its MAC covers the columns that approvers sign.
create table approvals (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  -- The withdrawal; null for a change.
  transfer_id uuid,
  -- The change: {subject, operation, target {type, id}, values}. Secrets are in it as their SHA-256.
  change jsonb,
  -- The SHA-256 of the change. Repeated requests for one change share an approval.
  change_digest text,
  -- How many approvers are needed, and of which role.
  required smallint not null,
  role text not null,
  rule_id text,
  policy_version bigint not null,
  initiator_type text not null,
  initiator_id text not null,
  deadline timestamptz not null,
  -- PENDING, APPROVED, REJECTED, EXPIRED, CANCELLED; of a change also USED.
  status text not null,
  approved_at timestamptz,
  ended_at timestamptz,
  constraint approvals_pkey primary key (customer_id, id),
  constraint approvals_subject check ((transfer_id is null) = (change is not null) and (change is null) = (change_digest is null))
);
create unique index approvals_transfer on approvals (customer_id, transfer_id) where transfer_id is not null;
create unique index approvals_change on approvals (customer_id, change_digest)
where change_digest is not null and status in ('PENDING', 'APPROVED');
-- The deadlines of changes. Those of withdrawals are in outgoing_transfers.
create index approvals_open on approvals (customer_id, deadline) where change is not null and status in ('PENDING', 'APPROVED');

-- The signed statements of approvers, as they were sent. Append-only. Only signatures count, not rows: a forged row neither
-- approves nor keeps the approver from deciding.
create table approval_decisions (
  customer_id uuid not null,
  approval_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  approver_id uuid not null,
  -- APPROVE or REJECT.
  decision text not null,
  -- {jws}, or {passkey {authenticator_data, client_data_json, signature}}.
  signed jsonb not null,
  constraint approval_decisions_pkey primary key (customer_id, approval_id, id)
);
