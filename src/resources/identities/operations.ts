import type { Operation } from '../../http/operation.ts'
import { addInstitutionMembers } from './add-institution-members.ts'
import { createIdentity } from './create-identity.ts'
import { getIdentity } from './get-identity.ts'
import { listIdentities } from './list-identities.ts'
import { removeInstitutionMember } from './remove-institution-member.ts'
import { setIdentitySandboxStatus } from './set-identity-sandbox-status.ts'
import { updateIdentity } from './update-identity.ts'

export const IDENTITY_OPERATIONS: readonly Operation[] = [
  createIdentity,
  listIdentities,
  getIdentity,
  updateIdentity,
  addInstitutionMembers,
  removeInstitutionMember,
  setIdentitySandboxStatus,
]
