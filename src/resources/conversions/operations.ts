import type { Operation } from '../../http/operation.ts'
import { createStablecoinConversion } from './create-stablecoin-conversion.ts'
import { getStablecoinConversion } from './get-stablecoin-conversion.ts'
import { listStablecoinConversions } from './list-stablecoin-conversions.ts'

export const CONVERSION_OPERATIONS: readonly Operation[] = [
  createStablecoinConversion,
  listStablecoinConversions,
  getStablecoinConversion,
]
