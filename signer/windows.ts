import { NETWORKS } from '../src/contract/assets/catalogue.ts'
import type { SignerNetwork } from './family.ts'

/** What a signature lets out, in units of the chain: its amount, and its fee in the network's own asset. */
export interface Leaving {
  asset: string
  units: bigint
  fee: bigint
  /** Who it is paid for, and to: a payment of a customer alone has them. */
  customer?: string | undefined
  destination?: string | undefined
}

/** The longest span of time that is summed. A short period has sixty spans. */
const SPAN_MS_MAX = 60_000

interface Sum {
  units: bigint
  payments: number
}

/** What has left within a period, by spans of time. */
class Sums {
  readonly #spans = new Map<number, Sum>()
  readonly #all: Sum = { units: 0n, payments: 0 }

  add(span: number, { units, payments }: Sum): void {
    const sum = this.#spans.get(span) ?? { units: 0n, payments: 0 }
    this.#spans.set(span, sum)
    for (const one of [sum, this.#all]) {
      one.units += units
      one.payments += payments
    }
  }

  /** Without the spans before this one, and those that were added before them. */
  from(first: number): Sum {
    for (const [span, { units, payments }] of this.#spans) {
      if (!(span < first)) break
      this.#spans.delete(span)
      this.#all.units -= units
      this.#all.payments -= payments
    }
    return this.#all
  }
}

const SUMS_MAX = 10_000
const NOTHING: Sum = { units: 0n, payments: 0 }

/** A window of the configuration, with the sums of what has left within it. No more of the journal is kept. */
export class Window {
  readonly limit: SignerNetwork['windows'][number]
  readonly #isGas: boolean
  readonly #spanMs: number
  /** By customer or destination; by '' where it is for all of them. */
  readonly #sums = new Map<string, Sums>()
  /** With more of them, those are forgotten of which nothing counts any more. */
  #sumsMax = SUMS_MAX

  constructor({ network }: SignerNetwork, limit: Window['limit']) {
    this.limit = limit
    this.#isGas = limit.asset === NETWORKS[network].gasAsset
    this.#spanMs = Math.min(SPAN_MS_MAX, Math.ceil(limit.periodMs / 60))
  }

  /** Whose limit a payment counts in; undefined where in nobody's. */
  keyOf(leaving: Leaving): string | undefined {
    return this.limit.per === undefined ? '' : leaving[this.limit.per]
  }

  /** What counts in it of a payment. Fees are in the sums of a whole network alone. */
  counts({ asset, units, fee }: Leaving): Sum {
    const isIts = asset === this.limit.asset
    const cost = this.#isGas && this.limit.per === undefined ? fee : 0n
    return { units: (isIts ? units : 0n) + cost, payments: isIts && units > 0n ? 1 : 0 }
  }

  add(at: number, leaving: Leaving): void {
    const key = this.keyOf(leaving)
    if (key === undefined) return
    const sums = this.#sums.get(key) ?? new Sums()
    this.#sums.set(key, sums)
    sums.add(Math.floor(at / this.#spanMs), this.counts(leaving))
  }

  #forget(now: Date): void {
    if (this.#sums.size <= this.#sumsMax) return
    for (const key of this.#sums.keys()) if (this.left(now, key).payments === 0) this.#sums.delete(key)
    this.#sumsMax = Math.max(SUMS_MAX, 2 * this.#sums.size)
  }

  /**
   * What has left within it, by whose limit it is. A span counts until all of it is too old, and so are those that were added
   * before: no clock that wrote the journal lets out more. Time must not go back.
   */
  left(now: Date, key = ''): Sum {
    const first = Math.floor((now.getTime() - this.limit.periodMs) / this.#spanMs)
    return this.#sums.get(key)?.from(first) ?? NOTHING
  }

  /** Why these payments may not leave; undefined where they may. */
  objectionTo(leaving: readonly Leaving[], now: Date): string | undefined {
    const { asset, periodMs, units, payments, per } = this.limit
    if (per !== undefined) this.#forget(now)
    for (const key of new Set(leaving.flatMap((one) => this.keyOf(one) ?? []))) {
      const sum = { ...this.left(now, key) }
      for (const one of leaving.filter((other) => this.keyOf(other) === key)) {
        const counted = this.counts(one)
        sum.units += counted.units
        sum.payments += counted.payments
      }
      const whose = per === undefined ? 'its window' : `the window of one ${per}`
      const seconds = periodMs / 1000
      if (units !== undefined && sum.units > units)
        return `more ${asset} would leave than ${whose} of ${seconds} s allows`
      if (payments !== undefined && sum.payments > payments)
        return `more than ${payments} payments of ${asset} would leave within ${whose} of ${seconds} s`
    }
    return undefined
  }
}
