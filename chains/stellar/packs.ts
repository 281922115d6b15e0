import type { Withdrawal } from '../../src/networks/network.ts'
import { deferred, refusedDestination, type WaitingReason } from '../../src/networks/waiting.ts'
import { ACCOUNT_MINIMUM, balanceOf, decimalOf, placeOf, stroops, type StellarChain } from './chain.ts'
import { roomOf, type NotSigned } from './destinations.ts'
import { accountIn, type Place, type StellarPayment } from './envelope.ts'
import type { StellarAccount } from './horizon.ts'
import { isSamePlace } from './status.ts'

/** The most payments of a transaction. */
export const PAYMENTS_MAX = 100
/** The payments of one transaction, and the withdrawals that they pay. */
export interface Pack {
  place: Place
  memo: string | undefined
  withdrawals: Withdrawal[]
  payments: StellarPayment[]
  /** Those of an earlier transaction that did not end well share with fewer. */
  most: number
}

export const NO_LANE = deferred({
  code: 'IN_FLIGHT_LIMIT',
  detail: 'each account that numbers transactions has one in flight',
})

/** What was signed for a withdrawal earlier: the places that may have paid it, and how many times. */
export interface Earlier {
  places: Place[]
  times: number
}

/** The transactions that are put together, each on a free lane. */
export class Packs {
  readonly #packs: Pack[] = []
  readonly #free: Place[]
  readonly #most: number
  /** Numbers that are signed anew for the withdrawals that had them, and for no others. */
  readonly #kept: readonly Place[]
  /** By account and asset, what is on its way there. */
  readonly #coming = new Map<string, bigint>()
  /** The accounts that a payment creates, and the pack that it is in; undefined: it is under way. */
  readonly #created = new Map<string, Pack | undefined>()

  constructor(
    free: readonly Place[],
    open: readonly StellarPayment[],
    { most, kept }: { most: number; kept: readonly Place[] },
  ) {
    this.#free = [...free]
    this.#most = most
    this.#kept = kept
    for (const payment of open) this.#count(payment, undefined)
  }

  #count({ destination, asset, amount, creates }: StellarPayment, pack: Pack | undefined): void {
    const { account } = accountIn(destination)
    const key = `${account} ${asset}`
    this.#coming.set(key, (this.#coming.get(key) ?? 0n) + stroops(amount))
    if (creates) this.#created.set(account, pack)
  }

  /** Puts a withdrawal into a transaction with others, or into a new one, once `pay` finds the money; or says why not. */
  put(
    chain: StellarChain,
    withdrawal: Withdrawal,
    judged: { account: StellarAccount | undefined } | undefined,
    { places, times }: Earlier,
    pay: (isNew: boolean) => WaitingReason | undefined,
  ): Pack | NotSigned {
    const { destination_address: destination, amount } = withdrawal
    const asset = chain.assets.get(withdrawal.asset)!
    const { account, id } = accountIn(destination)
    const isMissing = judged !== undefined && judged.account === undefined
    const isCreated = isMissing && this.#created.has(account)
    if (isMissing && !isCreated) {
      const why = id === undefined ? tooSmallToOpen(amount) : `the account ${account} does not exist`
      if (why !== undefined) return { outcome: 'REFUSED', refusal: refusedDestination(withdrawal, why) }
    }
    const line = judged?.account && balanceOf(judged.account, asset)
    const coming = this.#coming.get(`${account} ${asset}`) ?? 0n
    if (
      coming > 0n &&
      line !== undefined &&
      account !== chain.address &&
      roomOf(line) < coming + stroops(amount)
    )
      return afterOthers(`payments under way fill the trustline of ${account}`)
    const payment = { destination, asset, amount, creates: isMissing && !isCreated }
    const memo = withdrawal.memo ?? undefined
    const most = Math.max(1, this.#most >> times)
    const fits = (place: Place) =>
      places.length > 0
        ? places.every((one) => isSamePlace(one, place))
        : !this.#kept.some((one) => isSamePlace(one, place))
    const open = isCreated ? [this.#created.get(account)].filter((one) => one !== undefined) : this.#packs
    const pack = open.find(
      (one) =>
        fits(one.place) &&
        one.memo === undefined &&
        memo === undefined &&
        one.payments.length < Math.min(one.most, most) &&
        placeOf(chain, { ...one.place, maxTime: 0n, ...one }, withdrawal) < 0,
    )
    if (pack === undefined && isCreated)
      return afterOthers(`a payment under way creates the account ${account}`)
    const place = pack?.place ?? this.#free.find(fits)
    if (place === undefined) return places[0] === undefined ? NO_LANE : notAgain(places[0])
    const short = pay(pack === undefined)
    if (short !== undefined) return deferred(short)
    const into = pack ?? { place, memo, withdrawals: [], payments: [], most }
    if (pack === undefined) {
      this.#packs.push(into)
      this.#free.splice(this.#free.indexOf(place), 1)
    }
    into.withdrawals.push(withdrawal)
    into.payments.push(payment)
    into.most = Math.min(into.most, most)
    this.#count(payment, into)
    return into
  }
}

const afterOthers = (detail: string) => deferred({ code: 'IN_FLIGHT_LIMIT', detail })

const notAgain = ({ lane, sequence }: Place) =>
  afterOthers(
    `its earlier transaction had number ${sequence} of ${lane}: that is in use, or nothing proves that it paid nothing`,
  )

const tooSmallToOpen = (amount: string): string | undefined =>
  stroops(amount) < ACCOUNT_MINIMUM
    ? `the account does not exist, and ${decimalOf(ACCOUNT_MINIMUM)} XLM open one`
    : undefined
