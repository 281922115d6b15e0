/** The fee that a transaction has paid, in the asset that the network's fees are paid in. A decimal string. */
export interface NetworkFee {
  asset: string
  amount: string
}

/** One payment of a transaction in the chain: an output, its value or a token's log. The amount is a decimal string. */
export interface PaymentOnChain {
  asset: string
  amount: string
  /** In its canonical spelling. */
  address: string
}

/** The effect of a mined transaction: what it moved into or out of the hot wallet, and what it cost the platform. */
export interface MovedOnChain {
  /** By asset; decimal strings, negative for money that left. Money that stays at our own addresses does not count. */
  moved: { asset: string; amount: string }[]
  /** Each payment in it that belongs to no withdrawal yet, to any recipient. */
  payments: PaymentOnChain[]
  /** Absent where somebody else paid it. */
  networkFee?: NetworkFee
}

/** What a transaction by others has moved, by the word of two nodes, and whose money it was. */
export interface BroughtOnChain extends MovedOnChain {
  from: string[]
}
