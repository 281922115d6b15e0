import { ASSETS } from '../../contract/assets/catalogue.ts'
import { isPayable } from '../records/destination-address.ts'
import { VALUE_DECIMALS } from '../../contract/assets/usd-value.ts'
import { GOVERNED_TYPES } from '../movements/decision.ts'

/**
 * The rules that compare what a policy counts and trusts with the payments (API behaviour, Policy). The service's role
 * writes both, and whoever steals that role could loosen a limit or shorten a cooling time.
 */

/** In SQL: the decimals of each asset. */
const DECIMALS = ASSETS.map(({ symbol, decimals }) => `('${symbol}', ${decimals})`).join(', ')

const GOVERNED = GOVERNED_TYPES.map((type) => `'${type}'`).join(', ')

/**
 * The limits of the newest policy whose payments can be told from the transfers alone. No client, identity or entry of the
 * address book decides whether a payment fits such a limit, and no earlier rule allows payments without counting them.
 */
const CERTAIN_LIMITS = `
  with newest as (
    select document, created_at from policies where customer_id = $1 order by version desc limit 1
  ), rules as (
    select position, created_at, rule ->> 'id' as id, rule ->> 'action' as action,
           coalesce(rule -> 'match', '{}'::jsonb) as match, rule #>> '{limit,asset}' as asset,
           coalesce((rule #>> '{limit,period_seconds}')::bigint, 0) as seconds,
           coalesce(rule #>> '{limit,per}', 'CUSTOMER') as per
    from newest
    cross join lateral jsonb_array_elements(document -> 'rules') with ordinality as listed (rule, position)
  ), certain as (
    select r.*
    from rules r
    where r.seconds > 0 and r.per in ('CUSTOMER', 'PROFILE')
      and not r.match ?| array['client_ids', 'identity_ids'] and coalesce(r.match ->> 'destination', 'ANY') = 'ANY'
      and not exists (select 1 from rules e where e.position < r.position and e.action = 'ALLOW')
  )`

/** An older version may still judge payments for a minute after the newest was made. */
const OLDER_VERSION = "interval '1 minute'"

/** The least share of its value in USD that a payment counts: the transfer's price and the limit's may be some seconds apart. */
const USD_SHARE = '0.9'

export const POLICY_RULES: Record<string, string> = {
  'every window of a limit holds the payments of its period': `${CERTAIN_LIMITS}, made as (
      select c.id, c.asset, c.seconds,
             case c.per when 'PROFILE' then 'PROFILE ' || t.profile_id else 'CUSTOMER' end as subject,
             sum(case
                   when c.asset <> 'USD' then t.total * (10::numeric ^ d.decimals)
                   when t.asset = 'USD' then t.total * (10::numeric ^ ${VALUE_DECIMALS})
                   else ${USD_SHARE} * coalesce(t.notional_value, 0) * (10::numeric ^ ${VALUE_DECIMALS})
                 end) as least
      from certain c
      join transfers t on t.customer_id = $1 and t.type in (${GOVERNED})
        -- The platform's own debit, which takes a reward back.
        and not (t.type = 'PAXOS_TRANSFER_DEBIT'
                 and exists (select 1 from statements s where s.customer_id = $1 and s.id = t.group_id))
        and t.created_at > greatest(now() - make_interval(secs => c.seconds), c.created_at + ${OLDER_VERSION})
        and (c.asset in ('USD', t.asset))
        and (not c.match ? 'transfer_types' or c.match -> 'transfer_types' ? t.type)
        and (not c.match ? 'assets' or c.match -> 'assets' ? t.asset)
        and (not c.match ? 'profile_ids' or c.match -> 'profile_ids' ? t.profile_id::text)
        and (not c.match ? 'networks' or coalesce(
              c.match -> 'networks' ? case t.type when 'WIRE_WITHDRAWAL' then 'WIRE' else t.crypto_network end, false))
      join (values ${DECIMALS}) as d (asset, decimals) on d.asset = t.asset
      -- An earlier rule that asked for approvals has decided: later ones have not counted the payment.
      where not exists (
        select 1 from approvals a
        where a.customer_id = $1 and a.transfer_id = t.id and a.rule_id is distinct from c.id)
      group by 1, 2, 3, 4
    ), counted as (
      select m.*, (
        select coalesce(sum((bucket ->> 1)::numeric), 0)
        from policy_windows w
        -- A value that is no list counts nothing.
        cross join lateral jsonb_path_query(w.buckets, '$[*]') as bucket
        where w.customer_id = $1 and w.rule_id = m.id and w.asset = m.asset and w.subject = m.subject
          and (bucket ->> 0)::numeric > (extract(epoch from now()) - m.seconds) * 1000000
      ) as counted
      from made m
    )
    select format('rule %s, %s: it has counted %s, and payments of at least %s were made (in the smallest unit of %s)', id,
                  subject, counted, trunc(least), asset) as detail
    from counted where counted < trunc(least)`,
  'no address of the address book is approved before its cooling time is over, or after it was rejected': `
    select format('address %s: %s, cooling until %s, approved at %s', id, status, cooling_until, approved_at) as detail
    from crypto_destination_addresses a
    where customer_id = $1 and approved_at is not null
      and (approved_at < cooling_until
           or (status = 'APPROVED' and not ${isPayable('a')}))`,
}
