import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { problem } from '../../contract/problems.ts'
import { inOrder, type Transaction } from '../../db/database.ts'
import { arrayLiteral } from '../../db/array-literal.ts'
import { isShared, readOfCustomer } from '../../db/shared-transaction.ts'
import { keyOfBalance, macOfBalance, objectionToBalance } from '../../audit/balance-macs.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import { IS_OUTDATED, OUTDATED } from './sealed-balances.ts'

export interface BalanceKey {
  profile_id: string
  asset: string
}

/** A balance that this transaction has locked and may change. */
interface Balance extends BalanceKey {
  /** The row as it was read; absent where there is none yet. */
  row?: BalanceRow
  /** Whether the balance is as Bursar wrote it; undefined until that is checked. */
  isGenuine?: boolean
  available: bigint
  /** The number of its entries. 0: the balance has no row yet. */
  version: number
  versionRead: number
}

export interface BalanceRow extends BalanceKey {
  available: string
  version: string
  /** The time of its last entry. */
  updated_at: string
  mac: string | null
  is_outdated: boolean
}

/** A row of what is read beside locked balances: the clock, or a balance that has a newer entry. */
export interface BesideBalances {
  kind: string
  subject: string
  detail: string | null
  now: string | null
  mac: string | null
}

/**
 * Reads `CLOCK_AND_OUTDATED`, in the round trip of the balances and after their locks. It may read more in its statement, as
 * movements do (records/standing.ts). `values` are the customer, the profiles and the assets, as lists.
 */
export type ReadBeside = (tx: Transaction, values: string[]) => Promise<BesideBalances[]>

export const CLOCK_AND_OUTDATED = `
  select 'CLOCK' as kind, null as subject, null as detail, clock_timestamp() as now, null as mac
  union all
  select 'CLOSED', null, null, (select until from closed_days order by day desc limit 1), null
  union all
  select 'OUTDATED', profile_id || '/' || asset, null, null, null from balances b
  where customer_id = $1 and profile_id = any ($2::uuid[]) and asset = any ($3::text[]) and ${IS_OUTDATED}`

const readClockAndOutdated: ReadBeside = (tx, values) =>
  readOfCustomer<BesideBalances>(tx, { name: 'clock of balances', text: CLOCK_AND_OUTDATED, values })

/**
 * Reads and locks the existing balances of these profiles in these assets, and returns those among `keys`. It locks them in key
 * order, so that no two batches deadlock, and reads the database's clock after the locks. `profileIds` are the profiles that a
 * locked balance proves to exist; `closed` is the end of the last closed day. It takes one round trip.
 */
export async function lockBalances(
  tx: Transaction,
  customerId: string,
  keys: BalanceKey[],
  readBeside = readClockAndOutdated,
): Promise<{ rows: BalanceRow[]; profileIds: ReadonlySet<string>; clock: string; closed: string | null }> {
  const wanted = new Set(keys.map((key) => keyOfBalance(key.profile_id.toLowerCase(), key.asset)))
  const values = [
    customerId,
    arrayLiteral([...new Set(keys.map((key) => key.profile_id))]),
    arrayLiteral([...new Set(keys.map((key) => key.asset))]),
  ]
  const [locked, beside] = await inOrder([
    readOfCustomer<Omit<BalanceRow, 'is_outdated'> & Partial<BalanceRow>>(tx, {
      name: 'lock balances',
      text: `
        select profile_id, asset, available, version, updated_at, mac
        from balances
        where customer_id = $1 and profile_id = any ($2::uuid[]) and asset = any ($3::text[])
        order by profile_id, asset
        for update`,
      values,
    }),
    readBeside(tx, values),
  ])
  const outdated = beside.flatMap(({ kind, subject }) => (kind === 'OUTDATED' ? subject : []))
  const rows = locked.filter((row): row is BalanceRow => {
    const key = keyOfBalance(row.profile_id, row.asset)
    // The row is completed in place: copies were a part of the CPU of each withdrawal.
    row.is_outdated = outdated.includes(key)
    return wanted.has(key)
  })
  if (isShared(tx) && rows.length < wanted.size) await requireNoneElsewhere(tx, values, locked.length)
  return {
    rows,
    profileIds: new Set(locked.map(({ profile_id }) => profile_id)),
    clock: beside.find(({ kind }) => kind === 'CLOCK')!.now!,
    closed: beside.find(({ kind }) => kind === 'CLOSED')!.now,
  }
}

/** A shared transaction skips what somebody else has locked; whoever shares it must not take that for a balance without a row. */
async function requireNoneElsewhere(tx: Transaction, values: string[], locked: number): Promise<void> {
  const rows = await readOfCustomer<{ count: string }>(tx, {
    name: 'count balances',
    text: 'select count(*) from balances where customer_id = $1 and profile_id = any ($2::uuid[]) and asset = any ($3::text[])',
    values,
  })
  if (Number(rows[0]!.count) !== locked) throw new Error('a balance is locked by another transaction')
}

