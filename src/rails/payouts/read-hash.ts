import type { NetworkAdapter, PayoutNetwork } from '../../networks/network.ts'

/** The hash of a transaction that an operator typed, as the network spells it. Throws an Error where it is none. */
export function readHash(network: PayoutNetwork, adapter: NetworkAdapter, text: string): string {
  const hash = adapter.readHash === undefined ? text : adapter.readHash(text)
  if (hash === undefined) throw new Error(`${text} is no hash of a transaction of ${network}`)
  return hash
}
