import { formatAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import { inOrder, type Transaction } from '../db/database.ts'
import { momentOf, NOW_SQL, type Moment } from '../db/ids.ts'
import { Balances, lockBalances, type BalanceKey } from './balances.ts'
import { balanced, type Entry, type Posting } from './entries.ts'

/** The ledger inside one transaction: balances locked, movements applied in memory, then written at once. */
export class LedgerTransaction {
  readonly balances: Balances
  /** The moment of everything posted in this transaction. It never precedes an earlier entry of a balance. */
  readonly now: Moment
  #tx: Transaction
  #customerId: string
  #rows: EntryRows = [[], [], [], [], [], [], [], [], []]

  private constructor(tx: Transaction, customerId: string, balances: Balances, now: Moment) {
    this.#tx = tx
    this.#customerId = customerId
    this.balances = balances
    this.now = now
  }

  /** Locks the balances that `keys` name and reads the clock behind the locks. One round trip. */
  static async open(tx: Transaction, customerId: string, keys: BalanceKey[]): Promise<LedgerTransaction> {
    const [rows, clock] = await inOrder([
      lockBalances(tx, customerId, keys),
      tx.query<{ micros: string; text: string }>({ name: 'now', text: NOW_SQL }),
    ])
    // A clock that was set back must not put an entry before the one it follows.
    const now = [clock.rows[0]!, ...rows].map(momentOf).reduce((a, b) => (b.micros > a.micros ? b : a))
    return new LedgerTransaction(tx, customerId, new Balances(rows), now)
  }

  /** The first profile balance that these entries would take below zero, and by what it falls short. */
  shortOf(
    entries: Entry[],
  ): { profile_id: string; asset: string; available: bigint; needed: bigint } | undefined {
    for (const { profile_id, asset, amount } of entries) {
      if (profile_id === null || amount >= 0n) continue
      const available = this.balances.available(profile_id, asset)
      if (available + amount < 0n) return { profile_id, asset, available, needed: -amount }
    }
    return undefined
  }

  /** Adds a posting. Throws an assertion when it does not balance. */
  post({ transfer_id, event, entries }: Posting): void {
    let position = 0
    for (const { account, profile_id, asset, amount } of balanced(entries)) {
      const after = profile_id === null ? undefined : this.balances.move(profile_id, asset, amount)
      const decimals = decimalsOf(asset)
      const row = [
        transfer_id,
        event,
        ++position,
        account,
        profile_id,
        asset,
        formatAmount(amount, decimals),
        after === undefined ? null : formatAmount(after.available, decimals),
        after === undefined ? null : after.version,
      ]
      row.forEach((value, column) => this.#rows[column]!.push(value))
    }
  }

  /** Sends the statements that write the entries and balances, without waiting: the commit may follow at once. */
  write(): Promise<unknown>[] {
    if (this.#rows[0]!.length === 0) return []
    return [
      ...this.balances.write(this.#tx, this.#customerId, this.now.text),
      this.#tx.query({
        name: 'insert entries',
        text: `
          insert into entries (customer_id, created_at, transfer_id, event, position, account, profile_id, asset,
                               amount, balance_after, version)
          select $1, $2, * from unnest($3::uuid[], $4::text[], $5::smallint[], $6::text[], $7::uuid[], $8::text[],
                                       $9::numeric[], $10::numeric[], $11::bigint[])`,
        values: [this.#customerId, this.now.text, ...this.#rows],
      }),
    ]
  }
}

/** Column by column, in the order of the insert. */
type EntryRows = (string | number | null)[][]
