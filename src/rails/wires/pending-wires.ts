import { strict as assert } from 'node:assert'
import { originOfLoop, type Origin } from '../../contract/actor.ts'
import type { RailsContext } from '../context.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { LedgerTransaction } from '../../money/ledger/ledger-transaction.ts'
import type { Movement } from '../../money/movements/decision.ts'
import { deposit, depositRecord, type Deposit } from '../../money/movements/deposit.ts'
import { SEEN_DEPOSITS, type Arrival } from '../../money/movements/seen-deposits.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { markWiresEnded, selectEndedWires, type SimulatedWire } from '../../networks/simulated/wires.ts'
import { audited } from '../../audit/audited.ts'
import { failPending } from '../deposits/see-deposits.ts'

/**
 * Incoming wires that are known before they are credited: PENDING transfers without entries, as deposits over networks are.
 * In live mode screening holds them (`record-wires.ts`); in a sandbox the simulated bank announces those of magic amounts.
 */

export interface PendingWire {
  customer_id: string
  transfer_id: string
  memo_id: string
  /** A decimal string, as PostgreSQL writes numbers. */
  amount: string
}

/** The key of a PENDING wire: the bank's reference stands for the hash. */
export const arrivalOfWire = (bank_reference: string): Arrival => ({
  network: 'WIRE',
  crypto_tx_hash: bank_reference,
  crypto_tx_index: '0',
})

const SELECT_PENDING = `
    select s.customer_id, s.transfer_id, s.address as memo_id, t.amount
    from seen_deposits s
    join transfers t on t.customer_id = s.customer_id and t.id = s.transfer_id
    where s.network = 'WIRE' and s.state = 'PENDING' and s.crypto_tx_hash = $1`

/** Finds the PENDING wire with this reference: of this customer, or of any where the customer is not known. */
export async function findPendingWire(
  db: Queryable,
  bank_reference: string,
  customerId?: string,
): Promise<PendingWire | undefined> {
  const { rows } =
    customerId === undefined
      ? await db.query<PendingWire>(SELECT_PENDING, [bank_reference])
      : await db.query<PendingWire>(`${SELECT_PENDING} and s.customer_id = $2 and t.customer_id = $2`, [
          bank_reference,
          customerId,
        ])
  return rows[0]
}

/** The PENDING wires with these memos. */
export async function pendingAmong(db: Queryable, memos: readonly string[]) {
  const { rows } = await db.query<Pick<PendingWire, 'transfer_id' | 'memo_id'>>(
    `select transfer_id, address as memo_id from seen_deposits
     where network = 'WIRE' and state = 'PENDING' and address = any ($1)`,
    [memos],
  )
  return rows
}

/** A wire that is not credited yet, without its platform account. */
export type AnnouncedWire = Omit<Deposit, 'arrivedAt' | 'seenAs' | 'type'>

/**
 * Records the PENDING transfer of a wire, with its event. Returns its id; undefined where the customer has a PENDING wire
 * with this reference.
 */
export async function announceWire(
  tx: Transaction,
  customerId: string,
  bank_reference: string,
  wire: AnnouncedWire,
  origin: Origin,
): Promise<string | undefined> {
  const ledger = await LedgerTransaction.open(tx, customerId, [])
  const { now } = ledger
  const id = newId(now)
  const { rowCount } = await tx.query(
    `
    insert into seen_deposits (customer_id, transfer_id, network, crypto_tx_hash, crypto_tx_index, address, block_number,
                               state, seen_at)
    values ($1, $2, 'WIRE', $3, '0', $4, 0, 'PENDING', $5)
    on conflict (customer_id, crypto_tx_hash) where network = 'WIRE' and state = 'PENDING' do nothing`,
    [customerId, id, bank_reference, wire.record.memo ?? '', now.text],
  )
  if (rowCount === 0) return undefined
  const record = depositRecord(customerId, { ...wire, type: 'WIRE_DEPOSIT' }, { id, now })
  await ledger.write([{ transfer: record }])
  recordChanges(tx, customerId, now, [audited(origin, 'transfer.create', id)])
  return id
}

/** A wire is not PENDING any more: another process has ended it. */
class NotPending extends Error {}

// ---------------------------------------------------------------------------------------------- the simulated bank

const LOOP = originOfLoop('deposits')

/**
 * Ends the PENDING wires of the simulated bank whose time has come: credits them, or fails those that it sends back. Each
 * ends once, because only a PENDING transfer can. Returns their number. Throws the failures after all were tried.
 */
export async function endSimulatedWires(
  { db, ledger }: Pick<RailsContext, 'db' | 'ledger'>,
  { simulatedWireMs }: Pick<NetworkAdapter, 'simulatedWireMs'>,
): Promise<number> {
  if (simulatedWireMs === undefined) return 0
  const ended: string[] = []
  const failures: unknown[] = []
  for (const wire of await selectEndedWires(db, simulatedWireMs)) {
    try {
      const hasEnded = wire.sentBack ? await failWire(db, wire) : await creditWire(ledger, wire)
      // A wire whose transfer is not recorded yet is looked at again.
      if (hasEnded || wire.isOld) ended.push(wire.bank_reference)
    } catch (error) {
      // A customer whose node is gone delays no other customer's wires.
      failures.push(error)
    }
  }
  await markWiresEnded(db, ended)
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} simulated wires did not end`)
  return ended.length
}

async function failWire(db: Database, { bank_reference, customer_id }: SimulatedWire): Promise<boolean> {
  return transaction(db, async (tx) => {
    const pending = await findPendingWire(tx, bank_reference, customer_id)
    if (pending === undefined || (await failPending(tx, [pending])) === 0) return false
    const failed = audited(LOOP, 'transfer.fail', pending.transfer_id)
    recordChanges(tx, customer_id, await readClock(tx), [failed])
    return true
  })
}

async function creditWire(
  ledger: RailsContext['ledger'],
  { bank_reference, customer_id, profile_id, asset, minor, memo, place }: SimulatedWire,
): Promise<boolean> {
  const seenAs = arrivalOfWire(bank_reference)
  const arrived: Deposit = {
    ...{ profile_id, asset, place, seenAs, minor: BigInt(minor) },
    type: 'WIRE_DEPOSIT',
    arrivedAt: 'bank',
    record: memo === undefined ? {} : { memo },
  }
  const movement = deposit(customer_id, arrived, LOOP)
  const credit: Movement = {
    ...movement,
    decide(view) {
      // A wire that is not PENDING has ended: a credit would be its second one.
      if (view.get(SEEN_DEPOSITS, seenAs) === undefined) throw new NotPending()
      return movement.decide(view)
    },
  }
  try {
    const { transfer } = await ledger.submit(customer_id, credit)
    assert(transfer.status === 'COMPLETED')
    return true
  } catch (error) {
    if (error instanceof NotPending) return false
    throw error
  }
}
