import type { Section } from './section.ts'

/** One node is no witness: what its lie would pay or free needs a second one (docs/decisions/one-node.md). */

/** By one node's word, a deposit of this value is credited in live mode: small beside what a customer may withdraw unseen. */
const SINGLE_NODE_MAX = '100'
export const oneNodeMaxOf = ({ single_node_max = SINGLE_NODE_MAX }: Section): string => single_node_max

/** Why one node's answer is not enough. */
export const NOTHING_ELSE = 'without verify_rpc_url nothing else says so'

/** The same of a failed payment, which a person may judge. */
export const PERSON_JUDGES = `${NOTHING_ELSE}: look at it in an explorer, then say so by 'bursar withdrawal resolve'`
