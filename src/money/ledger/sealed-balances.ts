import { parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { macOfBalance, objectionToBalance, type Sealed } from '../../audit/balance-macs.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import { decimalsOf, findAsset } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { arraysOf } from '../../db/rows.ts'

/** The balances with their MACs as rows: those that are not as Bursar wrote them, and MACs that are made anew. */

/** In SQL: whether a balance `b` has a newer entry, which means that somebody has put an older balance back. */
export const IS_OUTDATED = `(
            -- With a limit, the planner looks each balance up.
            select true from entries e
            where e.customer_id = $1 and e.profile_id = b.profile_id and e.asset = b.asset
              and (e.created_at, e.version) > (b.updated_at, b.version)
            limit 1) is not null`

export const OUTDATED = 'an entry is newer than it: it was put back'

interface Row {
  customer_id: string
  profile_id: string
  asset: string
  available: string
  version: string
  updated_at: string
  mac: string | null
}

const sealedOf = ({ profile_id, asset, available, version }: Row): Sealed => ({
  profile_id,
  asset,
  available: parseStoredAmount(available, decimalsOf(asset)),
  version: Number(version),
})

/** Also judges a row that no Bursar could have written: such a row must not hide the others. */
function objectionToRow(macs: RowMacs, row: Row): string | undefined {
  const asset = findAsset(row.asset)
  if (asset === undefined || parseAmount(row.available.replace('-', ''), asset.decimals) === undefined)
    return 'no asset has such an amount'
  return objectionToBalance(macs, row.customer_id, sealedOf(row), row)
}

const COLUMNS = 'customer_id, profile_id, asset, available, version, updated_at, mac'

/**
 * Returns the balances of a customer, or of one `asset`, that are not as Bursar wrote them, with what is wrong. Each entry
 * adds one to the version, which the MAC covers, and no entry can be removed. So Bursar wrote all entries if their number is
 * the version.
 */
export async function forgedBalances(
  db: Queryable,
  macs: RowMacs,
  customerId: string,
  asset?: string,
): Promise<string[]> {
  const { rows } = await db.query<Row & { entries: string }>(
    `select ${COLUMNS}, (
       select count(*) from entries e
       where e.customer_id = $1 and e.profile_id = b.profile_id and e.asset = b.asset and e.profile_id is not null
     ) as entries
     from balances b
     where customer_id = $1 and ($2::text is null or asset = $2)
     order by profile_id, asset`,
    [customerId, asset],
  )
  return rows.flatMap((row) => {
    const objection =
      objectionToRow(macs, row) ??
      (row.entries === row.version
        ? undefined
        : `it has ${row.entries} entries and its version is ${row.version}: an entry was added, or the balance was put back`)
    return objection === undefined ? [] : `profile ${row.profile_id}, ${row.asset}: ${objection}`
  })
}

const BALANCES_PAGE = 10_000

/**
 * Gives balances their MACs as they are. WITHOUT: those that have no MAC, after the loss of a master key. OF_OLDER_KEYS:
 * those with a right MAC of an older master key. Returns their number.
 */
export async function sealBalances(
  db: Queryable,
  which: 'WITHOUT' | 'OF_OLDER_KEYS',
  macs: RowMacs,
): Promise<number> {
  let sealed = 0
  const older = which === 'WITHOUT' ? undefined : macs.ofCurrentKey
  let after = [PLATFORM_ID, PLATFORM_ID, '']
  for (;;) {
    const { rows } = await db.query<Row>(
      `select ${COLUMNS} from balances
       where (case when $1::text is null then mac is null else mac not like $1 end)
         and (customer_id, profile_id, asset) > ($2::uuid, $3::uuid, $4::text)
       order by customer_id, profile_id, asset
       limit ${BALANCES_PAGE}`,
      [older, ...after],
    )
    if (rows.length === 0) return sealed
    const right = rows.filter((row) => which === 'WITHOUT' || objectionToRow(macs, row) === undefined)
    const { rowCount } = await db.query(
      `update balances b set mac = s.mac
       from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::text[]) as s (customer_id, profile_id, asset, version, mac)
       where b.customer_id = any ($1::uuid[]) and b.customer_id = s.customer_id and b.profile_id = s.profile_id
         and b.asset = s.asset and b.version = s.version`,
      [
        ...arraysOf(right, 'customer_id', 'profile_id', 'asset', 'version'),
        right.map((row) => macOfBalance(macs, row.customer_id, sealedOf(row), row.updated_at)),
      ],
    )
    sealed += rowCount!
    const { customer_id, profile_id, asset } = rows.at(-1)!
    after = [customer_id, profile_id, asset]
  }
}
