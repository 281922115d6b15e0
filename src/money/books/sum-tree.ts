import { hash } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'

/*
 * A Merkle sum tree: each node commits to the sum of the leaves below it. Whoever checks a path checks the sums on it, so a
 * leaf that is left out, counted twice or negative changes the root. A last node without a sibling moves up unchanged: to double
 * it, as Bitcoin does, lets two lists of leaves have one root. `verifyLiability` of the client has the same rules.
 *
 * leaf = H(0x00 | salt | profile id | sum | asset), node = H(0x01 | sum | hash | sum | hash of both),
 * root = H(0x02 | number of leaves | sum | hash of the top). Sums have 16 bytes, numbers 8, big-endian.
 */

const SUM_BYTES = 16
const NODE_BYTES = SUM_BYTES + 32
const LIMIT = 1n << 128n
/** Nodes that are made before other work of the process goes on: some 10 ms. */
const NODES_AT_ONCE = 4096

const sha256 = (...parts: Uint8Array[]): Buffer => hash('sha256', Buffer.concat(parts), 'buffer')

/** Sixteen bytes, big-endian. Throws RangeError for a negative sum, and for one of 2^128 or more. */
function bytesOfSum(sum: bigint): Buffer {
  if (sum < 0n || sum >= LIMIT) throw new RangeError(`no liability can be ${sum}`)
  return Buffer.from(sum.toString(16).padStart(2 * SUM_BYTES, '0'), 'hex')
}

const sumIn = (bytes: Buffer, at: number) =>
  (bytes.readBigUInt64BE(at) << 64n) | bytes.readBigUInt64BE(at + 8)

/** A leaf as a node: its amount in minor units and its hash. Throws RangeError as `bytesOfSum` does. */
export function leafOf(salt: Uint8Array, profileId: string, asset: string, minor: bigint): Buffer {
  const sum = bytesOfSum(minor)
  const id = Buffer.from(profileId.replaceAll('-', ''), 'hex')
  return Buffer.concat([sum, sha256(Buffer.of(0), salt, id, sum, Buffer.from(asset))])
}

/**
 * Makes a tree of leaves, at least one. They are put in the order of their hashes: neighbours in one tree are none in the next, so
 * nobody follows one by the paths of another. `root` commits to the number and the total, too; `pathOf` gives the place of a leaf
 * and the siblings on its path, from below. Lets other work go on in between.
 */
export async function sumTreeOf(leaves: readonly Buffer[]) {
  const levels: Buffer[] = [await inOrder(leaves)]
  for (let level = levels[0]!; level.length > NODE_BYTES; level = levels.at(-1)!)
    levels.push(await above(level))
  const { sum: total, hash: top } = nodeAt(levels.at(-1)!, 0)
  const count = Buffer.alloc(8)
  count.writeBigUInt64BE(BigInt(leaves.length))
  return {
    leaves: leaves.length,
    total,
    root: sha256(Buffer.of(2), count, bytesOfSum(total), top),
    pathOf(leaf: Buffer) {
      const index = levels[0]!.indexOf(leaf) / NODE_BYTES
      if (!Number.isInteger(index)) return undefined
      const path = levels.flatMap((level, height) => {
        const sibling = Math.floor(index / 2 ** height) ^ 1
        return sibling * NODE_BYTES < level.length ? [nodeAt(level, sibling)] : []
      })
      return { index, path }
    },
  }
}

const byHash = (a: Buffer, b: Buffer) => a.compare(b, SUM_BYTES, NODE_BYTES, SUM_BYTES, NODE_BYTES)

/** The leaves in the order of their hashes: first by the 12 bits that these begin with, because to sort a million takes seconds. */
async function inOrder(leaves: readonly Buffer[]): Promise<Buffer> {
  const parts = Array.from({ length: 4096 }, (): Buffer[] => [])
  for (const leaf of leaves) parts[leaf.readUInt16BE(SUM_BYTES) >> 4]!.push(leaf)
  const sorted: Buffer[] = []
  for (const [place, part] of parts.entries()) {
    sorted.push(Buffer.concat(part.sort(byHash)))
    if (place % 16 === 0) await breathe()
  }
  return Buffer.concat(sorted)
}

const nodeAt = (level: Buffer, place: number) => ({
  sum: sumIn(level, place * NODE_BYTES),
  hash: level.subarray(place * NODE_BYTES + SUM_BYTES, (place + 1) * NODE_BYTES),
})

async function above(level: Buffer): Promise<Buffer> {
  const nodes = level.length / NODE_BYTES
  const next = Buffer.alloc(Math.ceil(nodes / 2) * NODE_BYTES)
  for (let place = 0; place * 2 < nodes; place++) {
    const both = level.subarray(2 * place * NODE_BYTES, 2 * (place + 1) * NODE_BYTES)
    const node =
      both.length === NODE_BYTES
        ? both
        : Buffer.concat([bytesOfSum(sumIn(both, 0) + sumIn(both, NODE_BYTES)), sha256(Buffer.of(1), both)])
    node.copy(next, place * NODE_BYTES)
    if (place % NODES_AT_ONCE === 0) await breathe()
  }
  return next
}
