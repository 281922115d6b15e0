import type { Operation } from '../../http/operation.ts'
import { createProfile } from './create-profile.ts'
import { deactivateProfile } from './deactivate-profile.ts'
import { getBalance } from './get-balance.ts'
import { getProfile } from './get-profile.ts'
import { listBalanceHistory } from './list-balance-history.ts'
import { listBalances } from './list-balances.ts'
import { listEntries } from './list-entries.ts'
import { listProfiles } from './list-profiles.ts'
import { updateProfile } from './update-profile.ts'

export const PROFILE_OPERATIONS: readonly Operation[] = [
  createProfile,
  listProfiles,
  getProfile,
  updateProfile,
  deactivateProfile,
  listBalanceHistory,
  listBalances,
  getBalance,
  listEntries,
]
