import { NodeFailure } from './node-failure.ts'

/**
 * A sandbox takes test networks only, because its money is invented; live mode takes main networks only, because a test
 * network's coins are worth nothing.
 */
export type Mode = 'sandbox' | 'live'

/** The node is on a main network in a sandbox, or on a test network in live mode; or its wallet is not that of the signer. */
export class WrongChain extends NodeFailure {}
