import { Type, type Static } from 'typebox'
import { Amount, AssetSymbol, OneOf, TextOrNull, Timestamp, Uuid } from '../../contract/fields.ts'
import { strict as assert } from 'node:assert'
import { violatedConstraint, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { findBankWire, findBankWireOf, insertBankWires } from '../../money/records/bank-wires.ts'
import type { FiatAccount } from '../../money/records/fiat-account.ts'
import { describeFreeze, selectFreezes, type Freeze } from '../../money/records/freezes.ts'
import { ownRowMacs, type RowMacs } from '../../audit/sealed-rows.ts'
import { readOrder, signedOrder, wiresByHand, type WireOrder } from '../../networks/bank/manual-wires.ts'
import type { NetworkAdapter, Signing, Withdrawal } from '../../networks/network.ts'
import { disagreementOf } from '../../networks/signed-payments.ts'
import type { WaitingCode } from '../../contract/waiting-codes.ts'
import type { Screening } from '../screening/screening.ts'
import { reviewAndSign } from '../payouts/sign-withdrawals.ts'
import { findWithdrawal, holdWithdrawal } from '../payouts/hold-withdrawal.ts'
import type { HeldWithdrawal } from '../payouts/claimed-withdrawals.ts'
import { markWithdrawal } from '../payouts/withdrawal-marks.ts'
import { record } from '../payouts/record-steps.ts'
import { keepResolution } from '../payouts/resolve-withdrawal.ts'
import { guarded } from '../payouts/signing-guards.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import type { Origin } from '../../contract/actor.ts'
import { Refusal } from '../../contract/refusal.ts'
import { refusedDestination } from '../../networks/waiting.ts'
import { objectionsTo } from '../../money/movements/accepted-withdrawals.ts'

/** Wires that operators send by hand: list, take, mark as sent or failed (docs/guides/live-without-a-bank-interface.md). */

export const WIRES_MAX = 1_000

/** The person who handles a wire, by the name that its records keep. */
export interface By {
  operator: string
  origin: Origin
}

export const OpenWire = Type.Object({
  transfer_id: Uuid('The wire: a transfer.'),
  customer_id: Uuid('Customer.'),
  profile_id: Uuid('The profile that pays.'),
  amount: Amount('Amount.'),
  asset: AssetSymbol,
  state: OneOf(
    ['READY', 'WAITING', 'TAKEN'],
    'READY: it may be taken. WAITING: it may not be sent now, or was not checked yet.',
  ),
  detail: TextOrNull('Why it waits, or who has taken it.'),
  payee: Type.String({ description: 'Whom it pays.' }),
  account_number: Type.String({ description: 'The last four characters.' }),
  created_at: Timestamp('Creation time.'),
})
export type OpenWire = Static<typeof OpenWire>

type WireRow = Withdrawal &
  Pick<OpenWire, 'created_at'> &
  WireOrder['payee'] & {
    raw_transaction: Buffer | null
    waiting_code: WaitingCode | null
    waiting_detail: string | null
    is_recorded: boolean
  }

const SELECT_WIRES = `
  select t.id as transfer_id, t.customer_id, t.profile_id, 'WIRE' as network, t.amount, t.fee, t.asset, t.memo, t.fiat_account_id,
         coalesce(f.fiat_network_instructions #>> '{wire,account_number}', '') as destination_address, t.created_at,
         b.raw_transaction, b.waiting_code, b.waiting_detail, f.fiat_account_owner, f.fiat_network_instructions,
         coalesce(m.order_hash = encode(sha256(b.raw_transaction), 'hex'), false) as is_recorded
  from transfers t
  join fiat_accounts f on f.customer_id = t.customer_id and f.id = t.fiat_account_id
  left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
  left join withdrawal_marks m on m.customer_id = t.customer_id and m.transfer_id = t.id and m.mark = 'TAKEN'`

/**
 * What is wrong with each of these wires, whose orders people follow: it is not what was accepted, it has ended, or its order is
 * not the one that was taken. The service's database role writes all of it, except the marks.
 */
async function objectionsToWires(
  db: Queryable,
  macs: RowMacs,
  wires: readonly WireRow[],
): Promise<(string | undefined)[]> {
  const objections = await objectionsTo(db, macs, wires)
  return Promise.all(
    wires.map(async ({ raw_transaction, fiat_account_owner, fiat_network_instructions, ...wire }, index) => {
      if (objections[index] !== undefined || raw_transaction === null) return objections[index]
      const payee = { fiat_account_owner, fiat_network_instructions }
      const disagreement = await disagreementOf({ ...wire, raw_transaction, payee }, new Map())
      return disagreement ?? (wire.is_recorded ? undefined : 'nobody has taken such an order')
    }),
  )
}

/** The wires that have not ended, oldest first, of all customers. One whose records were changed WAITS, with what is wrong. */
export async function listOpenWires(db: Queryable): Promise<OpenWire[]> {
  const { rows } = await db.query<WireRow>(`${SELECT_WIRES}
    where t.status = 'PENDING' and t.type = 'WIRE_WITHDRAWAL'
    order by t.id
    limit ${WIRES_MAX}`)
  const macs = await ownRowMacs()
  const objections = await objectionsToWires(db, macs, rows)
  const customerIds = [...new Set(rows.map(({ customer_id }) => customer_id))]
  const ids = [...customerIds, ...new Set(rows.map(({ profile_id }) => profile_id))]
  const freezes = await selectFreezes(db, { platform: ['', 'WIRE'], customerIds, ids })
  return rows.map((row, index) => {
    const { transfer_id, customer_id, profile_id, amount, asset, created_at } = row
    const { account_number = '' } = row.fiat_network_instructions.wire
    // The worker looks at a wire each half minute, and a freeze holds it at once.
    const subjects = ['', 'WIRE', customer_id, `${customer_id}/${profile_id}`]
    const freeze = freezes.find(({ subject }) => subjects.includes(subject))
    const wire = { transfer_id, customer_id, profile_id, amount, asset, created_at }
    return {
      ...wire,
      ...standingOf(row, objections[index], freeze),
      payee: ownerName(row.fiat_account_owner),
      account_number: `...${account_number.slice(-4)}`,
    }
  })
}

function standingOf(
  { raw_transaction, waiting_code, waiting_detail }: WireRow,
  objection: string | undefined,
  freeze: Freeze | undefined,
): Pick<OpenWire, 'state' | 'detail'> {
  if (objection !== undefined) return { state: 'WAITING', detail: objection }
  const order = readOrder(raw_transaction)
  if (order !== undefined) return { state: 'TAKEN', detail: `by ${order.taken_by} at ${order.taken_at}` }
  if (freeze !== undefined)
    return { state: 'WAITING', detail: `${describeFreeze(freeze)}, since ${freeze.created_at}` }
  return waiting_code === 'WIRE_TO_TAKE'
    ? { state: 'READY', detail: null }
    : { state: 'WAITING', detail: waiting_detail }
}

export function ownerName(owner: Record<string, unknown>): string {
  const { person_details, institution_details } = owner as FiatAccount['fiat_account_owner']
  return (
    institution_details?.name ??
    [person_details?.first_name, person_details?.last_name].filter((name) => name !== undefined).join(' ')
  )
}

/** The bank, for the command by which an operator takes wires: they are signed in its transaction. */
const wiresTakenBy = (operator: string): NetworkAdapter => ({
  ...wiresByHand,
  sign: (tx, wires) => take(tx, wires, operator),
})

async function take(tx: Transaction, wires: readonly Withdrawal[], taken_by: string): Promise<Signing[]> {
  const signings: Signing[] = []
  for (const { customer_id, transfer_id, asset, amount, memo, fiat_account_id } of wires) {
    const { rows } = await tx.query<WireOrder['payee'] & { taken_at: string }>(
      `
      select fiat_account_owner, fiat_network_instructions, clock_timestamp() as taken_at
      from fiat_accounts
      where customer_id = $1 and id = $2`,
      [customer_id, fiat_account_id],
    )
    if (rows[0] === undefined) throw new Error(`wire ${transfer_id} names no bank account`)
    const { taken_at, ...payee } = rows[0]
    const order: WireOrder = {
      ...{ customer_id, transfer_id, asset, amount, memo, fiat_account_id: fiat_account_id!, payee },
      ...{ taken_by, taken_at },
    }
    signings.push({ outcome: 'SIGNED', ...signedOrder(order) })
  }
  return signings
}

/**
 * Takes a wire, so that one operator sends it. Returns the order that the operator enters at the bank. From then on the wire
 * cannot be cancelled. The checks before signing apply: freezes, the standing of the customer, the MAC, the screening. Throws
 * a Refusal when an operator has taken the wire already, when it has ended, and with the reason where it may not be sent now.
 */
export async function takeWire(
  db: Database,
  transferId: string,
  { operator, origin }: By,
  screening?: Screening,
): Promise<WireOrder> {
  return holdWire(db, transferId, async (tx, held) => {
    const { status, secondary_status: _, ...wire } = held
    requireOpen(held)
    const order = readOrder(held.raw_transaction)
    if (order !== undefined)
      throw new Refusal(
        `wire ${transferId} was taken by ${order.taken_by} at ${order.taken_at}, who may have sent it: bursar wire show`,
      )
    assert(status === 'PENDING', 'an open wire is pending')
    if (wire.state !== 'HELD')
      throw new Refusal(`wire ${transferId} was taken before, and its order is gone: bursar verify`)
    const macs = await ownRowMacs()
    const bank = wiresTakenBy(operator)
    const adapter = guarded(bank, { macs, screening })
    const claimed = { ...wire, state: 'HELD' as const, replaced: [], age_ms: 0 }
    const [step] = await reviewAndSign(tx, { network: 'WIRE', adapter }, [claimed])
    const taken = readOrder(step!.signed?.raw_transaction ?? null)
    if (taken === undefined) {
      const why = step!.waitingReason?.detail ?? step!.transfer?.secondary_status?.detail
      throw new Refusal(`wire ${transferId} may not be sent: ${why}`)
    }
    await record(tx, wire.customer_id, [step!])
    const order_hash = step!.signed!.crypto_tx_hash
    await markWithdrawal(tx, wire, 'TAKEN', order_hash)
    const after = { order: order_hash }
    await recordNow(tx, wire.customer_id, audited(origin, 'transfer.take', transferId, { after }))
    return taken
  })
}

/** The order of a wire that an operator has taken. Throws a Refusal where none has, and where it must not be sent (any more). */
export async function readTakenWire(db: Database, transferId: string): Promise<WireOrder> {
  return requireTaken(db, await findWithdrawal(db, transferId))
}

async function requireTaken(
  db: Queryable,
  { customer_id, transfer_id }: Pick<Withdrawal, 'customer_id' | 'transfer_id'>,
): Promise<WireOrder> {
  const { rows } = await db.query<WireRow>(`${SELECT_WIRES} where t.customer_id = $1 and t.id = $2`, [
    customer_id,
    transfer_id,
  ])
  const raw = rows[0]?.raw_transaction ?? null
  if (raw === null)
    throw new Refusal(`nobody has taken wire ${transfer_id}: bursar wire take, or bursar withdrawal cancel`)
  const [objection] = await objectionsToWires(db, await ownRowMacs(), rows)
  if (objection !== undefined)
    throw new Refusal(`wire ${transfer_id} must not be sent: ${objection} (bursar verify)`)
  return readOrder(raw)!
}

export const BankReference = Type.String({
  minLength: 1,
  maxLength: 100,
  description: "The bank's reference of the wire.",
})
export const Changed = Type.Boolean({
  description: 'False when it was recorded before: then nothing changed.',
})
export const EndedWire = Type.Object({
  transfer_id: Uuid('The wire: a transfer.'),
  customer_id: Uuid('Customer.'),
  status: OneOf(['COMPLETED', 'FAILED'], 'How it ended.'),
  bank_reference: Type.Optional(BankReference),
  reason: Type.Optional(Type.String({ description: 'Why it failed.' })),
  changed: Changed,
})
export type EndedWire = Static<typeof EndedWire>

/**
 * Completes a wire that an operator has taken and sent. Repeating it with the same reference changes nothing. Throws an
 * Error when nobody has taken the wire, when it ended in another way, and for the reference of another wire.
 */
export async function markWireSent(
  db: Database,
  transferId: string,
  bank_reference: string,
  { operator, origin }: By,
): Promise<EndedWire> {
  return holdWire(db, transferId, async (tx, held): Promise<EndedWire> => {
    const { customer_id, transfer_id, asset, amount } = held
    const ended = { customer_id, transfer_id, status: 'COMPLETED', bank_reference } as const
    const known = await findBankWireOf(tx, transfer_id)
    if (known !== undefined) {
      if (known.bank_reference === bank_reference) return { ...ended, changed: false }
      throw new Refusal(`wire ${transfer_id} was sent with the bank reference ${known.bank_reference}`)
    }
    requireOpen(held)
    await requireTaken(tx, held)
    const other = await findBankWire(tx, { asset, kind: 'SENT', bank_reference })
    if (other !== undefined) throw referenceTaken(bank_reference, other.transfer_id)
    await insertBankWires(tx, [
      { asset, kind: 'SENT', bank_reference, amount, transfer_id, recorded_by: operator },
    ])
    const step = { withdrawal: held, state: 'DONE', transfer: { status: 'COMPLETED' } } as const
    await record(tx, customer_id, [step], { origin, action: 'transfer.mark_sent' })
    return { ...ended, changed: true }
  }).catch((error: unknown) => {
    // Another operator has just recorded the reference for another wire.
    if (violatedConstraint(error) === 'bank_wires_pkey') throw referenceTaken(bank_reference)
    throw error
  })
}

const referenceTaken = (reference: string, transferId?: string) =>
  new Refusal(
    `the bank reference ${reference} is that of ${transferId === undefined ? 'another wire' : `wire ${transferId}`}`,
  )

/**
 * Fails a wire that an operator has taken and that the bank did not pay, and refunds it in full. The client reads the
 * reason. Repeating it changes nothing. Throws a Refusal when nobody has taken the wire, and when it was sent.
 */
export async function markWireFailed(
  db: Database,
  transferId: string,
  reason: string,
  { operator, origin }: By,
): Promise<EndedWire> {
  return holdWire(db, transferId, async (tx, held): Promise<EndedWire> => {
    const { customer_id, transfer_id, destination_address } = held
    const ended = { customer_id, transfer_id, status: 'FAILED' } as const
    const known = await failureOf(tx, held)
    if (known !== undefined) return { ...ended, reason: known, changed: false }
    requireOpen(held)
    const { taken_by, taken_at } = await requireTaken(tx, held)
    const sent = await findBankWireOf(tx, transfer_id)
    if (sent !== undefined)
      throw new Refusal(`wire ${transfer_id} was sent with the bank reference ${sent.bank_reference}`)
    const refusal = refusedDestination({ destination_address }, `the wire was not paid: ${reason}`)
    const transfer = { status: 'FAILED', ...refusal } as const
    await record(tx, customer_id, [{ withdrawal: held, state: 'DONE', transfer }], {
      origin,
      action: 'transfer.mark_failed',
    })
    await keepResolution(tx, held, {
      outcome: 'NOT_PAID',
      evidence: reason,
      reason: `taken by ${taken_by} at ${taken_at}, marked failed by ${operator}`,
    })
    return { ...ended, reason, changed: true }
  })
}

async function failureOf(
  tx: Transaction,
  { customer_id, transfer_id, status }: HeldWithdrawal,
): Promise<string | undefined> {
  if (status !== 'FAILED') return undefined
  const { rows } = await tx.query<{ evidence: string }>(
    'select evidence from resolved_withdrawals where customer_id = $1 and transfer_id = $2',
    [customer_id, transfer_id],
  )
  return rows[0]?.evidence
}

async function holdWire<T>(
  db: Database,
  transferId: string,
  work: (tx: Transaction, held: HeldWithdrawal) => Promise<T>,
): Promise<T> {
  return holdWithdrawal(db, await findWithdrawal(db, transferId), (tx, held) => {
    if (held.network !== 'WIRE')
      throw new Refusal(`withdrawal ${transferId} is no wire: it goes over ${held.network}`)
    return work(tx, held)
  })
}

function requireOpen({ transfer_id, status, secondary_status }: HeldWithdrawal): void {
  if (status === 'PENDING') return
  const why = secondary_status === null ? '' : `: ${secondary_status.detail}`
  throw new Refusal(`wire ${transfer_id} is ${status} already${why}`)
}
