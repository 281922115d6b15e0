import { parseAmount } from '../../contract/assets/amount.ts'
import { problem } from '../../contract/problems.ts'

/** The largest sandbox deposit: 15 digits, so that the sums of balances stay readable and within every column. */
const DEPOSIT_MAX = '999999999999999'

/** Throws bad-request for a sandbox deposit of zero or above the limit. `minor` is in units with this many decimals. */
export function requireDepositable(minor: bigint, decimals: number): void {
  if (minor === 0n) throw problem.badRequest('amount must be greater than zero', 'amount')
  if (minor > parseAmount(DEPOSIT_MAX, decimals)!)
    throw problem.badRequest(
      `amount must be at most ${DEPOSIT_MAX}, the largest deposit of a sandbox`,
      'amount',
    )
}

/** Throws bad-request for a `ref_id` with a magic amount: the bank or chain reports that deposit, without a `ref_id`. */
export function requireNoRefId(ref_id: string | undefined): void {
  if (ref_id !== undefined) throw problem.badRequest('ref_id must not be given with a magic amount', 'ref_id')
}
