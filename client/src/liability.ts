import { BursarProofError } from './errors.ts'
import type { components } from './schema.ts'

/** A record of `GET /v2/reports/liabilities`: what the platform says it owes in one asset. */
export type Liability = components['schemas']['Liability']
/** A record of `GET /v2/profiles/{id}/liability-proof`. */
export type LiabilityProof = components['schemas']['LiabilityProof']

/**
 * Checks, without the service, that a balance is a leaf of a published sum tree: the hashes lead to `liability.root`, and
 * each sum on the way is the sum of two that are not negative. Compare `proof.profile_id` and `proof.amount` with what you
 * hold, and the record of the liability with what others got. Throws `BursarProofError`.
 */
export async function verifyLiability(proof: LiabilityProof, liability: Liability): Promise<void> {
  const { decimals, leaves } = liability
  requireThat(proof.asset === liability.asset, 'it is about another asset')
  requireThat([decimals, leaves, proof.index].every(isCount) && decimals <= 18, 'its numbers are none')
  requireThat(proof.index < leaves, 'no leaf has its index')
  requireThat(Array.isArray(proof.path), 'it has no path')
  let sum = minorOf(proof.amount, decimals)
  const id = hexOf(`${proof.profile_id}`.replaceAll('-', ''), 16)
  const asset = hexOfBytes(new TextEncoder().encode(proof.asset))
  let hash = await sha256(`00${hexOf(proof.salt, 32)}${id}${hexOf(sum, 16)}${asset}`)
  const siblings = [...proof.path]
  // As in RFC 9162, 2.1.3.2, the index and the number of nodes decide on which side the sibling is.
  let [index, nodes] = [proof.index, leaves]
  for (; nodes > 1; [index, nodes] = [Math.floor(index / 2), Math.ceil(nodes / 2)]) {
    const isRight = index % 2 === 1
    // A last node without a sibling moves up.
    if (!isRight && index === nodes - 1) continue
    const sibling = siblings.shift()
    requireThat(sibling != null, 'its path is too short')
    requireThat(sibling.hash !== hash, 'a node is its own sibling')
    const siblingSum = minorOf(sibling.sum, decimals)
    const own = hexOf(sum, 16) + hash
    const other = hexOf(siblingSum, 16) + hexOf(sibling.hash, 32)
    hash = await sha256(`01${isRight ? other + own : own + other}`)
    sum += siblingSum
  }
  requireThat(siblings.length === 0, 'its path is too long')
  requireThat(sum === minorOf(liability.total, decimals), 'its sums lead to another total')
  const root = await sha256(`02${hexOf(BigInt(leaves), 8)}${hexOf(sum, 16)}${hash}`)
  requireThat(root === liability.root, 'its hashes lead to another root')
}

function requireThat(holds: boolean, wrong: string): asserts holds {
  if (!holds) throw new BursarProofError(`not a proof of this liability: ${wrong}`)
}

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0

/** A decimal string in the smallest unit. A negative amount is refused, as it would hide a liability. */
function minorOf(amount: string, decimals: number): bigint {
  const [, whole = '', fraction = ''] = /^(\d{1,40})(?:\.(\d{1,18}))?$/.exec(amount) ?? []
  requireThat(whole !== '' && fraction.length <= decimals, `${amount} is no amount`)
  return BigInt(whole + fraction.padEnd(decimals, '0'))
}

/** So many bytes in hex: what is hex already, or a number, big-endian. */
function hexOf(value: string | bigint, bytes: number): string {
  const hex = typeof value === 'bigint' ? value.toString(16).padStart(2 * bytes, '0') : value
  requireThat(/^[\da-f]*$/.test(hex) && hex.length === 2 * bytes, `${hex} is not ${bytes} bytes in hex`)
  return hex
}

const hexOfBytes = (bytes: Uint8Array) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

async function sha256(hex: string): Promise<string> {
  const bytes = Uint8Array.from(hex.match(/../g)!, (byte) => Number.parseInt(byte, 16))
  return hexOfBytes(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}
