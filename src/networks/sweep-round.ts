import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { UsdPrices } from '../contract/assets/usd-value.ts'
import type { Transaction } from '../db/database.ts'
import type { NetworkFee } from './moved-on-chain.ts'

/** A confirmed transaction of a sweep, and its fee. */
export interface EndedSweep {
  customer_id: string
  id: string
  network: CryptoNetwork
  networkFee: NetworkFee
}

/** Posts a sweep's fee to the ledger, in the transaction that ends the sweep. */
type PostSweep = (tx: Transaction, ended: EndedSweep) => Promise<void>

/** Whether signing on a network is frozen now. The answer holds until the transaction ends. */
export type IsFrozen = (tx: Transaction, network: CryptoNetwork) => Promise<boolean>

export interface SweepRound {
  post: PostSweep
  isFrozen: IsFrozen
  /** To compare the fee of a sweep with the amount that it moves. */
  prices: UsdPrices
}
