import type { Queryable } from '../../db/database.ts'
import { firstIdAt, momentAt } from '../../db/ids.ts'
import { faultOfLink } from './audit-chains.ts'
import { WITHDRAWAL_TYPES } from '../../contract/payout-sql.ts'

/** The checks of `bursar verify` and `bursar audit verify`, for one transfer. Each reads the index of its records only. */

interface Check {
  check: 'SUMS_TO_ZERO' | 'BALANCES_FOLLOW' | 'POSTINGS_OF_STATUS' | 'AUDIT_CHAIN'
  holds: boolean
  detail: string
}

/** Makes the checks of a transfer. Call it in one snapshot, with a transfer that exists. */
export async function checkTransfer(tx: Queryable, customerId: string, id: string): Promise<Check[]> {
  return [
    await checkSums(tx, customerId, id),
    await checkBalances(tx, customerId, id),
    await checkPostings(tx, customerId, id),
    await checkAudit(tx, customerId, id),
  ]
}

async function checkSums(tx: Queryable, customerId: string, id: string): Promise<Check> {
  const { rows } = await tx.query<{ event: string; asset: string; entries: number; sum: string }>(
    `
    select event, asset, count(*)::int as entries, trim_scale(sum(amount))::text as sum
    from entries
    where customer_id = $1 and transfer_id = $2
    group by event, asset
    order by event, asset`,
    [customerId, id],
  )
  const wrong = rows.filter(({ sum }) => sum !== '0')
  return {
    check: 'SUMS_TO_ZERO',
    holds: wrong.length === 0,
    detail:
      wrong.map(({ event, asset, sum }) => `${event}: ${asset} sums to ${sum}`).join('; ') ||
      rows
        .map(({ event, asset, entries }) => `${event}: ${entries} entries in ${asset} sum to 0`)
        .join('; ') ||
      'no entries',
  }
}

async function checkBalances(tx: Queryable, customerId: string, id: string): Promise<Check> {
  const { rows } = await tx.query<{
    place: string
    balance_after: string
    expected: string
    follows: boolean
  }>(
    `
    select format('%s %s of profile %s', e.asset, e.version, e.profile_id) as place,
           trim_scale(e.balance_after)::text as balance_after,
           trim_scale(coalesce(before.balance_after, 0) + e.amount)::text as expected,
           e.balance_after = coalesce(before.balance_after, 0) + e.amount
             and (e.version = 1) = (before.version is null) as follows
    from entries e
    left join lateral (
      select balance_after, version
      from entries
      where customer_id = $1 and profile_id = e.profile_id and asset = e.asset
        and created_at <= e.created_at and version = e.version - 1
      order by created_at desc
      limit 1
    ) before on true
    where e.customer_id = $1 and e.transfer_id = $2 and e.profile_id is not null
    order by e.created_at, e.version`,
    [customerId, id],
  )
  const wrong = rows.filter(({ follows }) => !follows)
  return {
    check: 'BALANCES_FOLLOW',
    holds: wrong.length === 0,
    detail:
      wrong
        .map(({ place, balance_after, expected }) => `${place}: ${balance_after}, expected ${expected}`)
        .join('; ') ||
      rows
        .map(({ place, balance_after }) => `${place}: ${balance_after} follows from the entry before`)
        .join('; ') ||
      'no balance was changed',
  }
}

async function checkPostings(tx: Queryable, customerId: string, id: string): Promise<Check> {
  const { rows } = await tx.query<{ type: string; status: string; events: string; expected: string }>(
    `
    select t.type, t.status, coalesce(e.events, 'none') as events,
           case
             -- A deposit has no entries until it is credited.
             when t.type in ('CRYPTO_DEPOSIT', 'WIRE_DEPOSIT') and t.status <> 'COMPLETED' then 'none'
             when t.status = 'FAILED' then 'CREATED, REFUNDED'
             when t.status = 'COMPLETED' and t.type in ${WITHDRAWAL_TYPES} then 'CREATED, SETTLED'
             else 'CREATED'
           end as expected
    from transfers t
    left join lateral (
      select string_agg(distinct event, ', ' order by event) as events
      from entries
      where customer_id = $1 and transfer_id = $2
    ) e on true
    where t.customer_id = $1 and t.id = $2`,
    [customerId, id],
  )
  const { type, status, events, expected } = rows[0]!
  return {
    check: 'POSTINGS_OF_STATUS',
    holds: events === expected,
    detail: `a ${type} that is ${status} has the postings ${events}${events === expected ? '' : `, expected ${expected}`}`,
  }
}

async function checkAudit(tx: Queryable, customerId: string, id: string): Promise<Check> {
  const moments = await tx.query<{ event: string; created_at: string; covered: boolean }>(
    `
    select distinct e.event, e.created_at, e.created_at >= h.covered_from as covered
    from entries e
    join audit_heads h on h.customer_id = $1
    where e.customer_id = $1 and e.transfer_id = $2
    order by e.created_at`,
    [customerId, id],
  )
  const micros = moments.rows.map(({ created_at }) => momentAt(created_at).micros)
  const { rows } = await tx.query<{ ledger_event: string | null; position: string }>(
    `
    select r.ledger_event, r.position
    from unnest($3::uuid[], $4::uuid[]) as ranges (id_from, id_to)
    join audit_log r on r.customer_id = $1 and r.id >= ranges.id_from and r.id < ranges.id_to
    where r.subject_ids @> array[$2::uuid]`,
    // Ids of the log begin with the moment of the change.
    [customerId, id, micros.map((from) => firstIdAt(from)), micros.map((from) => firstIdAt(from + 1))],
  )
  const faults: string[] = []
  const links: string[] = []
  for (const { event, covered } of moments.rows) {
    const position = rows.find(({ ledger_event }) => ledger_event === event)?.position
    if (position === undefined) {
      if (covered) faults.push(`no record of the audit log covers the ${event} entries`)
      continue
    }
    const fault = await faultOfLink(tx, customerId, Number(position))
    if (fault === undefined) links.push(position)
    else faults.push(fault)
  }
  return {
    check: 'AUDIT_CHAIN',
    holds: faults.length === 0,
    detail:
      faults.join('; ') ||
      (links.length === 0
        ? 'the entries are from before the audit log'
        : `link ${links.join(' and ')} of the chain has the entries as they were written, and follows from the link before it`),
  }
}
