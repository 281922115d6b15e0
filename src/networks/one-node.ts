/** One node is no witness: what its lie would pay or free needs a second one (docs/decisions/one-node.md). */

/** Why one node's answer is not enough. */
export const NOTHING_ELSE = 'without verify_rpc_url nothing else says so'

/** The same of a failed payment, which a person may judge. */
export const PERSON_JUDGES = `${NOTHING_ELSE}: look at it in an explorer, then say so by 'bursar withdrawal resolve'`
