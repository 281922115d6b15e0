import type { Queryable } from '../../db/database.ts'
import { failed, ok, orElse, warn, type Finding } from '../../finding.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'
import type { PolicyDocument } from './policy-document.ts'
import { Policies } from './policy.ts'

/** Most policies that are listed with each fault. */
const TOLD_MAX = 5
const ADVICE =
  'add the master key that it needs; or look at it with bursar policy show, then bursar policy set --replace-untrusted'

const OPEN = 'requires approvals, and none of new API clients: one person can make one that orders'
const OPEN_ADVICE = 'add CREDENTIALS to its changes.subjects (docs/guides/governance.md)'

/** Whether approvals are required, and none of new credentials: one person may then order through a client of its own. */
const leavesCredentialsOpen = ({ rules, changes }: PolicyDocument) =>
  (changes !== undefined || rules.some(({ action }) => action === 'APPROVE')) &&
  changes?.subjects.includes('CREDENTIALS') !== true

/** Checks the MAC of each policy's newest version, and that its approvals hold. With a wrong MAC, all payments are refused. */
export async function checkPolicies(db: Queryable, masterKeys: MasterKeys | undefined): Promise<Finding[]> {
  const none = 'no customer has a policy'
  if (masterKeys === undefined) {
    const { rowCount } = await db.query('select 1 from policies limit 1')
    if (rowCount === 0) return [ok(none)]
    const says = 'there are policies, and no master key to check them with: their customers pay nothing'
    return [failed(says, 'set BURSAR_MASTER_KEY_FILE (docs/guides/backup.md)')]
  }
  const [untrusted, open]: [string[], string[]] = [[], []]
  let count = 0
  for await (const policy of new Policies(masterKeys).newestOfAll(db)) {
    const { customer_id, version, objection, document } = policy
    count += 1
    if (objection !== undefined)
      untrusted.push(
        `version ${version} of the policy of customer ${customer_id} cannot be trusted, so it pays nothing: ${objection}`,
      )
    else if (leavesCredentialsOpen(document)) open.push(`the policy of customer ${customer_id} ${OPEN}`)
  }
  const more = untrusted.length - TOLD_MAX
  if (more > 0) untrusted.splice(TOLD_MAX, more, `${more} more policies cannot be trusted`)
  const found = untrusted.map((says) => failed(says, ADVICE))
  found.push(...open.slice(0, TOLD_MAX).map((says) => warn(says, OPEN_ADVICE)))
  return orElse(found, count === 0 ? none : `${count} can be trusted`)
}
