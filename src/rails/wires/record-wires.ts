import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transaction, violatedConstraint, type Queryable } from '../../db/database.ts'
import type { RailsContext } from '../context.ts'
import { Problem, problem } from '../../contract/problems.ts'
import { Refusal } from '../../contract/refusal.ts'
import { decideCredit, deposit, type DepositPlace } from '../../money/movements/deposit.ts'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'
import type { Movement } from '../../money/movements/decision.ts'
import {
  BANK_WIRES,
  findBankWire,
  findBankWireOf,
  findReturnOf,
  insertBankWires,
  type BankWire,
  type NewBankWire,
} from '../../money/records/bank-wires.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { change } from '../../money/records/need.ts'
import { ownRowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'
import { findOwner } from '../../money/records/transfer-owner.ts'
import { readTransfer, type Transfer } from '../../money/ledger/transfer.ts'
import { NotAllowed, type Screening } from '../screening/screening.ts'
import { findWithdrawal } from '../payouts/hold-withdrawal.ts'
import type { By } from './outgoing-wires.ts'
import { announceWire, arrivalOfWire, findPendingWire, type PendingWire } from './pending-wires.ts'
import { failPending } from '../deposits/see-deposits.ts'

/** Incoming wires that operators record from the bank's statement. */

/**
 * With `screening`, a wire is credited only when the screening endpoint allows it; each command asks once. Until then a
 * deposit is a PENDING transfer.
 */
type Recording = Pick<RailsContext, 'db' | 'ledger'> & { screening?: Screening | undefined }

export interface RecordedWire {
  transfer: Transfer
  /** False when it was recorded before: then nothing changed. */
  changed: boolean
}

/** Reads the names of the profile that a wire credits, of its customer, and of the money's owner, who may be unknown. */
export async function readPayee(
  db: Queryable,
  { customer_id, profile_id, identity_id }: Pick<PlaceOfMemo, 'customer_id' | 'profile_id' | 'identity_id'>,
) {
  const { rows } = await db.query<{ customer: string; profile: string; owner: string | null }>(
    `
    select c.name as customer, p.nickname as profile,
           coalesce(i.details ->> 'name', concat_ws(' ', i.details ->> 'first_name', i.details ->> 'last_name')) as owner
    from profiles p
    join customers c on c.id = p.customer_id
    left join accounts a on a.customer_id = p.customer_id and a.id = p.account_id
    left join identities i on i.customer_id = p.customer_id and i.id = coalesce($3::uuid, a.identity_id)
    where p.customer_id = $1 and p.id = $2`,
    [customer_id, profile_id, identity_id],
  )
  return rows[0]!
}

export interface SaidWire extends By {
  /** A decimal string, as the bank writes it. */
  amount: string
  /** As `bankReference` gives it. */
  bank_reference: string
}

/**
 * Credits a wire to the profile whose deposit instructions own the memo, as Initiate Sandbox Fiat Deposit does (API
 * behaviour, Sandbox): the credit starts the orchestration that waits for the wire. A bank reference is credited once.
 * Throws a Refusal that names the wrong argument: an unknown memo, an invalid amount, a reference that was recorded with
 * another amount or memo.
 */
export async function recordWireDeposit(
  { db, ledger, screening }: Recording,
  { memo, amount, bank_reference, operator, origin }: SaidWire & { memo: string },
): Promise<RecordedWire> {
  const minor = centsOf(amount)
  const place = await instructionsOf(db, memo)
  const said: Said = { kind: 'DEPOSIT', bank_reference, amount: textOfAmount(minor), memo_id: place.memo_id }
  const { customer_id, profile_id } = place
  const pending = await findPendingWire(db, bank_reference)
  if (pending !== undefined) requireSameWire(bank_reference, pending, said)
  const wire = { profile_id, asset: WIRE_ASSET, minor, place, record: { memo: place.memo_id } }
  const movement = deposit(
    customer_id,
    { ...wire, type: 'WIRE_DEPOSIT', arrivedAt: 'bank', seenAs: arrivalOfWire(bank_reference) },
    origin,
  )
  try {
    return await recordOnce({ db, ledger, screening }, { customer_id, profile_id }, movement, said, operator)
  } catch (error) {
    if (!(error instanceof NotAllowed)) throw error
    const id =
      pending?.transfer_id ??
      (await transaction(db, (tx) => announceWire(tx, customer_id, bank_reference, wire, origin))) ??
      (await findPendingWire(db, bank_reference))?.transfer_id
    throw new Refusal(
      `${error.detail}: the wire is PENDING as transfer ${id}; say it again when it allows the wire, or send it back at the bank and record that with bursar wire send-back`,
      { cause: error },
    )
  }
}

function requireSameWire(
  bank_reference: string,
  { memo_id, amount, transfer_id }: PendingWire,
  said: Said,
): void {
  if (memo_id !== said.memo_id || centsOf(amount) !== centsOf(said.amount))
    throw new Refusal(
      `the bank reference ${bank_reference} is PENDING as a deposit with memo ${memo_id} of ${textOfAmount(centsOf(amount))} ${WIRE_ASSET}: ${transfer_id}`,
    )
}

/**
 * Records that a PENDING wire was sent back to its sender: its transfer is FAILED, and its reference is never credited.
 * Repeating it changes nothing. Throws a Refusal where no wire with this reference is PENDING.
 */
export async function sendWireBack(
  { db }: Pick<RailsContext, 'db'>,
  { bank_reference, operator, origin }: Pick<SaidWire, 'bank_reference' | keyof By>,
): Promise<RecordedWire> {
  const sent = await transaction(db, async (tx) => {
    const pending = await findPendingWire(tx, bank_reference)
    if (pending === undefined || (await failPending(tx, [pending])) === 0) return undefined
    const { customer_id, transfer_id, memo_id, amount } = pending
    const wire = { kind: 'SENT_BACK', bank_reference, amount, memo_id, asset: WIRE_ASSET } as const
    await insertBankWires(tx, [{ ...wire, transfer_id, recorded_by: operator }])
    await recordNow(tx, customer_id, audited(origin, 'transfer.fail', transfer_id))
    return pending
  })
  if (sent !== undefined)
    return { transfer: await readTransfer(db, sent.customer_id, sent.transfer_id), changed: true }
  const known = await findBankWire(db, { asset: WIRE_ASSET, kind: 'SENT_BACK', bank_reference })
  if (known?.kind !== 'SENT_BACK') {
    const what = known === undefined ? '' : `: the wire was recorded at ${known.recorded_at}`
    throw new Refusal(`no wire with the bank reference ${bank_reference} is PENDING${what}`)
  }
  const customerId = await findOwner(db, known.transfer_id)
  return { transfer: await readTransfer(db, customerId!, known.transfer_id), changed: false }
}

/**
 * Credits a wire that the payee's bank returned, in USD, to the profile that it was paid from, once. The withdrawal stays
 * COMPLETED, because it was sent, and no orchestration starts, which could send it again. Less may come back than was
 * sent. Throws a Refusal where the withdrawal was not sent by wire, came back already, or was for less.
 */
export async function recordWireReturn(
  { db, ledger, screening }: Recording,
  { transfer_id: id, amount, bank_reference, operator, origin }: SaidWire & { transfer_id: string },
): Promise<RecordedWire> {
  const minor = centsOf(amount)
  const { customer_id, transfer_id } = await findWithdrawal(db, id)
  const sent = await findBankWireOf(db, transfer_id)
  if (sent === undefined) throw new Refusal(`withdrawal ${transfer_id} is no wire that was marked as sent`)
  const said: Said = {
    kind: 'RETURN',
    bank_reference,
    amount: textOfAmount(minor),
    returned_transfer_id: transfer_id,
  }
  const back = await findReturnOf(db, transfer_id)
  if (back !== undefined && back.bank_reference !== bank_reference) throw returnedBefore(back)
  if (minor > parseAmount(sent.amount, decimalsOf(WIRE_ASSET))!)
    throw new Refusal(`amount is above what was sent: ${sent.amount} ${sent.asset}`)
  const { profile_id, identity_id, account_id, metadata } = await readTransfer(db, customer_id, transfer_id)
  const arrived = {
    profile_id,
    type: 'WIRE_DEPOSIT',
    asset: WIRE_ASSET,
    minor,
    arrivedAt: 'bank',
    place: { id: transfer_id, identity_id, account_id, metadata },
    record: { memo: `return of ${transfer_id}` },
  } as const
  const movement: Movement = {
    origin,
    balances: [{ profile_id, asset: WIRE_ASSET }],
    decide: (view) => decideCredit(customer_id, arrived, view),
  }
  return recordOnce({ db, ledger, screening }, { customer_id, profile_id }, movement, said, operator)
}

const returnedBefore = ({ returned_transfer_id, bank_reference }: BankWire) =>
  new Refusal(`wire ${returned_transfer_id} came back already, with the bank reference ${bank_reference}`)

const detailsOf = ({ amount, bank_reference, memo_id, returned_transfer_id }: Said) => ({
  amount,
  bank_reference,
  ...(memo_id !== undefined && { memo: memo_id }),
  ...(returned_transfer_id !== undefined && { returned_transfer_id }),
})

type Said = Omit<NewBankWire, 'asset' | 'transfer_id' | 'recorded_by'>

/** Moves the money and records the wire in one transaction, unless it is recorded already. */
async function recordOnce(
  { db, ledger, screening }: Recording,
  { customer_id: customerId, profile_id }: { customer_id: string; profile_id: string },
  movement: Movement,
  said: Said,
  recorded_by: string,
): Promise<RecordedWire> {
  const known = await findBankWire(db, { ...said, asset: WIRE_ASSET })
  if (known !== undefined) return recordedBefore(db, customerId, said, known)
  await screening?.requireAllowed({
    kind: 'DEPOSIT',
    customer_id: customerId,
    details: { type: 'WIRE_DEPOSIT', profile_id, network: 'WIRE', asset: WIRE_ASSET, ...detailsOf(said) },
  })
  const recording: Movement = {
    ...movement,
    decide(view) {
      const decision = movement.decide(view)
      const transfer_id = decision.transfer.id
      const wire = { ...said, asset: WIRE_ASSET, transfer_id, recorded_by }
      return { ...decision, changes: [...(decision.changes ?? []), change(BANK_WIRES, wire)] }
    },
  }
  try {
    const { transfer } = await ledger.submit(customerId, recording)
    return { transfer: { ...transfer, bank_reference: said.bank_reference }, changed: true }
  } catch (error) {
    const constraint = violatedConstraint(error)
    if (constraint === 'bank_wires_returned')
      throw returnedBefore((await findReturnOf(db, said.returned_transfer_id!))!)
    if (error instanceof Problem && error.slug === 'unavailable')
      throw problem.unavailable(
        'the database went away: whether the wire was recorded is not known; say it again, it is recorded once',
        error,
      )
    if (constraint !== 'bank_wires_pkey') throw error
    // Another operator has just recorded it.
    return recordedBefore(db, customerId, said, (await findBankWire(db, { ...said, asset: WIRE_ASSET }))!)
  }
}

async function recordedBefore(
  db: Queryable,
  customerId: string,
  said: Said,
  { kind, amount, memo_id, returned_transfer_id, transfer_id, bank_reference, recorded_at }: BankWire,
): Promise<RecordedWire> {
  const isSame =
    kind === said.kind &&
    centsOf(amount) === centsOf(said.amount) &&
    memo_id === (said.memo_id ?? null) &&
    returned_transfer_id === (said.returned_transfer_id ?? null)
  if (!isSame) {
    const what = {
      DEPOSIT: `a deposit with memo ${memo_id}`,
      SENT_BACK: `a wire that was sent back, with memo ${memo_id}`,
      RETURN: `a return of ${returned_transfer_id}`,
      SENT: 'a wire that was sent',
    }[kind]
    throw new Refusal(
      `the bank reference ${bank_reference} was recorded at ${recorded_at} as ${what} of ${textOfAmount(centsOf(amount))} ${WIRE_ASSET}`,
    )
  }
  return { transfer: await readTransfer(db, customerId, transfer_id), changed: false }
}

function centsOf(amount: string): bigint {
  const decimals = decimalsOf(WIRE_ASSET)
  const minor = parseAmount(amount, decimals)
  if (minor === undefined || minor === 0n)
    throw new Refusal(`amount must be above 0, with at most ${decimals} decimals`)
  return minor
}

const textOfAmount = (minor: bigint) => formatAmount(minor, decimalsOf(WIRE_ASSET))

interface PlaceOfMemo extends DepositPlace {
  customer_id: string
  profile_id: string
  memo_id: string
}

/** Most characters of a memo as banks print it, without spaces and dashes. */
const MEMO_LENGTH_MAX = 100

/** Those of these words, in the form of memos, that are memos, each once for every customer that has it. */
export async function memosAmong(db: Queryable, words: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ memo_id: string }>(
    `select i.memo_id
     from customers c
     cross join lateral (
       select memo_id from fiat_deposit_instructions where customer_id = c.id and memo_id = any ($1)
     ) i`,
    [words],
  )
  return rows.map(({ memo_id }) => memo_id)
}

/** The deposit instructions with this memo, with or without the spaces and dashes that banks print. */
export async function instructionsOf(db: Queryable, memo: string): Promise<PlaceOfMemo> {
  const memo_id = memo.replace(/[\s-]+/g, '').toUpperCase()
  const { rows } =
    memo_id.length > MEMO_LENGTH_MAX
      ? { rows: [] }
      : await db.query<PlaceOfMemo & Seal>(
          `
          select i.*
          from customers c
          cross join lateral (
            select id, customer_id, profile_id, memo_id, identity_id, account_id, metadata,
                   ${sealOf('fiat_deposit_instructions')}
            from fiat_deposit_instructions r
            where customer_id = c.id and memo_id = $1
          ) i
          limit 2`,
          [memo_id],
        )
  if (rows[0] === undefined) throw new Refusal(`memo: no deposit instructions have the memo ${memo_id}`)
  if (rows.length > 1) throw new Refusal(`memo: more than one customer has the memo ${memo_id}`)
  const { sealed, mac, ...place } = rows[0]
  ;(await ownRowMacs()).requireGenuine('fiat_deposit_instructions', place.id, { sealed, mac })
  return place
}
