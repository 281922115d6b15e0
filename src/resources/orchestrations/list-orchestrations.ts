import type { Static, TObject } from 'typebox'
import type { Database } from '../../db/database.ts'
import { firstIdAt } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Filter, FilterValue, FilterWithoutCommas, OneOf } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { pageParameters, uuidsOf, type PageRequest } from '../../http/lists.ts'
import type { TimeRange } from '../../http/time-bounds.ts'
import { listOperation } from '../list-operation.ts'
import {
  Orchestration,
  ORCHESTRATION_COLUMNS,
  idOfRefId,
  OrchestrationStatus,
  orchestrationToWire,
  type OrchestrationRow,
} from '../../money/records/orchestration.ts'

/** Clients written for other platforms also ask for statuses that no orchestration has here. */
const StatusFilter = OneOf([...OrchestrationStatus.enum, 'PENDING', 'REJECTED'], 'Status.')

const PARAMETERS = {
  orchestration_rule_id: Filter(FilterValue, 'Filter by initiating rule ids.'),
  source_asset: Filter(FilterValue, 'Filter by source assets.'),
  destination_asset: Filter(FilterValue, 'Filter by destination assets.'),
  status: Filter(StatusFilter, 'Filter by statuses. No orchestration is PENDING or REJECTED.'),
  ref_id: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
  orchestration_id: Filter(FilterValue, 'Filter by orchestration ids.'),
  profile_id: Filter(FilterValue, 'Filter by target profiles.'),
}
type ListOrchestrationsQuery = Static<TObject<typeof PARAMETERS>>

export const listOrchestrations = listOperation({
  url: '/v2/orchestration/orchestrations',
  scope: 'orchestration:read_orchestration',
  tag: 'Orchestrations',
  summary: 'List Orchestrations',
  description: 'Lists orchestrations, newest first. Filters combine: a record must pass each of them.',
  example: { query: { orchestration_rule_id: [EXAMPLE.orchestration_rule_id], limit: 10 } },
  list: 'orchestrations',
  item: Orchestration,
  names: ['items', 'orchestrations'],
  parameters: PARAMETERS,
  page: pageParameters,
  check({ query }) {
    requireKnownAssets('source_asset', query.source_asset)
    requireKnownAssets('destination_asset', query.destination_asset)
  },
  read: ({ query, customerId, db }, page, created) =>
    selectOrchestrations(db, customerId, query, page, created),
  toWire: orchestrationToWire,
})

/**
 * Reads a page of orchestrations plus one more row. Ids sort by creation time. A stream is a part of an index that is
 * in the order of the list and holds only matching records. However rare the matches, at most a page of each stream
 * is read. The streams alone state their conditions: a repeated condition misleads the planner (20 ms became 1,600).
 */
async function selectOrchestrations(
  db: Database,
  customerId: string,
  query: ListOrchestrationsQuery,
  page: PageRequest,
  created: TimeRange,
): Promise<OrchestrationRow[]> {
  const direction = page.descending ? 'desc' : 'asc'
  const { streams, inStream } = streamsFor(query)
  const { rows } = await db.query<OrchestrationRow>(
    `
    with recursive ${FILTERS}, ${streams}, found as (
      select page.id
      from streams s
      cross join lateral (
        select o.id
        from orchestrations o
        where o.customer_id = $1 and ${inStream}
          and o.id >= $2 and o.id < $3
          and ($4::uuid is null or o.id ${page.descending ? '<' : '>'} $4)
        order by o.id ${direction}
        limit $5
      ) page
      order by page.id ${direction}
      limit $5
    )
    select ${ORCHESTRATION_COLUMNS}
    from found
    join orchestrations o on o.customer_id = $1 and o.id = found.id
    order by o.id ${direction}`,
    [
      customerId,
      firstIdAt(created.from),
      firstIdAt(created.to),
      page.after?.[0],
      page.limit + 1,
      query.source_asset,
      query.destination_asset,
      query.status,
      uuidsOf(query.profile_id),
      uuidsOf(query.orchestration_rule_id),
      uuidsOf(query.orchestration_id),
      query.ref_id,
      query.ref_id?.flatMap((refId) => idOfRefId(refId) ?? []),
    ],
  )
  return rows
}

