import type { Operation } from '../../http/operation.ts'
import { deleteCredentials } from './delete-credentials.ts'
import { listCredentials } from './list-credentials.ts'
import { rotateCredentials } from './rotate-credentials.ts'

export const API_CREDENTIAL_OPERATIONS: readonly Operation[] = [
  listCredentials,
  rotateCredentials,
  deleteCredentials,
]
