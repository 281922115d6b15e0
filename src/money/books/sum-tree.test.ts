import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  BursarProofError,
  verifyLiability,
  type Liability,
  type LiabilityProof,
} from '../../../client/src/index.ts'
import { leafOf, sumTreeOf } from './sum-tree.ts'

/*
 * What the service proves, the client checks with code of its own: a path that leads to the root, over sums that add up. No
 * other tree has that root.
 */
type Tree = Awaited<ReturnType<typeof sumTreeOf>>

interface Holder {
  profile_id: string
  minor: bigint
  salt: string
}

const holders = (amounts: readonly bigint[]): Holder[] =>
  amounts.map((minor, place) => ({
    profile_id: `00000000-0000-7000-8000-${String(place).padStart(12, '0')}`,
    ...{ minor, salt: String(place % 10).repeat(64) },
  }))
const leafFor = ({ profile_id, minor, salt }: Holder) =>
  leafOf(Buffer.from(salt, 'hex'), profile_id, 'USD', minor)
const textOf = (minor: bigint) => {
  const digits = String(minor).padStart(3, '0')
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`
}

const liabilityOf = (tree: Tree): Liability => ({
  ...{ asset: 'USD', decimals: 2, leaves: tree.leaves, total: textOf(tree.total) },
  root: tree.root.toString('hex'),
})

function proofOf(tree: Tree, holder: Holder): LiabilityProof {
  const { index, path } = tree.pathOf(leafFor(holder))!
  const { profile_id, salt, minor } = holder
  return {
    ...{ profile_id, asset: 'USD', amount: textOf(minor), salt, index },
    path: path.map(({ sum, hash }) => ({ sum: textOf(sum), hash: hash.toString('hex') })),
  }
}

const refused = (proof: LiabilityProof, liability: Liability) =>
  expect(verifyLiability(proof, liability)).rejects.toThrow(BursarProofError)

const AMOUNTS = fc.array(fc.bigInt({ min: 0n, max: 10n ** 15n }), { minLength: 1, maxLength: 40 })

test('the client verifies the proof of each leaf, for any number of leaves', () =>
  fc.assert(
    fc.asyncProperty(AMOUNTS, async (amounts) => {
      const all = holders(amounts)
      const tree = await sumTreeOf(all.map(leafFor))
      expect(tree.total).toBe(amounts.reduce((sum, amount) => sum + amount, 0n))
      expect((await sumTreeOf(all.map(leafFor).reverse())).root).toEqual(tree.root)
      for (const holder of all) await verifyLiability(proofOf(tree, holder), liabilityOf(tree))
    }),
  ))

test('a tree that leaves a leaf out, alters one or doubles one has no proof for the published root', () =>
  fc.assert(
    fc.asyncProperty(AMOUNTS, fc.nat(), async (amounts, chosen) => {
      const all = holders([...amounts, 7n, 8n])
      const published = liabilityOf(await sumTreeOf(all.map(leafFor)))
      const place = chosen % all.length
      const holder = all[place]!
      const others = all.filter((other) => other !== holder)
      const altered = { ...holder, minor: holder.minor + 1n }
      const less = await sumTreeOf(others.map(leafFor))
      expect(less.pathOf(leafFor(holder))).toBeUndefined()
      const changed = await sumTreeOf([...others, altered].map(leafFor))
      const doubled = await sumTreeOf([...all, holder].map(leafFor))
      for (const tree of [less, changed, doubled]) {
        expect(tree.root.toString('hex')).not.toBe(published.root)
        for (const other of others) await refused(proofOf(tree, other), published)
      }
      await refused(proofOf(changed, altered), published)
      // A root whose total says less than its leaves is refused by each of them.
      const understated = { ...published, total: textOf(1n) }
      await refused(proofOf(await sumTreeOf(all.map(leafFor)), holder), understated)
    }),
  ))

test('each changed member of a proof or a liability is refused', async () => {
  const all = holders([500n, 250n, 0n, 1_000n, 75n])
  const tree = await sumTreeOf(all.map(leafFor))
  const liability = liabilityOf(tree)
  const proof = proofOf(tree, all[1]!)
  const [first, ...rest] = proof.path as [LiabilityProof['path'][0], ...LiabilityProof['path']]
  const changes: Partial<LiabilityProof>[] = [
    { amount: '2.51' },
    { amount: '-2.50' },
    { amount: '2.500' },
    { amount: '1e3' },
    { asset: 'EUR' },
    { profile_id: all[0]!.profile_id },
    { salt: 'f'.repeat(64) },
    { salt: '' },
    { index: proof.index ^ 1 },
    { index: -1 },
    { index: 5 },
    { index: 0.5 },
    { path: rest },
    { path: [...proof.path, first] },
    { path: [{ ...first, sum: `-${first.sum}` }, ...rest] },
    { path: [{ ...first, sum: '340282366920938463463374607431768211456' }, ...rest] },
    { path: [{ ...first, sum: textOf(tree.total) }, ...rest] },
    { path: [{ ...first, hash: first.hash.toUpperCase() }, ...rest] },
    { path: Array.from({ length: 60 }, () => first) },
  ]
  await verifyLiability(proof, liability)
  for (const change of changes) await refused({ ...proof, ...change }, liability)
  const wrong = [{ leaves: 6 }, { leaves: 0 }, { total: '18.24' }, { root: '0'.repeat(64) }, { decimals: 3 }]
  for (const change of wrong) await refused(proof, { ...liability, ...change })
})

test('a negative balance, and sums beyond 16 bytes, make no tree', async () => {
  const [holder] = holders([0n])
  expect(() => leafFor({ ...holder!, minor: -1n })).toThrow(RangeError)
  const half = holders([2n ** 127n, 2n ** 127n]).map(leafFor)
  await expect(sumTreeOf(half)).rejects.toThrow(RangeError)
})

test('other work goes on while a large tree is made', async () => {
  const random = randomBytes(300_000 * 48)
  // Sums of 8 bytes, so that their total is one.
  const leaves = Array.from({ length: 300_000 }, (_, at) =>
    random.subarray(at * 48, at * 48 + 48).fill(0, 0, 8),
  )
  let [longest, last] = [0, performance.now()]
  const measure = () => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }
  const timer = setInterval(measure, 1)
  const began = performance.now()
  const tree = await sumTreeOf(leaves)
  const took = performance.now() - began
  clearInterval(timer)
  expect(longest).toBeLessThan(took / 4)
  for (const leaf of leaves.slice(0, 100)) expect(Number.isInteger(tree.pathOf(leaf)!.index)).toBe(true)
})

test('a node that is its own sibling is refused', async () => {
  const [holder] = holders([5n])
  const once = leafFor(holder!)
  const tree = await sumTreeOf([once, once])
  const proof = proofOf(tree, holder!)
  await refused(proof, liabilityOf(tree))
  // JSON may have anything in the place of text.
  for (const change of [[{ ...proof.path[0], hash: [proof.path[0]!.hash] }], [null], [{}]])
    await refused({ ...proof, path: change as never }, liabilityOf(tree))
  for (const name of ['salt', 'profile_id']) await refused({ ...proof, [name]: undefined }, liabilityOf(tree))
})
