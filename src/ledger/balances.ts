import { formatAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import { arrayLiteral, inOrder, type Transaction } from '../db/database.ts'

export interface BalanceKey {
  profile_id: string
  asset: string
}

/** A balance that this transaction has locked and may change. */
interface Balance extends BalanceKey {
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
  /** The account of the balance's profile. */
  account_id: string | null
}

/** What keeps money from leaving profiles. */
interface Barred {
  /** The version and MAC of the customer's policy (`POLICY_PLACE`); undefined where it has none. */
  policy?: string | undefined
  /** The frozen subjects of the customer: its id, or `<customer id>/<profile id>`. */
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
          select profile_id, asset, available, version, updated_at, (
            select account_id from profiles where customer_id = $1 and id = wanted.profile_id
          ) as account_id
          from balances
          where customer_id = $1 and profile_id = wanted.profile_id and asset = wanted.asset
          for update
        ) b
      ) locked on true`,
      values: [customerId, profileIds, arrayLiteral(sorted.map((key) => key.asset))],
    }),
    tx.query<{ subject: string; kind: 'FROZEN' | 'DEACTIVATED' | 'POLICY' }>({
      name: 'freezes, deactivated profiles and policy of a customer',
      text: `
      select subject, 'FROZEN' as kind from freezes
      where kind in ('CUSTOMER', 'PROFILE') and split_part(subject, '/', 1) = $1::uuid::text
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

/** Removes duplicate keys and sorts them. */
function distinct(keys: BalanceKey[]): BalanceKey[] {
  const byKey = new Map(keys.map((key) => [keyOf(key.profile_id, key.asset), key]))
  return [...byKey.keys()].sort().map((key) => byKey.get(key)!)
}

/** The locked balances of a transaction, changed in memory and written once. */
export class Balances {
  /** The profiles that these balances prove to exist, each with its account's id or null. */
  readonly profiles: ReadonlyMap<string, string | null>
  /** The frozen subjects of the customer: its id, or `<customer id>/<profile id>`. */
  readonly frozen: ReadonlySet<string>
  /** The ids of the deactivated profiles among those of the balances that were asked for. */
  readonly deactivated: ReadonlySet<string>
  /** The version and MAC of the customer's policy; undefined where it has none. */
  readonly policy: string | undefined
  #balances = new Map<string, Balance>()

  constructor(rows: BalanceRow[], { policy, frozen, deactivated }: Barred = { frozen: [], deactivated: [] }) {
    this.policy = policy
    this.frozen = new Set(frozen)
    this.deactivated = new Set(deactivated)
    this.profiles = new Map(rows.map((row) => [row.profile_id, row.account_id]))
    for (const { profile_id, asset, available, version } of rows) {
      this.#balances.set(keyOf(profile_id, asset), {
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

  /** Returns the changed balances as the columns of MADE_BALANCES and UPDATED_BALANCES, in key order like the locks. */
  changes(): { made: string[]; updated: string[]; updatedCount: number } {
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
    ]
    return {
      made: columns(made),
      updated: [...columns(updated), arrayLiteral(updated.map((balance) => balance.versionRead))],
      updatedCount: updated.length,
    }
  }
}

/** The columns of balances that get their first entry. */
export const MADE_BALANCES = ['uuid', 'text', 'numeric', 'bigint']
/** The columns of balances that already had entries. The last column is the version that was read. */
export const UPDATED_BALANCES = [...MADE_BALANCES, 'bigint']
