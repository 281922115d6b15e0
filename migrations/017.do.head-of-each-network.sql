-- One signer has the keys of a network, whatever its family: the head of its journal is kept by network.
alter table wallet_checks alter column checked_block drop not null;
alter table wallet_checks add column if not exists journal_head text;
insert into wallet_checks (network, journal_head, updated_at)
select distinct on (network) network, journal_head, clock_timestamp() from evm_nonces where journal_head is not null
on conflict (network) do update set journal_head = excluded.journal_head;
alter table evm_nonces drop column if exists journal_head;
