import { EXAMPLE } from '../../contract/example-records.ts'
import { problem } from '../../contract/problems.ts'
import { readOperation } from '../operation.ts'
import {
  CONVERSION_COLUMNS,
  conversionOf,
  IS_CONVERSION,
  StablecoinConversion,
  type ConversionRow,
} from './conversion.ts'

export const getStablecoinConversion = readOperation({
  url: '/v2/conversion/stablecoins/:id',
  scope: 'conversion:read_conversion_stablecoin',
  tag: 'Conversions',
  summary: 'Get Stablecoin Conversion',
  description: 'Reads one conversion.',
  id: 'Id of the conversion.',
  example: EXAMPLE.transfer_id,
  reply: StablecoinConversion,
  async run({ params, customerId, db }) {
    const { rows } = await db.query<ConversionRow>(
      `select ${CONVERSION_COLUMNS} from transfers where customer_id = $1 and id = $2 and ${IS_CONVERSION}`,
      [customerId, params.id],
    )
    if (rows[0] === undefined) throw problem.notFound('conversion', params.id)
    return conversionOf(rows[0])
  },
})
