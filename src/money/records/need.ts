import type { Transaction } from '../../db/database.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'

/** The records of one kind that a batch of movements has read, with the changes of the movements decided so far. */
export interface KnownRecords<Key, Value, Change> {
  get(key: Key): Value | undefined
  /** Records the change of an accepted movement, so that the following movements see it. */
  note?(change: Change): void
}

/**
 * A kind of record that decisions read or change. Each batch reads it in one statement and writes it in one. A kind
 * that locks its records does so in key order, after the balances are locked.
 */
export interface RecordKind<Key, Value, Change = never> {
  /** Called with at least one key. */
  read(tx: Transaction, customerId: string, keys: readonly Key[]): Promise<KnownRecords<Key, Value, Change>>
  /** Sends the statements that write the changes of the accepted movements. All are sent at the return: the commit follows. */
  write?(
    tx: Transaction,
    customerId: string,
    changes: readonly Change[],
    macs: RowMacs | undefined,
  ): Promise<unknown>[]
}

/** A kind with its key type erased. Only the code that declared the kind knows it. */
export type AnyKind = RecordKind<unknown, unknown, unknown>

/** A record that a movement needs for its decision. The record may be missing. */
export interface Need {
  kind: AnyKind
  key: unknown
}
export const need = <Key, Value, Change>(kind: RecordKind<Key, Value, Change>, key: Key): Need => ({
  kind,
  key,
})

/** A record that a decision adds or changes, besides the ledger's own records. */
export interface Change {
  kind: AnyKind
  value: unknown
}
export const change = <Key, Value, C>(kind: RecordKind<Key, Value, C>, value: C): Change => ({
  kind,
  value,
})
