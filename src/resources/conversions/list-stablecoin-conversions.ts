import { EXAMPLE } from '../../contract/example-records.ts'
import { timeBounds, timeConditions } from '../../http/lists.ts'
import { filterBy, listOperation } from '../operation.ts'
import { CONVERSION_COLUMNS, conversionOf, IS_CONVERSION, StablecoinConversion } from './conversion.ts'

export const listStablecoinConversions = listOperation({
  url: '/v2/conversion/stablecoins',
  scope: 'conversion:read_conversion_stablecoin',
  tag: 'Conversions',
  summary: 'List Stablecoin Conversions',
  description: "Lists the customer's conversions, newest first.",
  example: { profile_id: [EXAMPLE.profile_id], limit: 10 },
  list: 'conversions',
  item: StablecoinConversion,
  select: `select ${CONVERSION_COLUMNS} from transfers`,
  filters: {
    profile_id: filterBy.ids('profile_id', 'Filter by profiles.'),
    ref_id: filterBy.texts('ref_id', 'Filter by ref_ids.'),
  },
  parameters: timeBounds('updated_at'),
  where: (query) => [[`(${IS_CONVERSION} and ?)`, true], ...timeConditions(query, 'updated_at')],
  toWire: conversionOf,
})
