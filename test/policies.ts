import { transaction, type Database } from '../src/db/database.ts'
import { readClock } from '../src/db/ids.ts'
import { completeDocument, type NewPolicyDocument } from '../src/governance/policy/policy-document.ts'
import { Policies, type PolicyVersion } from '../src/governance/policy/policy.ts'
import { MASTER_KEYS } from './support.ts'

/** Adds a version of the customer's policy, as the operator's command does. */
export const setPolicy = (
  db: Database,
  customerId: string,
  document: NewPolicyDocument,
): Promise<PolicyVersion> =>
  transaction(db, async (tx) =>
    new Policies(MASTER_KEYS).add(tx, customerId, completeDocument(document), await readClock(tx)),
  )
