import { createHash, randomBytes } from 'node:crypto'
import type { Transaction } from '../../db/database.ts'
import { Macs } from '../../keys/macs.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'

/**
 * Challenges of sign-ins. A challenge carries its expiry and a MAC, so that it needs no row: an unauthenticated request
 * writes nothing. An answered challenge has a row, because each challenge may be answered once.
 */

/** How long a challenge can be answered. */
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

/** Records that a challenge was answered. Of parallel answers to one challenge, one gets true. */
export async function answerOnce(tx: Transaction, challenge: string): Promise<boolean> {
  await tx.query('delete from operator_challenges where expires_at < clock_timestamp()')
  const { rowCount } = await tx.query(
    `
    insert into operator_challenges (hash, expires_at)
    values ($1, clock_timestamp() + make_interval(secs => $2))
    on conflict do nothing`,
    // Kept for twice its life: the clocks of processes may differ.
    [createHash('sha256').update(challenge).digest(), 2 * CHALLENGE_SECONDS],
  )
  return rowCount === 1
}