// PostgreSQL needs the type of each parameter, even of parameters that the streams do not use.
const FILTERS = `
  filters as (
    select $6::text[] as source_asset, $7::text[] as destination_asset, $8::text[] as status,
           $9::uuid[] as profile_id, $10::uuid[] as rule_id, $11::uuid[] as id, $12::text[] as ref_id,
           $13::uuid[] as id_of_ref_id
  )`

/** Chooses the index streams for a query by its most selective filter. */
function streamsFor(query: ListOrchestrationsQuery): { streams: string; inStream: string } {
  if (query.orchestration_id !== undefined || query.ref_id !== undefined) {
    return {
      streams: query.orchestration_id === undefined ? STREAMS_BY_REF_ID : STREAMS_BY_ID,
      inStream: `
        o.id = s.id
          and ($12::text[] is null or o.ref_id = any ($12) or (o.id = any ($13) and ${HAS_REF_ID_OF_RULE}))
          and ($6::text[] is null or o.source_asset = any ($6))
          and ($7::text[] is null or o.destination_asset = any ($7))
          and ($8::text[] is null or o.status = any ($8))
          and ($9::uuid[] is null or o.profile_id = any ($9))
          and ($10::uuid[] is null or o.orchestration_rule_id = any ($10))`,
    }
  }
  if (query.orchestration_rule_id !== undefined) {
    // The orchestrations of a rule have the rule's assets and profile.
    return {
      streams: `
        streams as (
          select r.id, its.status
          from orchestration_rules r
          cross join unnest(array['PROCESSING', 'COMPLETED', 'FAILED']) as its (status)
          where r.customer_id = $1 and r.id = any ($10::uuid[])
            and ($6::text[] is null or r.source_asset = any ($6))
            and ($7::text[] is null or r.destination_asset = any ($7))
            and ($8::text[] is null or its.status = any ($8))
            and ($9::uuid[] is null or r.profile_id = any ($9))
        )`,
      inStream: 'o.orchestration_rule_id = s.id and o.status = s.status',
    }
  }
  if (query.profile_id !== undefined) {
    return {
      streams: streamsOfKinds({
        start: 'from (select distinct id from unnest($9::uuid[]) as id) p',
        of: 'profile_id = p.id and',
        next: 'profile_id = k.profile_id and',
      }),
      inStream: `o.profile_id = s.profile_id and ${OF_KIND}`,
    }
  }
  const { source_asset, destination_asset, status } = query
  if (source_asset ?? destination_asset ?? status) {
    return {
      streams: streamsOfKinds({ start: 'from (values (0)) once', of: '', next: '' }),
      inStream: OF_KIND,
    }
  }
  return { streams: 'streams as (select)', inStream: 'true' }
}

const STREAMS_BY_ID = 'streams as (select distinct id from unnest($11::uuid[]) as id)'
/** The ref_id of a rule's orchestration is derived from the orchestration's id. */
const HAS_REF_ID_OF_RULE = 'o.ref_id is null and o.orchestration_rule_id is not null'
const STREAMS_BY_REF_ID = `
  streams as (
    select id from orchestrations where customer_id = $1 and ref_id = any ($12)
    union
    select id from unnest($13::uuid[]) as id
  )`

const OF_KIND =
  'o.source_asset = s.source_asset and o.destination_asset = s.destination_asset and o.status = s.status'

/**
 * The existing kinds of orchestrations (assets and status). There are few kinds. One look-up finds each kind after the
 * previous one, in the index that begins with these columns.
 */
const streamsOfKinds = ({ start, of, next }: { start: string; of: string; next: string }) => `
  kinds as (
    select first.*
    ${start}
    cross join lateral (
      select profile_id, source_asset, destination_asset, status
      from orchestrations
      where ${of} customer_id = $1
      order by source_asset, destination_asset, status
      limit 1
    ) first
    union all
    select next.*
    from kinds k
    cross join lateral (
      select profile_id, source_asset, destination_asset, status
      from orchestrations
      where ${next} customer_id = $1
        and (source_asset, destination_asset, status) > (k.source_asset, k.destination_asset, k.status)
      order by source_asset, destination_asset, status
      limit 1
    ) next
  ), streams as (
    select *
    from kinds
    where ($6::text[] is null or source_asset = any ($6))
      and ($7::text[] is null or destination_asset = any ($7))
      and ($8::text[] is null or status = any ($8))
  )`
