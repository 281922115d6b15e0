import type { Operation } from '../../http/operation.ts'
import { addAccountMembers } from './add-account-members.ts'
import { createAccount } from './create-account.ts'
import { getAccount } from './get-account.ts'
import { listAccounts } from './list-accounts.ts'
import { removeAccountMember } from './remove-account-member.ts'
import { updateAccount } from './update-account.ts'

export const ACCOUNT_OPERATIONS: readonly Operation[] = [
  getAccount,
  createAccount,
  listAccounts,
  updateAccount,
  addAccountMembers,
  removeAccountMember,
]
