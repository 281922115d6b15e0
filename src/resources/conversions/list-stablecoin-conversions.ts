import { EXAMPLE } from '../../contract/example-records.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import { CONVERSION_COLUMNS, conversionOf, IS_CONVERSION, StablecoinConversion } from './conversion.ts'

export const listStablecoinConversions = listOperation({
  url: '/v2/conversion/stablecoins',
  scope: 'conversion:read_conversion_stablecoin',
  tag: 'Conversions',
  summary: 'List Stablecoin Conversions',
  description: "Lists the customer's conversions, newest first.",
  example: { query: { profile_id: [EXAMPLE.profile_id], limit: 10 } },
  list: 'conversions',
  item: StablecoinConversion,
  select: `select ${CONVERSION_COLUMNS} from transfers`,
  filters: {
    profile_id: filterBy.ids('profile_id', 'Filter by profiles.'),
    ref_id: filterBy.texts('ref_id', 'Filter by ref_ids.'),
  },
  updatedAt: 'updated_at',
  where: () => [[`(${IS_CONVERSION} and ?)`, true]],
  toWire: conversionOf,
})
