import type { Operation } from '../../http/operation.ts'
import { listDestinationAddresses } from './list-destination-addresses.ts'
import { putDestinationAddress } from './put-destination-address.ts'

export const DESTINATION_ADDRESS_OPERATIONS: readonly Operation[] = [
  putDestinationAddress,
  listDestinationAddresses,
]
