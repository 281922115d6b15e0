/**
 * A node failed to do its work: it does not answer, it refuses, or it is on another network. It may have done the work all
 * the same.
 */
export class NodeFailure extends Error {}

/** This process has no key of the hot wallet, so that nothing can be signed here. */
export class NoSigningKey extends NodeFailure {}

/** The node answered with an error. No timeout has passed, and the node may answer another call. */
export class NodeRefusal extends NodeFailure {}

/** The node's wallet is encrypted, and signs nothing until a person unlocks it. */
export class WalletLocked extends NodeRefusal {}

/** The platform does not pay this destination at any fee: paying it takes more gas than a transfer may. */
export class DestinationRefused extends Error {}
