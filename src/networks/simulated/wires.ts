import { randomBytes } from 'node:crypto'
import type { Database, Queryable } from '../../db/database.ts'
import { isConfirmed } from './deposits.ts'

/** A wire that the simulated bank announces before it is credited or sent back. */
export interface SimulatedWire {
  bank_reference: string
  customer_id: string
  profile_id: string
  asset: string
  /** In minor units of the asset, as a decimal string. */
  minor: string
  memo?: string
  /** The deposit instructions, if the wire names any. */
  place?: {
    id: string
    identity_id?: string | null
    account_id?: string | null
    metadata?: Record<string, string> | null
  }
  /** The bank sends it back to its sender, instead of crediting it. */
  sentBack: boolean
  /** It was announced at least a minute ago: its PENDING transfer was recorded, or never will be. */
  isOld: boolean
}

const ENDED_MAX = 100

/** Lets a wire arrive at the simulated bank, and returns its reference. */
export async function receiveWire(
  db: Queryable,
  { sentBack, ...wire }: Omit<SimulatedWire, 'bank_reference' | 'isOld'>,
): Promise<string> {
  const reference = `SIMULATED${randomBytes(12).toString('hex').toUpperCase()}`
  await db.query(
    `
    insert into simulated_chain (crypto_network, hash, raw_transaction, arrives, broadcast_at, dropped_at)
    select 'WIRE', $1, $2, true, at, case when $3::boolean then at end
    from (select clock_timestamp() as at) now`,
    [reference, Buffer.from(JSON.stringify(wire)), sentBack],
  )
  return reference
}

/** Selects wires that were announced this many milliseconds ago and have not ended, at most a hundred. */
export async function selectEndedWires(db: Database, milliseconds: number): Promise<SimulatedWire[]> {
  const { rows } = await db.query<{
    hash: string
    wire: Omit<SimulatedWire, 'bank_reference' | 'sentBack' | 'isOld'>
    sent_back: boolean
    is_old: boolean
  }>(
    `
    select hash, convert_from(raw_transaction, 'UTF8')::json as wire, dropped_at is not null as sent_back,
           broadcast_at < clock_timestamp() - interval '1 minute' as is_old
    from simulated_chain
    where crypto_network = 'WIRE' and arrives is not false and arrives and ${isConfirmed('$1')}
    order by broadcast_at, hash
    limit ${ENDED_MAX}`,
    [milliseconds],
  )
  return rows.map(({ hash, wire, sent_back, is_old }) => ({
    ...wire,
    ...{ bank_reference: hash, sentBack: sent_back, isOld: is_old },
  }))
}

export async function markWiresEnded(db: Database, references: string[]): Promise<void> {
  if (references.length === 0) return
  await db.query(
    `update simulated_chain set arrives = false where crypto_network = 'WIRE' and hash = any ($1)`,
    [references],
  )
}
