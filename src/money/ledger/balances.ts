import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { problem } from '../../contract/problems.ts'
import { arrayLiteral, inOrder, type Transaction } from '../../db/database.ts'
import { IS_OUTDATED, keyOfBalance, OUTDATED, type BalanceMacs } from '../../audit/balance-macs.ts'
import { holds, SEALED_END, type Seal } from '../../audit/freeze-ends.ts'

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
  /** Whether the balance has a newer entry. */
  is_outdated: boolean
  /** The account of the balance's profile. */
  account_id: string | null
}

type Freeze = Seal & { subject: string; lifted_at: string | null }

/** What keeps money from leaving profiles. */
interface Barred {
  /** The version and MAC of the customer's policy (`POLICY_PLACE`); undefined where it has none. */
  policy?: string | undefined
  /** The freezes of the customer and its profiles, by subject. An end that was written without the master key ends none. */
  freezes: readonly Freeze[]
  /** The ids of the deactivated profiles among those of the balances. */
  deactivated: readonly string[]
  profiles?: ReadonlyMap<string, string | null>
}

/**
 * Reads and locks the existing balances of these profiles in these assets, and returns those among `keys`. It locks them in key
 * order, so that no two batches deadlock, and reads the database's clock after the locks. `policy` names the customer's policy,
 * `freezes` has the freezes of the customer and its profiles, and `deactivated` the deactivated profiles of `keys`.
 * It takes one round trip.
 */
export async function lockBalances(
  tx: Transaction,
  customerId: string,
  keys: BalanceKey[],
): Promise<{ rows: BalanceRow[]; clock: string } & Barred> {
  const wanted = new Set(keys.map((key) => keyOfBalance(key.profile_id.toLowerCase(), key.asset)))
  const profileIds = arrayLiteral([...new Set(keys.map((key) => key.profile_id))])
  const assets = arrayLiteral([...new Set(keys.map((key) => key.asset))])
  const [{ rows: locked }, { rows: read }] = await inOrder([
    tx.query<Omit<BalanceRow, 'account_id' | 'is_outdated'> & Partial<BalanceRow>>({
      name: 'lock balances',
      text: `
        select profile_id, asset, available, version, updated_at, mac
        from balances
        where customer_id = $1 and profile_id = any ($2::uuid[]) and asset = any ($3::text[])
        order by profile_id, asset
        for update`,
      values: [customerId, profileIds, assets],
    }),
    tx.query<{ kind: RowKind; subject: string; detail: string | null; now: string; mac: string | null }>({
      name: 'standing of balances',
      text: STANDING,
      values: [customerId, profileIds, assets],
    }),
  ])
  const accounts = new Map<string, string | null>()
  const freezes: Freeze[] = []
  const subjects: Record<Exclude<RowKind, 'CLOCK' | 'ACCOUNT' | 'FREEZE'>, string[]> = {
    DEACTIVATED: [],
    POLICY: [],
    OUTDATED: [],
  }
  let clock = ''
  for (const { kind, subject, detail, now, mac } of read) {
    if (kind === 'ACCOUNT') accounts.set(subject, detail)
    else if (kind === 'CLOCK') clock = now
    else if (kind === 'FREEZE') freezes.push({ subject, lifted_at: now, sealed: detail!, mac })
    else subjects[kind].push(subject)
  }
  const profiles = new Map<string, string | null>()
  const rows = locked.filter((row): row is BalanceRow => {
    const key = keyOfBalance(row.profile_id, row.asset)
    // The row is completed in place: copies were a part of the CPU of each withdrawal.
    row.is_outdated = subjects.OUTDATED.includes(key)
    row.account_id = accounts.get(row.profile_id) ?? null
    profiles.set(row.profile_id, row.account_id)
    return wanted.has(key)
  })
  return {
    rows,
    clock,
    profiles,
    policy: subjects.POLICY[0],
    freezes,
    deactivated: subjects.DEACTIVATED,
  }
}

/** What is read with balances: `ACCOUNT` are profiles with their accounts; `CLOCK` is one row. */
type RowKind = 'CLOCK' | 'ACCOUNT' | 'DEACTIVATED' | 'FREEZE' | 'POLICY' | 'OUTDATED'

// The clock is read after the locks.
const STANDING = `
  select 'CLOCK' as kind, null as subject, null as detail, clock_timestamp() as now, null as mac
  union all
  select 'ACCOUNT', id::text, account_id::text, null, null from profiles
  where customer_id = $1 and id = any ($2::uuid[])
  union all
  select 'DEACTIVATED', id::text, null, null, null from profiles
  where customer_id = $1 and id = any ($2::uuid[]) and deactivated_at is not null
  union all
  -- Of these profiles alone, and of the customer: each end costs a MAC.
  select 'FREEZE', subject::text, ${SEALED_END}, lifted_at, mac from customer_freezes r
  where customer_id = $1 and (subject = $1 or subject = any ($2::uuid[]))
  union all
  (select 'POLICY', version || ' ' || mac, null, null, null from policies
   where customer_id = $1
   order by version desc
   limit 1)
  union all
  select 'OUTDATED', profile_id || '/' || asset, null, null, null from balances b
  where customer_id = $1 and profile_id = any ($2::uuid[]) and asset = any ($3::text[]) and ${IS_OUTDATED}`

