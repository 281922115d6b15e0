-- What was recorded of a deposit, and that it was credited, holds against whoever has the service's database role: a recorded deposit
-- carries a MAC (src/records/row-macs.ts), and a credited one has a row here that this role can neither change nor delete.
create table credited_deposits (
  customer_id uuid not null,
  network text not null,
  crypto_tx_hash text not null,
  crypto_tx_index text not null,
  transfer_id uuid not null,
  primary key (customer_id, network, crypto_tx_hash, crypto_tx_index)
);

insert into credited_deposits (customer_id, network, crypto_tx_hash, crypto_tx_index, transfer_id)
select customer_id, crypto_network, crypto_tx_hash, crypto_tx_index, id
from transfers
where type = 'CRYPTO_DEPOSIT' and status = 'COMPLETED' and crypto_tx_hash is not null and crypto_tx_index is not null;

-- A log has another index after its transaction was mined again in another block.
insert into credited_deposits (customer_id, network, crypto_tx_hash, crypto_tx_index, transfer_id)
select customer_id, network, crypto_tx_hash, crypto_tx_index, transfer_id
from incoming_transfers
where state in ('CREDITED', 'REORGANISED')
on conflict do nothing;

alter table incoming_transfers add column sealed_at timestamptz;
alter table incoming_transfers add column mac text;
