import type { Operation } from '../../http/operation.ts'
import { createFiatAccount } from './create-fiat-account.ts'
import { deleteFiatAccount } from './delete-fiat-account.ts'
import { getFiatAccount } from './get-fiat-account.ts'
import { listFiatAccounts } from './list-fiat-accounts.ts'
import { updateFiatAccount } from './update-fiat-account.ts'

export const FIAT_ACCOUNT_OPERATIONS: readonly Operation[] = [
  createFiatAccount,
  listFiatAccounts,
  getFiatAccount,
  updateFiatAccount,
  deleteFiatAccount,
]
