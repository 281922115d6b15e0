import { formatAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import { problem } from '../contract/problems.ts'
import { arrayLiteral, inOrder, onCitus, type Transaction } from '../db/database.ts'
import { IS_OUTDATED, OUTDATED, type BalanceMacs } from './balance-macs.ts'

export interface BalanceKey {
  profile_id: string
  asset: string
}

/** A balance that this transaction has locked and may change. */
interface Balance extends BalanceKey {
  /** As it was read; absent where it has no row yet. */
  row?: BalanceRow
  /** Whether it is as Bursar wrote it; undefined until that is asked. */
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
  /** It has an entry that is newer. */
  is_outdated: boolean
  /** The account of the balance's profile. */
  account_id: string | null
}

/** What keeps money from leaving profiles. */
interface Barred {
  /** The version and MAC of the customer's policy (`POLICY_PLACE`); undefined where it has none. */
  policy?: string | undefined
  /** The frozen subjects of the customer: its own id, and those of its profiles. */
  frozen: readonly string[]
  /** The ids of the deactivated profiles among those of the balances. */
  deactivated: readonly string[]
}

type LockedRow = BalanceRow & { now: string }

const keyOf = (profile_id: string, asset: string) => `${profile_id}/${asset}`

/**
 * Reads and locks the existing balances among `keys`, always in key order, so that no two batches deadlock. Reads the
 * database's clock after each lock. Returns at least one row: without any balance it has only the clock. `policy`
 * names the customer's policy, `frozen` lists the subjects of freezes of the customer and its profiles, and `deactivated` the deactivated profiles of `keys`,
 * both read in the same round trip: customers make and deactivate any number of profiles.
 */
export async function lockBalances(
  tx: Transaction,
  customerId: string,
  keys: BalanceKey[],
): Promise<{ rows: BalanceRow[]; clock: string } & Barred> {
  if (onCitus(tx)) return lockDistributed(tx, customerId, keys)
  const sorted = distinct(keys)
  const profileIds = arrayLiteral(sorted.map((key) => key.profile_id))
  const [{ rows }, { rows: barred }] = await inOrder([
    tx.query<LockedRow>({
      name: 'lock balances',
      // Lateral forces one index look-up per key, in key order. The clock is in the select list, so that it is read
      // when the row of that key is locked.
      text: `
      select locked.*, clock_timestamp() as now
      from (values (0)) one_row
      left join (
        select b.*
        from unnest($2::uuid[], $3::text[]) as wanted (profile_id, asset)
        cross join lateral (
          select profile_id, asset, available, version, updated_at, mac, ${IS_OUTDATED} as is_outdated, (
            select account_id from profiles where customer_id = $1 and id = wanted.profile_id
          ) as account_id
          from balances b
          where customer_id = $1 and profile_id = wanted.profile_id and asset = wanted.asset
          for update of b
        ) b
      ) locked on true`,
      values: [customerId, profileIds, arrayLiteral(sorted.map((key) => key.asset))],
    }),
    tx.query<{ subject: string; kind: 'FROZEN' | 'DEACTIVATED' | 'POLICY' }>({
      name: 'freezes, deactivated profiles and policy of a customer',
      text: `
      select subject::text, 'FROZEN' as kind from customer_freezes
      where customer_id = $1 and lifted_at is null
      union all
      select id::text, 'DEACTIVATED' from profiles
      where customer_id = $1 and id = any ($2::uuid[]) and deactivated_at is not null
      union all
      (select version || ' ' || mac, 'POLICY' from policies
       where customer_id = $1
       order by version desc
       limit 1)`,
      values: [customerId, profileIds],
    }),
  ])
  return {
    rows: rows.filter((row) => row.profile_id !== null),
    clock: rows.at(-1)!.now,
    policy: barred.find(({ kind }) => kind === 'POLICY')?.subject,
    frozen: barred.flatMap(({ subject, kind }) => (kind === 'FROZEN' ? subject : [])),
    deactivated: barred.flatMap(({ subject, kind }) => (kind === 'DEACTIVATED' ? subject : [])),
  }
}

/**
 * The same on a distributed database, in statements of one table each: those are on Citus' fast path. They lock also
 * the other balances of these profiles in these assets. The clock is read by a statement after the locks.
 */
async function lockDistributed(
  tx: Transaction,
  customerId: string,
  keys: BalanceKey[],
): Promise<{ rows: BalanceRow[]; clock: string } & Barred> {
  const wanted = new Set(keys.map((key) => keyOf(key.profile_id.toLowerCase(), key.asset)))
  const profileIds = arrayLiteral([...new Set(keys.map((key) => key.profile_id))])
  const assets = arrayLiteral([...new Set(keys.map((key) => key.asset))])
  const [
    { rows: locked },
    { rows: outdated },
    { rows: clocks },
    { rows: profiles },
    { rows: policies },
    { rows: freezes },
  ] = await inOrder([
    tx.query<Omit<BalanceRow, 'account_id' | 'is_outdated'>>({
      name: 'lock balances of profiles',
      text: `
        select profile_id, asset, available, version, updated_at, mac
        from balances
        where customer_id = $1 and profile_id = any ($2::uuid[]) and asset = any ($3::text[])
        order by profile_id, asset
        for update`,
      values: [customerId, profileIds, assets],
    }),
    tx.query<BalanceKey>({
      name: 'outdated balances of profiles',
      text: `
        select profile_id, asset
        from balances b
        where customer_id = $1 and profile_id = any ($2::uuid[]) and asset = any ($3::text[]) and ${IS_OUTDATED}`,
      values: [customerId, profileIds, assets],
    }),
    tx.query<{ now: string }>({ name: 'clock', text: 'select clock_timestamp() as now' }),
    tx.query<{ id: string; account_id: string | null; deactivated: boolean }>({
      name: 'accounts of profiles',
      text: `
        select id, account_id, deactivated_at is not null as deactivated from profiles
        where customer_id = $1 and id = any ($2::uuid[])`,
      values: [customerId, profileIds],
    }),
    tx.query<{ policy: string }>({
      name: 'policy of a customer',
      text: `
        select version || ' ' || mac as policy from policies
        where customer_id = $1
        order by version desc
        limit 1`,
      values: [customerId],
    }),
    tx.query<{ subject: string }>({
      name: 'freezes of a customer',
      text: `
        select subject::text from customer_freezes
        where customer_id = $1 and lifted_at is null`,
      values: [customerId],
    }),
  ])
  const accounts = new Map(profiles.map(({ id, account_id }) => [id, account_id]))
  return {
    rows: locked
      .filter(({ profile_id, asset }) => wanted.has(keyOf(profile_id, asset)))
      .map((row) => ({
        ...row,
        is_outdated: outdated.some(
          ({ profile_id, asset }) => profile_id === row.profile_id && asset === row.asset,
        ),
        account_id: accounts.get(row.profile_id) ?? null,
      })),
    clock: clocks[0]!.now,
    policy: policies[0]?.policy,
    frozen: freezes.map(({ subject }) => subject),
    deactivated: profiles.flatMap(({ id, deactivated }) => (deactivated ? id : [])),
  }
}

/** Removes duplicate keys and sorts them. */
function distinct(keys: BalanceKey[]): BalanceKey[] {
  const byKey = new Map(keys.map((key) => [keyOf(key.profile_id, key.asset), key]))
  return [...byKey.keys()].sort().map((key) => byKey.get(key)!)
}

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
  readonly #sealing: Sealing | undefined

  /** Without `sealing` no balance can move: none was locked. */
  constructor(
    rows: BalanceRow[],
    { policy, frozen, deactivated }: Barred = { frozen: [], deactivated: [] },
    sealing?: Sealing,
  ) {
    this.#sealing = sealing
    this.policy = policy
    this.frozen = new Set(frozen)
    this.deactivated = new Set(deactivated)
    this.profiles = new Map(rows.map((row) => [row.profile_id, row.account_id]))
    for (const row of rows) {
      const { profile_id, asset, available, version } = row
      this.#balances.set(keyOf(profile_id, asset), {
        row,
        profile_id,
        asset,
        available: parseStoredAmount(available, decimalsOf(asset)),
        version: Number(version),
        versionRead: Number(version),
      })
    }
  }

  available(profile_id: string, asset: string): bigint {
    return this.#balances.get(keyOf(profile_id, asset))?.available ?? 0n
  }

  /** Throws unavailable for a balance that is not as Bursar wrote it: whoever changed it in the database would be paid. */
  requireGenuine(profile_id: string, asset: string): void {
    const balance = this.#balances.get(keyOf(profile_id, asset))
    if (balance?.row === undefined) return
    balance.isGenuine ??= this.#isGenuine(balance, balance.row)
    if (!balance.isGenuine)
      throw problem.unavailable(
        `the ${asset} balance of profile ${profile_id} was changed in the database; nothing moves it until an operator has looked`,
      )
  }

  /** Compares a balance with its MAC; it has not moved yet. */
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
    const key = keyOf(profile_id, asset)
    const balance = this.#balances.get(key) ?? {
      profile_id,
      asset,
      available: 0n,
      version: 0,
      versionRead: 0,
    }
    this.#balances.set(key, balance)
    balance.available += amount
    balance.version += 1
    return balance
  }

  /**
   * Returns the changed balances as the columns of MADE_BALANCES and UPDATED_BALANCES, in key order like the locks. `now` is the
   * time of their entries.
   */
  changes(now: string): { made: string[]; madeCount: number; updated: string[]; updatedCount: number } {
    const moved = [...this.#balances]
      .filter(([, balance]) => balance.version !== balance.versionRead)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, balance]) => balance)
    const made = moved.filter((balance) => balance.versionRead === 0)
    const updated = moved.filter((balance) => balance.versionRead !== 0)
    const columns = (balances: Balance[]) => [
      arrayLiteral(balances.map((balance) => balance.profile_id)),
      arrayLiteral(balances.map((balance) => balance.asset)),
      arrayLiteral(balances.map((balance) => formatAmount(balance.available, decimalsOf(balance.asset)))),
      arrayLiteral(balances.map((balance) => balance.version)),
      arrayLiteral(balances.map((balance) => this.#macOf(balance, now))),
    ]
    return {
      made: columns(made),
      madeCount: made.length,
      updated: [...columns(updated), arrayLiteral(updated.map((balance) => balance.versionRead))],
      updatedCount: updated.length,
    }
  }

  #macOf(balance: Balance, now: string): string {
    const { macs, customerId } = this.#sealing!
    return macs.make(customerId, balance, now)
  }

  /**
   * Returns the balances that already had entries and changed, for a statement that looks a row's values up: by
   * `profile/asset`, as JSON, what is available, the version, the version that was read and the MAC. Undefined without any.
   */
  movedByKey(now: string): { profileIds: string; assets: string; byKey: string } | undefined {
    const moved = [...this.#balances.values()].filter(
      ({ version, versionRead }) => versionRead !== 0 && version !== versionRead,
    )
    if (moved.length === 0) return undefined
    const valuesOf = (balance: Balance) => [
      formatAmount(balance.available, decimalsOf(balance.asset)),
      String(balance.version),
      String(balance.versionRead),
      this.#macOf(balance, now),
    ]
    return {
      profileIds: arrayLiteral([...new Set(moved.map(({ profile_id }) => profile_id))]),
      assets: arrayLiteral([...new Set(moved.map(({ asset }) => asset))]),
      byKey: JSON.stringify(
        Object.fromEntries(
          moved.map((one) => [keyOf(one.profile_id.toLowerCase(), one.asset), valuesOf(one)]),
        ),
      ),
    }
  }
}

/** The columns of balances that get their first entry. */
export const MADE_BALANCES = ['uuid', 'text', 'numeric', 'bigint', 'text']
/** The columns of balances that already had entries. The last column is the version that was read. */
export const UPDATED_BALANCES = [...MADE_BALANCES, 'bigint']
