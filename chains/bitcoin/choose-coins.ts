/** A coin that can be spent. Amounts are in minor units, sizes in virtual bytes. */
export interface Coin {
  outpoint: string
  amount: bigint
  vbytes: number
  isMined: boolean
}

export interface BatchPayment {
  amount: bigint
  script: Uint8Array
}

/** The coins that a transaction spends, its payments, and the amounts of its change, which may be none. */
export interface TransactionPlan<P extends BatchPayment> {
  coins: Coin[]
  payments: P[]
  change: bigint[]
}

export interface PlanLimits {
  /** Fee rate: minor units per 1,000 virtual bytes. */
  rate: bigint
  /** Bytes of a change output's script. */
  changeScriptBytes: number
  /** Most coins that it spends. */
  coinsMax?: number | undefined
  /** Paid on top of its own fee, for unmined ancestors whose fee is too low. Minor units. */
  ancestorFee?: bigint
  /** The transaction merges coins: it spends the smallest first, and its change is one coin. */
  consolidates?: boolean
}

/** A consolidation leaves this many of the largest coins, which pay withdrawals meanwhile. */
const COINS_KEPT = 10

/** Nodes relay no transaction above 100,000 virtual bytes. */
const VBYTES_MAX = 90_000
/** Version, lock time, counts, and the marker of segregated witnesses. */
const OVERHEAD_VBYTES = 15
/** Less change than this goes to the fee: nodes relay no dust, and spending it would cost about as much. */
export const CHANGE_MIN = 10_000n
/** A wallet with fewer coins gets its change in several outputs, so that transactions can spend different ones. */
const COINS_WANTED = 10
/** The smallest coin that change is split into. */
const SPLIT_MIN = 1_000_000n

/** The size of an input in virtual bytes, by the script that the input spends. */
export function inputVbytes(script: string): number {
  if (script.startsWith('0014')) return 68
  if (script.startsWith('a914')) return 91
  if (script.startsWith('5120')) return 58
  return 148
}

const outputVbytes = (scriptBytes: number): number => 9 + scriptBytes
const feeOf = (rate: bigint, vbytes: number): bigint => (rate * BigInt(vbytes) + 999n) / 1000n

/** The most that one transaction can spend: the sum of the largest coins that fit into it, and their number. */
export function spendableAtOnce(coins: readonly Coin[], most?: number): { amount: bigint; count: number } {
  let [amount, count, vbytes] = [0n, 0, OVERHEAD_VBYTES]
  for (const coin of largestFirst(coins).slice(0, most)) {
    vbytes += coin.vbytes
    if (vbytes > VBYTES_MAX) break
    amount += coin.amount
    count += 1
  }
  return { amount, count }
}

/**
 * The coins that one consolidation merges: as many of the smallest as fit into one transaction. Coins that cost more to
 * spend than they hold are left out, and so are the `COINS_KEPT` largest. `amount` is the merged coin at this rate, without
 * the fee.
 */
export function consolidationOf(
  coins: readonly Coin[],
  rate: bigint,
  outputScriptBytes: number,
  most = Infinity,
): { coins: Coin[]; amount: bigint; fee: bigint } {
  const chosen: Coin[] = []
  let [value, vbytes] = [0n, OVERHEAD_VBYTES + outputVbytes(outputScriptBytes)]
  const candidates = largestFirst(worthSpending(coins, rate)).slice(COINS_KEPT).reverse()
  for (const coin of candidates) {
    if (vbytes + coin.vbytes > VBYTES_MAX || chosen.length === most) break
    chosen.push(coin)
    value += coin.amount
    vbytes += coin.vbytes
  }
  const fee = feeOf(rate, vbytes)
  return { coins: chosen, amount: value - fee, fee }
}

/** The coins that hold more than it costs to spend them at this rate. */
export const worthSpending = (coins: readonly Coin[], rate: bigint): Coin[] =>
  coins.filter(({ amount, vbytes }) => amount > feeOf(rate, vbytes))

const largestFirst = (coins: readonly Coin[]): Coin[] =>
  [...coins].sort((a, b) => (a.amount < b.amount ? 1 : a.amount > b.amount ? -1 : 0))

/**
 * Builds a transaction, one payment at a time. It spends the largest coins, which makes the fewest inputs; a consolidation
 * spends the smallest. `add` returns whether it added the payment: the coins and the size must allow it.
 */
export class Batch<P extends BatchPayment> {
  readonly #coins: Coin[]
  readonly #limits: PlanLimits
  readonly payments: P[] = []
  #taken = 0
  #value = 0n
  #vbytes = OVERHEAD_VBYTES
  #due = 0n

  constructor(coins: readonly Coin[], limits: PlanLimits) {
    const inOrder = limits.consolidates ? largestFirst(coins).reverse() : largestFirst(coins)
    this.#coins = inOrder.slice(0, limits.coinsMax)
    this.#limits = limits
  }

  /** The sum of the payments, without the fee. */
  get due(): bigint {
    return this.#due
  }

  add(payment: P): boolean {
    const due = this.#due + payment.amount
    let [taken, value] = [this.#taken, this.#value]
    let vbytes = this.#vbytes + outputVbytes(payment.script.length)
    while (value < due + this.#fee(vbytes)) {
      const coin = this.#coins[taken]
      if (coin === undefined) return false
      taken += 1
      value += coin.amount
      vbytes += coin.vbytes
    }
    if (vbytes > VBYTES_MAX) return false
    this.payments.push(payment)
    this.#due = due
    this.#taken = taken
    this.#value = value
    this.#vbytes = vbytes
    return true
  }

  #fee(vbytes: number): bigint {
    return feeOf(this.#limits.rate, vbytes) + (this.#limits.ancestorFee ?? 0n)
  }

  /** The transaction with its change: in several outputs where the wallet has few coins left. */
  plan(): TransactionPlan<P> {
    const coins = this.#coins.slice(0, this.#taken)
    const left = this.#value - this.#due - this.#fee(this.#vbytes)
    const perChange = feeOf(this.#limits.rate, outputVbytes(this.#limits.changeScriptBytes))
    const missing = this.#limits.consolidates ? 1 : COINS_WANTED - (this.#coins.length - this.#taken)
    const wanted = BigInt(Math.max(1, missing))
    const affordable = left / (SPLIT_MIN + perChange)
    const count = affordable < 1n ? 1n : affordable < wanted ? affordable : wanted
    const amount = left - count * perChange
    if (amount < CHANGE_MIN) return { coins, payments: this.payments, change: [] }
    const each = amount / count
    const change = Array.from({ length: Number(count) }, () => each)
    change[0] = amount - each * (count - 1n)
    return { coins, payments: this.payments, change }
  }
}
