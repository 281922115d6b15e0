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
  readonly #keys = new Map<string, HmacSha256>()

  constructor(masterKeys: MasterKeys, purpose: Purpose) {
    this.#masterKeys = masterKeys
    this.#purpose = purpose
  }

  /** Makes the MAC of a text, with the current master key. The text must name its record unambiguously. */
  make(text: string): string {
    const { id } = this.#masterKeys.current
    return `${id}.${this.#keyOf(id)!.of(text)}`
  }

  /** Returns what is wrong with the MAC of a text; undefined when it is right. */
  objectionTo(text: string, mac: string): string | undefined {
    const [, keyId = '', given = ''] = /^([0-9a-f]{8})\.([A-Za-z0-9_-]{43})$/.exec(mac) ?? []
    const key = this.#keyOf(keyId)
    if (key === undefined) return `its MAC needs master key ${keyId || 'unknown'}, which is not given`
    return timingSafeEqual(Buffer.from(key.of(text)), Buffer.from(given))
      ? undefined
      : 'its MAC does not match: it was changed, or no Bursar with the master key made it'
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
