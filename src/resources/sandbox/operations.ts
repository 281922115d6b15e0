import type { Operation } from '../../http/operation.ts'
import { depositToProfile } from './deposit-to-profile.ts'
import { initiateFiatDeposit } from './initiate-fiat-deposit.ts'

export const SANDBOX_OPERATIONS: readonly Operation[] = [initiateFiatDeposit, depositToProfile]
