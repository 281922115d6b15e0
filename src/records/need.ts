import type { Transaction } from '../db/database.ts'

/** What a batch of movements has read of one kind, with the changes of those that are decided already. */
export interface Known<Key, Value, Change> {
  get(key: Key): Value | undefined
  /** A movement is accepted that makes this change: the movements behind it see it. */
  note?(change: Change): void
}

/**
 * A kind of record that movements are decided by, or that their decisions change. Each is read for a whole batch in one
 * statement, and written in one. A kind that locks what it reads does so in key order, after the balances are locked.
 */
export interface Kind<Key, Value, Change = never> {
  /** Is called with at least one key. */
  read(tx: Transaction, customerId: string, keys: readonly Key[]): Promise<Known<Key, Value, Change>>
  /** Writes the changes of the accepted movements, in the transaction that posts them. */
  write?(tx: Transaction, customerId: string, changes: readonly Change[]): Promise<void>
}

/** A kind of which only the one who declared it knows the keys. */
export type AnyKind = Kind<unknown, unknown, unknown>

/** A record that a movement needs to be decided. It need not be there. */
export interface Need {
  kind: AnyKind
  key: unknown
}
export const need = <Key, Value, Change>(kind: Kind<Key, Value, Change>, key: Key): Need => ({
  kind: kind as AnyKind,
  key,
})

/** A record that a decision adds or changes, beside the ledger's own. */
export interface Change {
  kind: AnyKind
  value: unknown
}
export const change = <Key, Value, C>(kind: Kind<Key, Value, C>, value: C): Change => ({
  kind: kind as AnyKind,
  value,
})
