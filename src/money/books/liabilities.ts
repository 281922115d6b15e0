import type { RowMacs } from '../../audit/sealed-rows.ts'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { poolOf } from '../../db/customer-pool.ts'
import type { Database, Queryable } from '../../db/database.ts'
import { PLATFORM_ID, type Moment } from '../../db/ids.ts'
import { leafOf, sumTreeOf } from './sum-tree.ts'

const PAGE = 5000

type Place = Record<'customer_id' | 'profile_id' | 'asset', string>
type Trees = ReadonlyMap<string, Awaited<ReturnType<typeof sumTreeOf>>>

/** The trees of the last moment that was asked for: all profiles ask about the moment that was published. */
const last = new WeakMap<Queryable, { micros: number; trees: Promise<Trees> }>()

function treesAt(db: Database, macs: RowMacs, at: Moment): Promise<Trees> {
  const pool = poolOf(db)
  const known = last.get(pool)
  if (known?.micros === at.micros) return known.trees
  const trees = makeTrees(db, macs, at)
  last.set(pool, { micros: at.micros, trees })
  trees.catch(() => last.delete(pool))
  return trees
}

/** Makes the tree of each asset, by ticker, of the balances that had an entry before a moment. */
async function makeTrees(db: Database, macs: RowMacs, at: Moment): Promise<Trees> {
  const leaves = new Map<string, Buffer[]>()
  let after: Place | undefined = { customer_id: PLATFORM_ID, profile_id: PLATFORM_ID, asset: '' }
  while (after !== undefined) {
    const rows = await selectBalances(db, at, after)
    for (const { profile_id, asset, amount } of rows) {
      if (amount === null) continue
      if (!leaves.has(asset)) leaves.set(asset, [])
      leaves.get(asset)!.push(leafFor(macs, at, profile_id, asset, amount).leaf)
    }
    after = rows.length === PAGE ? rows.at(-1) : undefined
  }
  const trees = [...leaves]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(async ([asset, own]) => [asset, await sumTreeOf(own)] as const)
  return new Map(await Promise.all(trees))
}

async function selectBalances(db: Database, at: Moment, after: Place) {
  const { rows } = await db.query<Place & { amount: string | null }>(
    `
    select b.customer_id, b.profile_id, b.asset,
           case when b.updated_at < $1 then b.available else (
             select e.balance_after from entries e
             where e.customer_id = b.customer_id and e.profile_id = b.profile_id and e.asset = b.asset and e.created_at < $1
             order by e.created_at desc, e.version desc
             limit 1
           ) end as amount
    from balances b
    where (b.customer_id, b.profile_id, b.asset) > ($2::uuid, $3::uuid, $4::text)
    order by b.customer_id, b.profile_id, b.asset
    limit ${PAGE}`,
    [at.text, after.customer_id, after.profile_id, after.asset],
  )
  return rows
}

/** Without a salt, whoever knows a profile's id and guesses its balance would recognise its leaf. */
function leafFor(macs: RowMacs, at: Moment, profileId: string, asset: string, amount: string) {
  const salt = macs.of('liabilities').lasting(`${at.micros} ${profileId} ${asset}`)
  return { salt, leaf: leafOf(salt, profileId, asset, parseStoredAmount(amount, decimalsOf(asset))) }
}

/**
 * Reads what is owed to all profiles before a moment, below which no entry can appear any more: for each asset, by ticker, the
 * number of balances, the total as a decimal string, and the root of the tree in hex. Reads each balance once.
 */
export async function readLiabilities(db: Database, macs: RowMacs, at: Moment) {
  return [...(await treesAt(db, macs, at))].map(([asset, tree]) => {
    const decimals = decimalsOf(asset)
    const { leaves, total, root } = tree
    return { asset, decimals, leaves, total: formatAmount(total, decimals), root: root.toString('hex') }
  })
}

/** Reads the paths from a profile's balances before that moment (decimal strings) to the roots. */
export async function readLiabilityProofs(
  db: Database,
  macs: RowMacs,
  at: Moment,
  profile_id: string,
  balances: readonly { asset: string; closing: string }[],
) {
  const trees = await treesAt(db, macs, at)
  return balances.flatMap(({ asset, closing: amount }) => {
    const { salt, leaf } = leafFor(macs, at, profile_id, asset, amount)
    const found = trees.get(asset)?.pathOf(leaf)
    // Of an asset that the profile held only later.
    if (found === undefined && amount === '0') return []
    if (found === undefined) throw new Error(`the tree of ${asset} at ${at.text} lacks profile ${profile_id}`)
    const sumOf = (sum: bigint) => formatAmount(sum, decimalsOf(asset))
    const path = found.path.map(({ sum, hash }) => ({ sum: sumOf(sum), hash: hash.toString('hex') }))
    return { profile_id, asset, amount, salt: salt.toString('hex'), index: found.index, path }
  })
}
