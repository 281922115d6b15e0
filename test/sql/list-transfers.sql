-- Written by test/generated-sql.db.test.ts, for readers. Parameters are $1, $2 and so on.

select t.id, t.customer_id, t.profile_id, t.identity_id, t.account_id, t.ref_id, t.type, t.direction, t.status, t.secondary_status, t.status_details, t.asset, t.balance_asset, t.amount, t.fee, t.total, t.notional_value, t.destination_address, t.crypto_network, t.crypto_tx_hash, t.crypto_tx_index, t.auto_conversion, t.group_id, t.fiat_account_id, t.memo,
case when t.type in ('WIRE_DEPOSIT', 'WIRE_WITHDRAWAL') then coalesce(
  (select w.bank_reference from bank_wires w where w.transfer_id = t.id),
  (select s.crypto_tx_hash from seen_deposits s
   where s.customer_id = $1 and s.transfer_id = t.id and s.network = 'WIRE')) end as bank_reference, t.metadata, t.created_at, t.updated_at from transfers t
    join transfer_metadata m0 on m0.customer_id = $1 and m0.transfer_id = t.id
    join transfer_metadata m1 on m1.customer_id = $1 and m1.transfer_id = t.id
    where t.customer_id = $1
      and t.id >= $2
      and t.id < $3
      and m0.transfer_id >= $4
      and m0.transfer_id < $5
      and m1.transfer_id >= $6
      and m1.transfer_id < $7
      and t.updated_at >= $8::timestamptz
      and t.updated_at < $9::timestamptz
      and m0.key = $10 and m0.value = $11
      and m1.key = $12 and m1.value = $13
      and t.updated_at >= $14::timestamptz
      and t.updated_at < $15::timestamptz
      and t.memo = $16
    order by t.updated_at desc, t.id desc
    limit 101;
