import type { Operation } from '../../http/operation.ts'
import { depositToProfile } from './deposit-to-profile.ts'
import { advanceSandboxClock } from './advance-sandbox-clock.ts'
import { createSandboxCustomer } from './create-sandbox-customer.ts'
import { initiateFiatDeposit } from './initiate-fiat-deposit.ts'
import { resetSandbox } from './reset-sandbox.ts'

export const SANDBOX_OPERATIONS: readonly Operation[] = [
  initiateFiatDeposit,
  depositToProfile,
  createSandboxCustomer,
  advanceSandboxClock,
  resetSandbox,
]
