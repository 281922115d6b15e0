/**
 * A node has not done what was asked: it does not answer, it refuses, or it is none of the network's. What was asked
 * may have been done all the same.
 */
export class NodeFailure extends Error {}

/** This process has no key of the hot wallet, so that nothing can be signed here. */
export class NoSigningKey extends NodeFailure {}

/** It answers, and says no: that cost no time, and another question may be answered. */
export class NodeRefusal extends NodeFailure {}

/** A destination that the platform does not pay, whatever the fee: paying it takes more gas than a transfer may. */
export class DestinationRefused extends Error {}
