import { hash } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import { grouped } from '../../db/rows.ts'

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
/** Sums and hashes that are made before other work of the process goes on: some 10 ms. */
const PARTS_AT_ONCE = 8192

const sha256 = (...parts: Uint8Array[]): Buffer => hash('sha256', Buffer.concat(parts), 'buffer')

/** A number in so many bytes, big-endian. Throws RangeError for one that is negative or does not fit. */
function bytesOf(number: bigint, length = SUM_BYTES): Buffer {
  const hex = number.toString(16).padStart(2 * length, '0')
  if (number < 0n || hex.length > 2 * length) throw new RangeError(`no liability can be ${number}`)
  return Buffer.from(hex, 'hex')
}

const sumIn = (bytes: Buffer, at = 0) => (bytes.readBigUInt64BE(at) << 64n) | bytes.readBigUInt64BE(at + 8)

/** A leaf as a node: its amount in minor units and its hash. Throws RangeError as `bytesOf` does. */
export function leafOf(salt: Uint8Array, profileId: string, asset: string, minor: bigint): Buffer {
  const sum = bytesOf(minor)
  const id = Buffer.from(profileId.replaceAll('-', ''), 'hex')
  return Buffer.concat([sum, sha256(Buffer.of(0), salt, id, sum, Buffer.from(asset))])
}

/**
 * Makes a tree of leaves, at least one. They are put in the order of their hashes: neighbours in one tree are none in the next, so
 * nobody follows one by the paths of another. `root` commits to the number and the total, too; `pathOf` gives the place of a leaf
 * and the siblings on its path, from below. Lets other work go on in between.
 */
export async function sumTreeOf(leaves: readonly Buffer[]) {
  const levels = [await inOrder(leaves)]
  while (levels.at(-1)!.length > NODE_BYTES) levels.push(await above(levels.at(-1)!))
  const top = levels.at(-1)!
  return {
    leaves: leaves.length,
    total: sumIn(top),
    root: sha256(Buffer.of(2), bytesOf(BigInt(leaves.length), 8), top),
    pathOf(leaf: Buffer) {
      const index = levels[0]!.indexOf(leaf) / NODE_BYTES
      if (!Number.isInteger(index)) return undefined
      const path = levels.flatMap((level, height) => {
        const sibling = (Math.floor(index / 2 ** height) ^ 1) * NODE_BYTES
        const hash = level.subarray(sibling + SUM_BYTES, sibling + NODE_BYTES)
        return sibling < level.length ? [{ sum: sumIn(level, sibling), hash }] : []
      })
      return { index, path }
    },
  }
}

const byHash = (a: Buffer, b: Buffer) => a.compare(b, SUM_BYTES, NODE_BYTES, SUM_BYTES, NODE_BYTES)

/** The leaves in the order of their hashes: first by the 12 bits that these begin with, because to sort a million takes seconds. */
async function inOrder(leaves: readonly Buffer[]): Promise<Buffer> {
  const parts = grouped(leaves, (leaf) => leaf.readUInt16BE(SUM_BYTES) >> 4)
  const sorted: Buffer[] = []
  for (const place of [...parts.keys()].sort((a, b) => a - b)) {
    sorted.push(Buffer.concat(parts.get(place)!.sort(byHash)))
    await breathe()
  }
  return Buffer.concat(sorted)
}

async function above(level: Buffer): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let at = 0; at < level.length; at += 2 * NODE_BYTES) {
    const both = level.subarray(at, at + 2 * NODE_BYTES)
    if (both.length === NODE_BYTES) parts.push(both)
    else parts.push(bytesOf(sumIn(both) + sumIn(both, NODE_BYTES)), sha256(Buffer.of(1), both))
    if (parts.length % PARTS_AT_ONCE === 0) await breathe()
  }
  return Buffer.concat(parts)
}
