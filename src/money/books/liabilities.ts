import type { RowMacs } from '../../audit/sealed-rows.ts'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { poolOf } from '../../db/customer-pool.ts'
import type { Database, Queryable } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import { leafOf, sumTreeOf } from './sum-tree.ts'
import { readProfileSums } from './book.ts'

/** Proof of what is owed to all profiles before a moment that is final. */
export interface Liabilities {
  db: Database
  macs: RowMacs
  at: Moment
}

type Trees = Map<string, Awaited<ReturnType<typeof sumTreeOf>>>

/** The trees of the last moment that was asked for: all profiles ask about the moment that was published. */
const last = new WeakMap<Queryable, { micros: number; trees: Promise<Trees> }>()

function treesOf(asked: Liabilities): Promise<Trees> {
  const pool = poolOf(asked.db)
  const { micros } = asked.at
  const known = last.get(pool)
  const trees = known?.micros === micros ? known.trees : makeTrees(asked)
  last.set(pool, { micros, trees })
  trees.catch(() => last.delete(pool))
  return trees
}

/** Makes the tree of each asset, by ticker. Reads each balance once. */
async function makeTrees(asked: Liabilities): Promise<Trees> {
  const leaves = new Map<string, Buffer[]>()
  for await (const { asset, leaf } of leavesOf(asked)) {
    if (!leaves.has(asset)) leaves.set(asset, [])
    leaves.get(asset)!.push(leaf)
  }
  const trees: Trees = new Map()
  // One after another: together, their slices of the process's time add up.
  for (const asset of [...leaves.keys()].sort()) trees.set(asset, await sumTreeOf(leaves.get(asset)!))
  return trees
}

/** The balances as leaves. Without a salt, whoever knows a profile's id and guesses its balance would recognise its leaf. */
async function* leavesOf({ db, macs, at }: Liabilities, customerId?: string, profileId?: string) {
  for await (const page of readProfileSums({ db, customerId }, { from: at, to: at, profileId }))
    for (const { profile_id, asset, closing: amount } of page) {
      const salt = macs.of('liabilities').lasting(`${at.micros} ${profile_id} ${asset}`)
      const leaf = leafOf(salt, profile_id, asset, parseStoredAmount(amount, decimalsOf(asset)))
      yield { profile_id, asset, amount, salt: salt.toString('hex'), leaf }
    }
}

/** Reads for each asset, by ticker, the number of balances, the total as a decimal string, and the root of the tree in hex. */
export async function readLiabilities(asked: Liabilities) {
  return [...(await treesOf(asked))].map(([asset, { leaves, total, root }]) => {
    const decimals = decimalsOf(asset)
    return { asset, decimals, leaves, total: formatAmount(total, decimals), root: root.toString('hex') }
  })
}

/** Reads the paths from a profile's balances before that moment to the roots, by ticker. */
export async function readLiabilityProofs(asked: Liabilities, customerId: string, profileId: string) {
  const trees = await treesOf(asked)
  const proofs = []
  for await (const { leaf, ...balance } of leavesOf(asked, customerId, profileId)) {
    const { asset } = balance
    const found = trees.get(asset)?.pathOf(leaf)
    if (found === undefined) throw new Error(`the tree of ${asset} at ${asked.at.text} lacks ${profileId}`)
    const sumOf = (sum: bigint) => formatAmount(sum, decimalsOf(asset))
    const path = found.path.map(({ sum, hash }) => ({ sum: sumOf(sum), hash: hash.toString('hex') }))
    proofs.push({ ...balance, index: found.index, path })
  }
  return proofs
}
