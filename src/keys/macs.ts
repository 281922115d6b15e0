import { timingSafeEqual } from 'node:crypto'
import { HmacSha256 } from './hmac-sha256.ts'
import type { MasterKeys, Purpose } from './master-keys.ts'

/**
 * MACs over records, with a key for one purpose that is derived from the master key. So write access to the database is
 * not enough to make or change such a record. A MAC is written `<id of the master key>.<base64url>`.
 */
export class Macs {
  readonly #masterKeys: MasterKeys
  readonly #purpose: Purpose
  readonly #length: number
  readonly #keys = new Map<string, HmacSha256>()

  /** `length`: how many characters of the base64url are kept; 22 are 132 bits (RFC 2104, section 5). */
  constructor(masterKeys: MasterKeys, purpose: Purpose, length = 43) {
    this.#masterKeys = masterKeys
    this.#purpose = purpose
    this.#length = length
  }

  /** Makes the MAC of a text, with the current master key. The text must name its record unambiguously. */
  make(text: string): string {
    const { id } = this.#masterKeys.current
    return `${id}.${this.#macOf(this.#keyOf(id)!, text)}`
  }

  /** Thirty-two bytes that stay the same for a text while the oldest master key is given, also after a newer one is. */
  lasting(text: string): Buffer {
    return Buffer.from(this.#keyOf(this.#masterKeys.ids.at(-1)!)!.of(text), 'base64url')
  }

  /** Returns what is wrong with the MAC of a text; undefined when it is right. `cause` explains a MAC that does not match. */
  objectionTo(
    text: string,
    mac: string,
    cause = 'it was changed, or no Bursar with the master key made it',
  ): string | undefined {
    const [, keyId = '', given = ''] = /^([0-9a-f]{8})\.([A-Za-z0-9_-]+)$/.exec(mac) ?? []
    const key = given.length === this.#length ? this.#keyOf(keyId) : undefined
    if (key === undefined) return `its MAC needs master key ${keyId || 'unknown'}, which is not given`
    return timingSafeEqual(Buffer.from(this.#macOf(key, text)), Buffer.from(given))
      ? undefined
      : `its MAC does not match: ${cause}`
  }

  #macOf(key: HmacSha256, text: string): string {
    return key.of(text).slice(0, this.#length)
  }

  #keyOf(id: string): HmacSha256 | undefined {
    const known = this.#keys.get(id)
    if (known !== undefined) return known
    const masterKey = this.#masterKeys.find(id)
    if (masterKey === undefined) return undefined
    const key = new HmacSha256(masterKey.derive(this.#purpose))
    this.#keys.set(id, key)
    return key
  }
}
