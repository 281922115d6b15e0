import { NETWORKS } from '../src/contract/assets/catalogue.ts'
import type { SignerNetwork } from './config.ts'

/** What a signature lets out, in units of the chain: its amount, and its fee in the network's own asset. */
export interface Leaving {
  asset: string
  units: bigint
  fee: bigint
}

/** The longest span of time that is summed. A short period has sixty spans. */
const SPAN_MS_MAX = 60_000

/** A window of the configuration, with the sum of what has left within it. No more of the journal is kept. */
export class Window {
  readonly limit: SignerNetwork['windows'][number]
  readonly #isGas: boolean
  readonly #spanMs: number
  readonly #spans = new Map<number, bigint>()
  #left = 0n

  constructor({ network }: SignerNetwork, limit: Window['limit']) {
    this.limit = limit
    this.#isGas = limit.asset === NETWORKS[network].gasAsset
    this.#spanMs = Math.min(SPAN_MS_MAX, Math.ceil(limit.periodMs / 60))
  }

  /** What counts in it of a payment, in units of the chain. */
  counts({ asset, units, fee }: Leaving): bigint {
    return (asset === this.limit.asset ? units : 0n) + (this.#isGas ? fee : 0n)
  }

  add(at: number, leaving: Leaving): void {
    const [span, units] = [Math.floor(at / this.#spanMs), this.counts(leaving)]
    this.#spans.set(span, (this.#spans.get(span) ?? 0n) + units)
    this.#left += units
  }

  /**
   * What has left within it. A span counts until all of it is too old, and so are those that were added before: no clock that
   * wrote the journal lets out more. Time must not go back.
   */
  left(now: Date): bigint {
    const first = Math.floor((now.getTime() - this.limit.periodMs) / this.#spanMs)
    for (const [span, units] of this.#spans) {
      if (!(span < first)) break
      this.#spans.delete(span)
      this.#left -= units
    }
    return this.#left
  }
}
