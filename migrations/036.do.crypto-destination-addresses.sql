-- The address book: crypto addresses of others that a customer pays.
create table crypto_destination_addresses (
  customer_id uuid not null,
  id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  identity_id uuid,
  crypto_network text not null,
  -- As it was sent, and in its canonical form, by which it is unique.
  address text not null,
  canonical_address text not null,
  nickname text not null,
  bookmarked boolean not null,
  travelrule_metadata jsonb,
  status text not null,
  constraint crypto_destination_addresses_pkey primary key (customer_id, id),
  constraint crypto_destination_addresses_identity_fkey
    foreign key (customer_id, identity_id) references identities (customer_id, id),
  constraint crypto_destination_addresses_status check (status in ('PENDING', 'APPROVED', 'REJECTED'))
);
create unique index crypto_destination_addresses_address on crypto_destination_addresses (
  customer_id, crypto_network, canonical_address, (coalesce(identity_id, '00000000-0000-0000-0000-000000000000'))
);
