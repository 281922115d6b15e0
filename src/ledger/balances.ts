import { formatAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import type { Queryable, Transaction } from '../db/database.ts'

export interface BalanceKey {
  profile_id: string
  asset: string
}

/** A balance that this transaction has locked and may move. */
interface Balance extends BalanceKey {
  available: bigint
  /** How many entries the balance has. 0: it has no row yet. */
  version: number
  versionRead: number
}

export interface BalanceRow extends BalanceKey {
  available: string
  version: string
  /** When it last moved. */
  micros: string
  text: string
}

const keyOf = (profile_id: string, asset: string) => `${profile_id}/${asset}`

/** Reads and locks the balances that exist among `keys`, in key order, always: so no two batches deadlock. */
export function lockBalances(tx: Transaction, customerId: string, keys: BalanceKey[]): Promise<BalanceRow[]> {
  return tx
    .query<BalanceRow>({
      name: 'lock balances',
      text: `
        select b.profile_id, b.asset, b.available, b.version,
               (extract(epoch from b.updated_at) * 1000000)::bigint::text as micros, b.updated_at as text
        from (select distinct * from unnest($2::uuid[], $3::text[]) as k (profile_id, asset)) wanted
        join balances b
          on b.customer_id = $1 and b.profile_id = wanted.profile_id and b.asset = wanted.asset
        order by b.profile_id, b.asset
        for update of b`,
      values: [customerId, keys.map((key) => key.profile_id), keys.map((key) => key.asset)],
    })
    .then(({ rows }) => rows)
}

/** The profiles among `profileIds` that are this customer's. */
export async function selectProfiles(
  db: Queryable,
  customerId: string,
  profileIds: string[],
): Promise<Set<string>> {
  if (profileIds.length === 0) return new Set()
  const { rows } = await db.query<{ id: string }>({
    name: 'profiles that exist',
    text: 'select id from profiles where customer_id = $1 and id = any ($2::uuid[])',
    values: [customerId, profileIds],
  })
  return new Set(rows.map((row) => row.id))
}

/** The locked balances of a transaction, moved in memory first and written at once. */
export class Balances {
  #balances = new Map<string, Balance>()

  constructor(rows: BalanceRow[]) {
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

  has({ profile_id, asset }: BalanceKey): boolean {
    return this.#balances.has(keyOf(profile_id, asset))
  }

  available(profile_id: string, asset: string): bigint {
    return this.#balances.get(keyOf(profile_id, asset))?.available ?? 0n
  }

  /** Applies an entry; gives the balance it leaves and its version. The caller has checked the funds. */
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

  /** Sends the statements that write what has moved. They fail, and the transaction with them, on any surprise. */
  write(tx: Transaction, customerId: string, updatedAt: string): Promise<unknown>[] {
    const moved = [...this.#balances.values()].filter((balance) => balance.version !== balance.versionRead)
    // In key order, as the locks are: two processes that make the same new rows wait for each other, not in a ring.
    moved.sort((a, b) => (keyOf(a.profile_id, a.asset) < keyOf(b.profile_id, b.asset) ? -1 : 1))
    const made = moved.filter((balance) => balance.versionRead === 0)
    const updated = moved.filter((balance) => balance.versionRead !== 0)
    const columns = (balances: Balance[]) => [
      balances.map((balance) => balance.profile_id),
      balances.map((balance) => balance.asset),
      balances.map((balance) => formatAmount(balance.available, decimalsOf(balance.asset))),
      balances.map((balance) => balance.version),
    ]
    const sent: Promise<unknown>[] = []
    if (made.length > 0) {
      sent.push(
        tx.query({
          name: 'insert balances',
          text: `
            insert into balances (customer_id, updated_at, profile_id, asset, available, version)
            select $1, $2, * from unnest($3::uuid[], $4::text[], $5::numeric[], $6::bigint[])`,
          values: [customerId, updatedAt, ...columns(made)],
        }),
      )
    }
    if (updated.length > 0) {
      sent.push(
        tx.query({
          // The rows are locked, so all are there at the version that was read. Were one not, the division
          // by zero would end the transaction: there is no round trip between this and the commit.
          name: 'update balances',
          text: `
            with moved as (
              update balances b
              set available = m.available, version = m.version, updated_at = $2
              from unnest($3::uuid[], $4::text[], $5::numeric[], $6::bigint[], $7::bigint[])
                as m (profile_id, asset, available, version, version_read)
              where b.customer_id = $1 and b.profile_id = m.profile_id and b.asset = m.asset
                and b.version = m.version_read
              returning 1
            )
            select 1 / (count(*) = $8)::int from moved`,
          values: [
            customerId,
            updatedAt,
            ...columns(updated),
            updated.map((balance) => balance.versionRead),
            updated.length,
          ],
        }),
      )
    }
    return sent
  }
}
