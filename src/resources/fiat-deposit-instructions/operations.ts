import type { Operation } from '../../http/operation.ts'
import { createFiatDepositInstructions } from './create-fiat-deposit-instructions.ts'
import { getFiatDepositInstructions } from './get-fiat-deposit-instructions.ts'
import { listFiatDepositInstructions } from './list-fiat-deposit-instructions.ts'

export const FIAT_DEPOSIT_INSTRUCTIONS_OPERATIONS: readonly Operation[] = [
  createFiatDepositInstructions,
  listFiatDepositInstructions,
  getFiatDepositInstructions,
]
