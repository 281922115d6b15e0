import type { Operation } from '../../http/operation.ts'
import { searchRecords } from './search-records.ts'

export const SEARCH_OPERATIONS: readonly Operation[] = [searchRecords]
