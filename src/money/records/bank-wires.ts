import type { Queryable } from '../../db/database.ts'
import type { RecordKind } from './need.ts'
import { arraysOf } from '../../db/rows.ts'

/**
 * Wires on the bank statement of the platform's account, recorded by an operator. The bank's reference identifies a
 * wire: the key `bank_wires_pkey` lets each wire be recorded once.
 */
export interface NewBankWire {
  asset: string
  /**
   * DEPOSIT: an incoming wire with a memo. SENT_BACK: an incoming wire with a memo that went back to its sender. RETURN: a
   * sent wire came back. SENT: the wire paid a withdrawal.
   */
  kind: 'DEPOSIT' | 'SENT_BACK' | 'RETURN' | 'SENT'
  /** In the form of `bankReference`. */
  bank_reference: string
  /** A decimal string. */
  amount: string
  /** The transfer that the wire created or completed. */
  transfer_id: string
  memo_id?: string
  /** For a RETURN: the withdrawal that came back. */
  returned_transfer_id?: string
  recorded_by: string
}

export type BankWire = Omit<NewBankWire, 'memo_id' | 'returned_transfer_id'> & {
  memo_id: string | null
  returned_transfer_id: string | null
  recorded_at: string
}

const directionOf = (kind: NewBankWire['kind']) => (kind === 'SENT' ? 'OUT' : 'IN')

const REFERENCE = /^[A-Z0-9][A-Z0-9/?:().,'+_-]{0,63}$/

/**
 * Normalises a bank's reference: upper case, without spaces, so that a differently typed reference is not recorded
 * twice. Undefined for a text that is no reference.
 */
export function bankReference(text: string): string | undefined {
  const plain = text.replace(/\s+/g, '').toUpperCase()
  return REFERENCE.test(plain) ? plain : undefined
}

/**
 * Records wires. A wire that is already recorded violates `bank_wires_pkey`; a second return of a wire violates
 * `bank_wires_returned`.
 */
export async function insertBankWires(tx: Queryable, wires: readonly NewBankWire[]): Promise<void> {
  if (wires.length === 0) return
  await tx.query(
    `
    insert into bank_wires (asset, direction, bank_reference, kind, amount, transfer_id, memo_id, returned_transfer_id,
                            recorded_by, recorded_at)
    select *, clock_timestamp()
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::uuid[], $7::text[], $8::uuid[], $9::text[])`,
    [
      wires.map(({ asset }) => asset),
      wires.map(({ kind }) => directionOf(kind)),
      ...arraysOf(wires, 'bank_reference', 'kind', 'amount', 'transfer_id'),
      wires.map(({ memo_id }) => memo_id ?? null),
      wires.map(({ returned_transfer_id }) => returned_transfer_id ?? null),
      wires.map(({ recorded_by }) => recorded_by),
    ],
  )
}

/** The wires that an operator records together with their movement. */
export const BANK_WIRES: RecordKind<never, never, NewBankWire> = {
  read: () =>
    Promise.reject(new Error('bank wires are written with a movement and never read for its decision')),
  write: (tx, _customerId, wires) => [insertBankWires(tx, wires)],
}

const COLUMNS = `asset, kind, bank_reference, amount, transfer_id, memo_id, returned_transfer_id, recorded_by, recorded_at`

/** Finds the wire with this reference, among incoming or among outgoing wires. */
export async function findBankWire(
  db: Queryable,
  { asset, kind, bank_reference }: Pick<NewBankWire, 'asset' | 'kind' | 'bank_reference'>,
): Promise<BankWire | undefined> {
  const { rows } = await db.query<BankWire>(
    `select ${COLUMNS} from bank_wires where asset = $1 and direction = $2 and bank_reference = $3`,
    [asset, directionOf(kind), bank_reference],
  )
  return rows[0]
}

export async function findBankWireOf(db: Queryable, transferId: string): Promise<BankWire | undefined> {
  const { rows } = await db.query<BankWire>(`select ${COLUMNS} from bank_wires where transfer_id = $1`, [
    transferId,
  ])
  return rows[0]
}

/** Finds the wire by which a withdrawal came back. */
export async function findReturnOf(db: Queryable, transferId: string): Promise<BankWire | undefined> {
  const { rows } = await db.query<BankWire>(
    `select ${COLUMNS} from bank_wires where returned_transfer_id = $1`,
    [transferId],
  )
  return rows[0]
}
