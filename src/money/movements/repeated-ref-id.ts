import { problem } from '../../contract/problems.ts'
import type { Transaction } from '../../db/database.ts'
import { selectTransfersByRefId } from '../ledger/transfer.ts'
import type { Movement, Outcome } from './decision.ts'

/** Throws already-exists with the record that has the ref_id already. */
export function requireNew(record: object | undefined): void {
  if (record !== undefined) throw problem.alreadyExists('ref_id', record)
}

export const refIdsOf = (movements: readonly Movement[]) => movements.flatMap(({ ref_id }) => ref_id ?? [])

/**
 * A repeated ref_id is answered with its record before any other refusal. A first attempt has not looked ref_ids up,
 * so do that for the refused movements.
 */
export async function preferExisting(
  tx: Transaction,
  customerId: string,
  movements: readonly Movement[],
  outcomes: Outcome[],
): Promise<void> {
  const refused = movements.filter((_, index) => 'refusal' in outcomes[index]!)
  const existing = await selectTransfersByRefId(tx, customerId, refIdsOf(refused))
  movements.forEach(({ ref_id }, index) => {
    const known = ref_id === undefined ? undefined : existing.get(ref_id)
    if (known !== undefined) outcomes[index] = { refusal: problem.alreadyExists('ref_id', known) }
  })
}
