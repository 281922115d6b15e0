import { addressGroup } from './address-group.ts'
import { TokenBuckets } from './rate-limit.ts'

/** The limit of an address for all names together, as a multiple of its limit for one name. */
const NAMES_PER_ADDRESS = 10
/** An id has 36 characters. Longer names are cut, which bounds the memory of the buckets. */
const NAME_LENGTH_MAX = 36

/**
 * Limits failed sign-ins of an address, per name (the id of an API client, or a way to sign in) and in total. A correct
 * secret is always accepted: many clients may share an address, and secrets of 256 random bits cannot be guessed.
 */
export class Failures {
  readonly #perMinute: number
  readonly #ofName: TokenBuckets
  readonly #ofAddress: TokenBuckets

  /** A rate of 0 is no limit. */
  constructor(perMinute: number) {
    this.#perMinute = perMinute
    const bucketsOf = (burst: number) => new TokenBuckets({ perSecond: burst / 60, burst })
    this.#ofName = bucketsOf(perMinute)
    this.#ofAddress = bucketsOf(perMinute * NAMES_PER_ADDRESS)
  }

  /** Counts a failure. Returns the seconds to wait when there were too many, else 0. */
  count(address: string, name: string): number {
    if (this.#perMinute === 0) return 0
    const group = addressGroup(address)
    return Math.max(
      this.#ofAddress.take(group),
      this.#ofName.take(`${group} ${name.slice(0, NAME_LENGTH_MAX)}`),
    )
  }
}
