import { timingSafeEqual } from 'node:crypto'
import { HmacSha256 } from './hmac-sha256.ts'
import type { MasterKeys, Purpose } from './master-keys.ts'

/**
 * A MAC is written `<id of the master key>.<base64url>`. The base64url part has this many characters: 132 of the 256
 * bits of HMAC-SHA-256 (RFC 2104, section 5).
 */
const MAC_LENGTH = 22

/** Makes and checks MACs of records, with the keys of one purpose that are derived from the master keys. */
export class KeyedMacs {
  readonly #masterKeys: MasterKeys
  readonly #purpose: Purpose
  readonly #current: HmacSha256
  readonly #keys = new Map<string, HmacSha256>()

  constructor(masterKeys: MasterKeys, purpose: Purpose) {
    this.#masterKeys = masterKeys
    this.#purpose = purpose
    this.#current = this.#find(masterKeys.current.id)!
  }

  /** Returns the MAC of a text, with the current master key. */
  of(text: string): string {
    return `${this.#masterKeys.current.id}.${macOf(this.#current, text)}`
  }

  /** Returns why this is not the text's MAC: changed, or its master key is not given. Undefined when it is the MAC. */
  objectionTo(text: string, mac: string): 'CHANGED' | { missingKey: string } | undefined {
    const [, keyId = '', given = ''] = /^([0-9a-f]{8})\.([A-Za-z0-9_-]{22})$/.exec(mac) ?? []
    const key = this.#find(keyId)
    if (key === undefined) return { missingKey: keyId || 'unknown' }
    return timingSafeEqual(Buffer.from(macOf(key, text)), Buffer.from(given)) ? undefined : 'CHANGED'
  }

  #find(id: string): HmacSha256 | undefined {
    const known = this.#keys.get(id)
    if (known !== undefined) return known
    const masterKey = this.#masterKeys.find(id)
    if (masterKey === undefined) return undefined
    const key = new HmacSha256(masterKey.derive(this.#purpose))
    this.#keys.set(id, key)
    return key
  }
}

const macOf = (key: HmacSha256, text: string): string => key.of(text).slice(0, MAC_LENGTH)