/** The MACs of a customer's balances. */
interface Sealing {
  macs: BalanceMacs
  customerId: string
}

/** The locked balances of a transaction, changed in memory and written once. */
export class Balances {
  /** The profiles that these balances prove to exist, each with its account's id or null. */
  readonly profiles: ReadonlyMap<string, string | null>
  /** The frozen subjects of the customer: its own id, and those of its profiles. */
  readonly frozen: ReadonlySet<string>
  /** The ids of the deactivated profiles among those of the balances that were asked for. */
  readonly deactivated: ReadonlySet<string>
  /** The version and MAC of the customer's policy; undefined where it has none. */
  readonly policy: string | undefined
  #balances = new Map<string, Balance>()
  #found: Balance | undefined
  readonly #sealing: Sealing | undefined

  /** Without `sealing` no balance can move: none was locked. */
  constructor(
    rows: BalanceRow[],
    { policy, freezes, deactivated, profiles = new Map() }: Barred = { freezes: [], deactivated: [] },
    sealing?: Sealing,
  ) {
    this.#sealing = sealing
    this.policy = policy
    this.frozen = new Set(
      freezes
        .filter((freeze) => holds(freeze, (end) => sealing?.macs.isEndOfFreeze(end) === true))
        .map(({ subject }) => subject),
    )
    this.deactivated = new Set(deactivated)
    this.profiles = profiles
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
      macs.objectionTo(customerId, balance, row.updated_at, row.mac) ??
      (row.is_outdated ? OUTDATED : undefined)
    if (objection !== undefined) macs.onForged(row.profile_id, objection)
    return objection === undefined
  }

  /** Applies an entry and returns the balance after it. The caller has checked the funds. */
  move(profile_id: string, asset: string, amount: bigint): Balance {
    const balance = this.#find(profile_id, asset) ?? this.#begin(profile_id, asset)
    balance.available += amount
    balance.version += 1
    return balance
  }

  /** Adds a balance that has no row yet. */
  #begin(profile_id: string, asset: string): Balance {
    const balance: Balance = { profile_id, asset, available: 0n, version: 0, versionRead: 0 }
    this.#balances.set(keyOfBalance(profile_id, asset), balance)
    return balance
  }

  /**
   * Returns the balances that got their first entry as the columns of MADE_BALANCES, in key order. `now` is the time of their
   * entries.
   */
  made(now: string): { columns: string[]; count: number } {
    const made = [...this.#balances]
      .filter(([, { version, versionRead }]) => versionRead === 0 && version !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, balance]) => balance)
    const columns = [
      arrayLiteral(made.map((balance) => balance.profile_id)),
      arrayLiteral(made.map((balance) => balance.asset)),
      arrayLiteral(made.map((balance) => formatAmount(balance.available, decimalsOf(balance.asset)))),
      arrayLiteral(made.map((balance) => balance.version)),
      arrayLiteral(made.map((balance) => this.#macOf(balance, now))),
    ]
    return { columns, count: made.length }
  }

  #macOf(balance: Balance, now: string): string {
    const { macs, customerId } = this.#sealing!
    return macs.make(customerId, balance, now)
  }

  /**
   * Returns the balances that already had entries and changed, for a statement that looks a row's values up. `byKey` is JSON: by
   * `profile/asset`, the available amount, the version, the version that was read and the MAC. Undefined where none changed.
   */
  moved(now: string): { profileIds: string; assets: string; byKey: string } | undefined {
    const moved = [...this.#balances.values()].filter(
      ({ version, versionRead }) => versionRead !== 0 && version !== versionRead,
    )
    if (moved.length === 0) return undefined
    // Written by hand, without an object for each balance: no value has a character that JSON escapes.
    const memberOf = (balance: Balance) =>
      `"${keyOfBalance(balance.profile_id.toLowerCase(), balance.asset)}":["${formatAmount(balance.available, decimalsOf(balance.asset))}","${balance.version}","${balance.versionRead}","${this.#macOf(balance, now)}"]`
    return {
      profileIds: arrayLiteral([...new Set(moved.map(({ profile_id }) => profile_id))]),
      assets: arrayLiteral([...new Set(moved.map(({ asset }) => asset))]),
      byKey: `{${moved.map(memberOf).join()}}`,
    }
  }
}

/** The columns of balances that get their first entry, with their types. */
export const MADE_BALANCES = {
  profile_id: 'uuid',
  asset: 'text',
  available: 'numeric',
  version: 'bigint',
  mac: 'text',
}