interface Sealing {
  macs: RowMacs
  customerId: string
}

/** The locked balances of a transaction, changed in memory and written once. */
export class Balances {
  readonly profileIds: ReadonlySet<string>
  #balances = new Map<string, Balance>()
  #found: Balance | undefined
  readonly #sealing: Sealing | undefined

  /** Without `sealing` no balance can move: none was locked. */
  constructor(rows: BalanceRow[], profileIds: ReadonlySet<string>, sealing?: Sealing) {
    this.profileIds = profileIds
    this.#sealing = sealing
    for (const row of rows) {
      const { profile_id, asset, available, version } = row
      this.#balances.set(keyOfBalance(profile_id, asset), {
        row,
        profile_id,
        asset,
        available: parseStoredAmount(available, decimalsOf(asset)),
        version: Number(version),
        versionRead: Number(version),
      })
    }
  }

  /** A movement asks for one balance several times in a row: the last balance found is kept, and takes no look-up. */
  #find(profile_id: string, asset: string): Balance | undefined {
    if (this.#found?.profile_id === profile_id && this.#found.asset === asset) return this.#found
    return (this.#found = this.#balances.get(keyOfBalance(profile_id, asset)))
  }

  available(profile_id: string, asset: string): bigint {
    return this.#find(profile_id, asset)?.available ?? 0n
  }

  /** Throws unavailable for a balance that is not as Bursar wrote it: whoever changed it in the database would be paid. */
  requireGenuine(profile_id: string, asset: string): void {
    const balance = this.#find(profile_id, asset)
    if (balance?.row === undefined) return
    balance.isGenuine ??= this.#isGenuine(balance, balance.row)
    if (!balance.isGenuine)
      throw problem.unavailable(
        `the ${asset} balance of profile ${profile_id} was changed in the database; nothing moves it until an operator has looked`,
      )
  }

  /** Compares a balance with its MAC, before the balance has moved. */
  #isGenuine(balance: Balance, row: BalanceRow): boolean {
    const { macs, customerId } = this.#sealing!
    const objection =
      objectionToBalance(macs, customerId, balance, row) ?? (row.is_outdated ? OUTDATED : undefined)
    if (objection !== undefined) macs.onForged('balances', row.profile_id, objection)
    return objection === undefined
  }

  /** Applies an entry and returns the balance after it. The caller has checked the funds. */
  move(profile_id: string, asset: string, amount: bigint): Balance {
    const balance = this.#find(profile_id, asset) ?? this.#begin(profile_id, asset)
    balance.available += amount
    balance.version += 1
    return balance
  }

  #begin(profile_id: string, asset: string): Balance {
    const balance: Balance = { profile_id, asset, available: 0n, version: 0, versionRead: 0 }
    this.#balances.set(keyOfBalance(profile_id, asset), balance)
    return balance
  }

  /** The balances that got their first entry, in key order. `now` is the time of their entries. */
  made(now: string) {
    return [...this.#balances]
      .filter(([, { version, versionRead }]) => versionRead === 0 && version !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, balance]) => ({
        updated_at: now,
        profile_id: balance.profile_id,
        asset: balance.asset,
        available: formatAmount(balance.available, decimalsOf(balance.asset)),
        version: balance.version,
        mac: this.#macOf(balance, now),
      }))
  }

  #macOf(balance: Balance, now: string): string {
    const { macs, customerId } = this.#sealing!
    return macOfBalance(macs, customerId, balance, now)
  }

  /**
   * Returns the balances that already had entries and changed, for a statement that looks a row's values up; none where none
   * changed. `by_key` is JSON: by `profile/asset`, the available amount, the version, the version that was read and the MAC.
   */
  moved(now: string) {
    const moved = [...this.#balances.values()].filter(
      ({ version, versionRead }) => versionRead !== 0 && version !== versionRead,
    )
    if (moved.length === 0) return []
    // Written by hand, without an object for each balance: no value has a character that JSON escapes.
    const memberOf = (balance: Balance) =>
      `"${keyOfBalance(balance.profile_id.toLowerCase(), balance.asset)}":["${formatAmount(balance.available, decimalsOf(balance.asset))}","${balance.version}","${balance.versionRead}","${this.#macOf(balance, now)}"]`
    return [
      {
        moved_at: now,
        profile_ids: arrayLiteral([...new Set(moved.map(({ profile_id }) => profile_id))]),
        assets: arrayLiteral([...new Set(moved.map(({ asset }) => asset))]),
        by_key: `{${moved.map(memberOf).join()}}`,
      },
    ]
  }
}

export type MadeBalance = ReturnType<Balances['made']>[number]
export type MovedBalances = ReturnType<Balances['moved']>[number]
