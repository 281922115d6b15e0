import { BursarProofError } from './errors.ts'
import type { components } from './schema.ts'

/** A record of `GET /v2/reports/liabilities`: what the platform says it owes in one asset. */
export type Liability = components['schemas']['Liability']
/** A record of `GET /v2/profiles/{id}/liability-proof`. */
export type LiabilityProof = components['schemas']['LiabilityProof']

const LIMIT = 1n << 128n

type Bytes = Uint8Array<ArrayBuffer>
interface Node {
  sum: bigint
  hash: Bytes
}

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
  const total = minorOf(liability.total, decimals)
  const sum = minorOf(proof.amount, decimals)
  const id = bytesOf(proof.profile_id.replaceAll('-', ''), 16)
  const asset = new TextEncoder().encode(proof.asset)
  let node = { sum, hash: await sha256([0], bytesOf(proof.salt, 32), id, bytesOf(sum, 16), asset) }
  // RFC 9162, 2.1.3.2: the index and the number of leaves decide on which side each sibling is, and how many there are.
  let [index, last] = [proof.index, leaves - 1]
  for (const step of proof.path) {
    requireThat(last > 0, 'its path is too long')
    const sibling = { sum: minorOf(step.sum, decimals), hash: bytesOf(step.hash, 32) }
    requireThat(!isSame(sibling.hash, node.hash), 'a node is its own sibling')
    const isRight = index % 2 === 1 || index === last
    node = isRight ? await above(sibling, node) : await above(node, sibling)
    // A last node without a sibling has moved up.
    while (index % 2 === 0 && index === last && index > 0) [index, last] = [index / 2, last / 2]
    ;[index, last] = [Math.floor(index / 2), Math.floor(last / 2)]
  }
  requireThat(last === 0, 'its path is too short')
  requireThat(node.sum === total, 'its sums lead to another total')
  const root = await sha256([2], bytesOf(BigInt(leaves), 8), bytesOf(total, 16), node.hash)
  requireThat(isSame(root, bytesOf(liability.root, 32)), 'its hashes lead to another root')
}

async function above(left: Node, right: Node): Promise<Node> {
  const sum = left.sum + right.sum
  requireThat(sum < LIMIT, 'a sum is too large')
  return {
    sum,
    hash: await sha256([1], bytesOf(left.sum, 16), left.hash, bytesOf(right.sum, 16), right.hash),
  }
}

function requireThat(holds: boolean, wrong: string): void {
  if (!holds) throw new BursarProofError(`not a proof of this liability: ${wrong}`)
}

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0

/** A decimal string in the smallest unit. A negative amount is refused, as it would hide a liability. */
function minorOf(amount: string, decimals: number): bigint {
  const [, whole = '', fraction = ''] = /^(\d{1,40})(?:\.(\d{1,18}))?$/.exec(amount) ?? []
  requireThat(whole !== '' && fraction.length <= decimals, `${amount} is no amount`)
  const minor = BigInt(whole + fraction.padEnd(decimals, '0'))
  requireThat(minor < LIMIT, 'a sum is too large')
  return minor
}

/** The bytes of hex digits, or of a number, big-endian. */
function bytesOf(value: string | bigint, length: number): Bytes {
  const hex = typeof value === 'string' ? value : value.toString(16).padStart(2 * length, '0')
  requireThat(/^[\da-f]*$/.test(hex) && hex.length === 2 * length, `${hex} is not ${length} bytes in hex`)
  return Uint8Array.from({ length }, (_, place) => Number.parseInt(hex.slice(2 * place, 2 * place + 2), 16))
}

const isSame = (a: Bytes, b: Bytes) => a.every((byte, place) => byte === b[place])

const sha256 = async (...parts: Iterable<number>[]): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.from(parts.flatMap((part) => [...part]))))
