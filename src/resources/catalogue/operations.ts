import type { Operation } from '../../http/operation.ts'
import { listAssets } from './list-assets.ts'
import { listNetworks } from './list-networks.ts'

export const CATALOGUE_OPERATIONS: readonly Operation[] = [listAssets, listNetworks]
