import { randomBytes } from 'node:crypto'
import { Macs } from '../../keys/macs.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'

/**
 * Challenges of sign-ins. A challenge carries its expiry and a MAC, so that it needs no row: an unauthenticated request
 * writes nothing. An answered challenge has a row, because each challenge may be answered once.
 */

export const CHALLENGE_SECONDS = 5 * 60

export class Challenges {
  readonly #macs: Macs

  constructor(masterKeys: MasterKeys) {
    this.#macs = new Macs(masterKeys, 'challenges')
  }

  /** Makes a challenge for one purpose, such as adding a passkey in a given session. */
  make(purpose: string): string {
    const expiry = Math.floor(Date.now() / 1000) + CHALLENGE_SECONDS
    const body = `${randomBytes(24).toString('base64url')}.${expiry}`
    return `${body}.${this.#macs.make(textOfChallenge(purpose, body))}`
  }

  /** Whether this service made the challenge for this purpose, and it has not expired. */
  isValid(purpose: string, challenge: string): boolean {
    const [, body = '', expiry = '', mac = ''] =
      /^([\w-]{32}\.(\d{10}))\.([\w.-]{1,100})$/.exec(challenge) ?? []
    return (
      Number(expiry) * 1000 > Date.now() &&
      this.#macs.objectionTo(textOfChallenge(purpose, body), mac) === undefined
    )
  }
}

const textOfChallenge = (purpose: string, body: string) => JSON.stringify([purpose, body])
