import type { Operation } from '../../http/operation.ts'
import { createDepositAddress } from './create-deposit-address.ts'
import { listDepositAddresses } from './list-deposit-addresses.ts'

export const DEPOSIT_ADDRESS_OPERATIONS: readonly Operation[] = [createDepositAddress, listDepositAddresses]
