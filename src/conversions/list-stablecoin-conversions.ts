import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import { CONVERSION_COLUMNS, conversionOf, IS_CONVERSION, StablecoinConversion } from './conversion.ts'

/** Lists the customer's conversions, by creation time (API behaviour, Stablecoin conversions). */
export const listStablecoinConversions = operation({
  method: 'GET',
  url: '/v2/conversion/stablecoins',
  scope: 'conversion:read_conversion_stablecoin',
  tag: 'Conversions',
  summary: 'List Stablecoin Conversions',
  description: "Lists the customer's conversions, newest first.",
  example: { query: { profile_id: [EXAMPLE.profile_id], limit: 10 } },
  query: Type.Object(
    {
      profile_id: Filter(FilterValue, 'Filter by profiles.'),
      ref_id: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(StablecoinConversion),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'conversions',
      select: `select ${CONVERSION_COLUMNS} from transfers`,
      where: [
        [`(${IS_CONVERSION} and ?)`, true],
        ['profile_id = any (?::uuid[])', uuidsOf(query.profile_id)],
        ['ref_id = any (?)', query.ref_id],
      ],
      toWire: conversionOf,
    }),
})
