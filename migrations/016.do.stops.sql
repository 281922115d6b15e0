-- The ledger asks with each batch what is frozen of one customer: its own freeze and those of its profiles.
create index freezes_of_customer on freezes (split_part(subject, '/', 1)) where kind in ('CUSTOMER', 'PROFILE');

-- Each process asks every second which clients were disabled while a token of theirs may be good.
create index api_clients_disabled on api_clients (disabled_at) where disabled_at is not null;
