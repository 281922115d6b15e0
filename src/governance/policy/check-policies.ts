import type { Queryable } from '../../db/database.ts'
import { failed, ok, orElse, type Finding } from '../../finding.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'
import { Policies } from './policy.ts'

/** Most untrusted policies that are listed. */
const TOLD_MAX = 5
const ADVICE =
  'add the master key that it needs; or look at it with bursar policy show, then bursar policy set --replace-untrusted'

/** Checks the MAC of each policy's newest version. With a wrong MAC, all payments of the customer are refused. */
export async function checkPolicies(db: Queryable, masterKeys: MasterKeys | undefined): Promise<Finding[]> {
  const none = 'no customer has a policy'
  if (masterKeys === undefined) {
    const { rowCount } = await db.query('select 1 from policies limit 1')
    if (rowCount === 0) return [ok(none)]
    const says = 'there are policies, and no master key to check them with: their customers pay nothing'
    return [failed(says, 'set BURSAR_MASTER_KEY_FILE (docs/guides/backup.md)')]
  }
  const found: Finding[] = []
  let [count, untrusted] = [0, 0]
  for await (const { customer_id, version, objection } of new Policies(masterKeys).newestOfAll(db)) {
    count += 1
    if (objection === undefined) continue
    untrusted += 1
    const says = `version ${version} of the policy of customer ${customer_id} cannot be trusted, so it pays nothing: ${objection}`
    if (untrusted <= TOLD_MAX) found.push(failed(says, ADVICE))
  }
  if (untrusted > TOLD_MAX)
    found.push(failed(`${untrusted - TOLD_MAX} more policies cannot be trusted`, ADVICE))
  return orElse(found, count === 0 ? none : `${count} can be trusted`)
}
