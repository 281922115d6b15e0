-- With whom a kept transaction pays is only ever added to: whoever could remove it could have a withdrawal signed twice. So
-- the service's role may not update it, and this function of the schema's owner adds the payees of a transaction that an
-- operator says paid more than what it was kept for.
create function add_payees(network text, hash text, customer_ids uuid[], transfer_ids uuid[]) returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
  update public.network_transactions n
  set customer_ids = n.customer_ids || add_payees.customer_ids, transfer_ids = n.transfer_ids || add_payees.transfer_ids,
      ended_at = null
  where n.network = add_payees.network and n.crypto_tx_hash = add_payees.hash
$$;
