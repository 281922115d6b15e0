-- What may not move money out: everything, a network, a customer or a profile. Each row is one reason; a target stays
-- frozen until its last reason is lifted. An operator sets OPERATOR; the worker sets the others, each with what it saw.
create table freezes (
  kind text not null constraint freezes_kind check (kind in ('ALL', 'NETWORK', 'CUSTOMER', 'PROFILE')),
  subject text not null, -- '', the network's name, the customer's id, or '<customer id>/<profile id>'
  reason text not null,
  detail text not null,
  created_at timestamptz not null,
  primary key (kind, subject, reason)
);
