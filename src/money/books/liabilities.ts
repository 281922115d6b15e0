import type { RowMacs } from '../../audit/sealed-rows.ts'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { poolOf } from '../../db/customer-pool.ts'
import type { Database, Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { leafOf, SumTree } from './sum-tree.ts'

/** What the platform owes its profiles in one asset at a moment. Amounts are decimal strings, the root has hex digits. */
export interface Liability {
  asset: string
  decimals: number
  leaves: number
  total: string
  root: string
}

/** The path from one profile's balance to the root of its asset. */
export interface LiabilityProof {
  profile_id: string
  asset: string
  amount: string
  salt: string
  index: number
  path: { sum: string; hash: string }[]
}

const PAGE = 5000

interface BalanceRow {
  customer_id: string
  profile_id: string
  asset: string
  amount: string | null
}

/** The trees of the last moment that was asked for: all profiles ask about the moment that was published. */
const last = new WeakMap<Queryable, { at: string; trees: Promise<ReadonlyMap<string, SumTree>> }>()

/** Makes the tree of each asset at a moment below the horizon, by ticker. Reads each balance once. */
async function treesAt(db: Database, macs: RowMacs, at: string): Promise<ReadonlyMap<string, SumTree>> {
  const pool = poolOf(db)
  const known = last.get(pool)
  if (known?.at === at) return known.trees
  const trees = makeTrees(db, macs, at)
  last.set(pool, { at, trees })
  trees.catch(() => last.delete(pool))
  return trees
}

async function makeTrees(db: Database, macs: RowMacs, at: string): Promise<ReadonlyMap<string, SumTree>> {
  const leaves = new Map<string, Buffer[]>()
  for await (const { profile_id, asset, amount } of balancesAt(db, at)) {
    const own = leaves.get(asset) ?? []
    leaves.set(asset, own)
    own.push(leafOf(saltOf(macs, at, profile_id, asset), profile_id, asset, amount))
  }
  const trees = new Map<string, SumTree>()
  for (const asset of [...leaves.keys()].sort()) trees.set(asset, await SumTree.of(leaves.get(asset)!))
  return trees
}

/** The balances of all profiles after the last entry up to a moment, of those that had one. */
async function* balancesAt(db: Database, at: string) {
  let after: Omit<BalanceRow, 'amount'> = { customer_id: PLATFORM_ID, profile_id: PLATFORM_ID, asset: '' }
  for (let count = PAGE; count === PAGE;) {
    const { rows } = await db.query<BalanceRow>(
      `
      select b.customer_id, b.profile_id, b.asset,
             case when b.updated_at <= $1 then b.available else (
               select e.balance_after from entries e
               where e.customer_id = b.customer_id and e.profile_id = b.profile_id and e.asset = b.asset
                 and e.created_at <= $1
               order by e.created_at desc, e.version desc
               limit 1
             ) end as amount
      from balances b
      where (b.customer_id, b.profile_id, b.asset) > ($2::uuid, $3::uuid, $4::text)
      order by b.customer_id, b.profile_id, b.asset
      limit ${PAGE}`,
      [at, after.customer_id, after.profile_id, after.asset],
    )
    for (const { profile_id, asset, amount } of rows)
      if (amount !== null) yield { profile_id, asset, amount: parseStoredAmount(amount, decimalsOf(asset)) }
    count = rows.length
    after = rows.at(-1) ?? after
  }
}

/** Without it, whoever guesses an amount and knows a profile's id would recognise the hash of its leaf. */
const saltOf = (macs: RowMacs, at: string, profileId: string, asset: string) =>
  macs.of('liabilities').lasting(`${at} ${profileId} ${asset}`)

/** Reads what is owed in each asset at a moment below the horizon, by ticker. */
export async function readLiabilities(db: Database, macs: RowMacs, at: string): Promise<Liability[]> {
  return [...(await treesAt(db, macs, at))].map(([asset, tree]) => ({
    asset,
    decimals: decimalsOf(asset),
    leaves: tree.leaves,
    total: formatAmount(tree.total, decimalsOf(asset)),
    root: tree.root.toString('hex'),
  }))
}

/** Reads the proofs of a profile's balances at a moment below the horizon, given as decimal strings. */
export async function readLiabilityProofs(
  db: Database,
  macs: RowMacs,
  at: string,
  profileId: string,
  balances: readonly { asset: string; available: string }[],
): Promise<LiabilityProof[]> {
  const trees = await treesAt(db, macs, at)
  return balances.flatMap(({ asset, available }) => {
    const decimals = decimalsOf(asset)
    const salt = saltOf(macs, at, profileId, asset)
    const found = trees
      .get(asset)
      ?.pathOf(leafOf(salt, profileId, asset, parseStoredAmount(available, decimals)))
    // Of an asset that the profile held only later.
    if (found === undefined && available === '0') return []
    if (found === undefined) throw new Error(`the tree of ${asset} at ${at} lacks profile ${profileId}`)
    return {
      ...{ profile_id: profileId, asset, amount: available, salt: salt.toString('hex'), index: found.index },
      path: found.path.map(({ sum, hash }) => ({
        sum: formatAmount(sum, decimals),
        hash: hash.toString('hex'),
      })),
    }
  })
}
