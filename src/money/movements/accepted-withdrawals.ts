import {
  macOfWithdrawal,
  objectionToWithdrawal,
  type AcceptedWithdrawal,
  type RequiredApproval,
} from '../../audit/withdrawal-macs.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { ActorType } from '../../contract/actor.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { NIL_UUID } from '../../contract/fields.ts'
import { PAYOUT_NETWORK, PAYOUT_TYPES } from '../../contract/payout-sql.ts'
import { problem } from '../../contract/problems.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import type { Withdrawal } from '../../networks/network.ts'
import type { NewTransfer, Transfer } from '../ledger/transfer.ts'
import { findOwner } from '../records/transfer-owner.ts'
import type { Payee } from './decision.ts'

/** The withdrawals as their rows store them, with what their MACs cover: whether each is what was accepted, and has not ended. */

/** A bank account as the database stores it: a different account number or owner makes a different payee. */
const payeeOf = ({ id, fiat_account_owner, fiat_network_instructions }: Payee): string =>
  JSON.stringify([id, fiat_account_owner, fiat_network_instructions])

/** Makes the MAC of a new withdrawal; for a wire, over the bank account that it pays. */
function macOfNew(
  macs: RowMacs,
  { customer_id, id, profile_id, asset, amount, crypto_network, memo, destination_address }: Transfer,
  payee: Payee | undefined,
  approval?: RequiredApproval,
): string {
  return macOfWithdrawal(macs, {
    customer_id,
    id,
    profile_id: profile_id.toLowerCase(),
    asset,
    amount,
    network: crypto_network ?? 'WIRE',
    destination: payee === undefined ? destination_address! : payeeOf(payee),
    memo: memo ?? null,
    approval,
  })
}

/** Adds the MACs to the withdrawals among these new transfers. Without `macs` the withdrawals are never signed. */
export function addMacs<
  T extends NewTransfer & { payee?: Payee | undefined; approval?: RequiredApproval | undefined },
>(made: T[], macs: RowMacs | undefined): T[] {
  if (macs !== undefined) {
    for (const added of made)
      if (isWithdrawal(added.transfer))
        added.mac = macOfNew(macs, added.transfer, added.payee, added.approval)
  }
  return made
}

const isWithdrawal = ({ type, status }: Transfer): boolean =>
  status === 'PENDING' && (type === 'CRYPTO_WITHDRAWAL' || type === 'WIRE_WITHDRAWAL')

/** A withdrawal as its row stores it, with the bank account of a wire. */
interface AcceptedRow extends Omit<AcceptedWithdrawal, 'destination' | 'approval'> {
  destination_address: string | null
  mac: string | null
  fiat_account_id: string | null
  fiat_account_owner: Payee['fiat_account_owner'] | null
  fiat_network_instructions: Payee['fiat_network_instructions'] | null
  approval_id: string | null
  required: number | null
  role: string | null
  rule_id: string | null
  policy_version: string | null
  initiator_type: ActorType | null
  initiator_id: string | null
  deadline: string | null
}

const PAYMENT = `
  t.customer_id, t.id, t.profile_id, t.asset, t.amount, ${PAYOUT_NETWORK} as network,
  t.destination_address, t.memo, t.mac, t.fiat_account_id, f.fiat_account_owner, f.fiat_network_instructions`
const FROM_TRANSFERS = `
  from transfers t
  left join fiat_accounts f on f.customer_id = t.customer_id and f.id = t.fiat_account_id`

const selectAccepted = (also = '') => `
  select ${also} ${PAYMENT}, a.id as approval_id, a.required, a.role, a.rule_id, a.policy_version, a.initiator_type,
         a.initiator_id, a.deadline
  ${FROM_TRANSFERS}
  left join approvals a on a.customer_id = t.customer_id and a.transfer_id = t.id`

/** In SQL: whether the withdrawal of the customer $1 is PENDING and no transaction is signed for it. */
const IS_OPEN = `
  t.status = 'PENDING' and not exists (
    select 1 from outgoing_transfers b
    where b.customer_id = $1 and b.transfer_id = t.id and b.crypto_tx_hash is not null
  ) as open,`

/**
 * In SQL: how a withdrawal of the customer $1 has ended, by rows that the service's role cannot change or delete. These rows
 * are its entries. A transfer of the platform may end without entries, so for it they are also the records of the audit log.
 * The customer is `$1` and not `t.customer_id` (rule 1 of src/db/distribution.ts).
 */
const ENDED = `
  case when exists (
         select 1 from entries e
         where e.customer_id = $1 and e.transfer_id = t.id and e.event in ('SETTLED', 'REFUNDED')
       ) then 'it was paid or refunded before'
       when t.customer_id = '${PLATFORM_ID}' and exists (
         select 1 from audit_log l
         where l.customer_id = $1 and l.action in ('transfer.complete', 'transfer.fail', 'transfer.cancel')
           and t.id = any (l.subject_ids)
       ) then 'it was paid or cancelled before'
  end as ended,`

function acceptedOf(row: AcceptedRow): AcceptedWithdrawal {
  const { customer_id, id, profile_id, asset, network, memo, fiat_account_id } = row
  return {
    customer_id,
    id,
    profile_id,
    asset,
    amount: withoutZeros(row.amount),
    network,
    destination:
      fiat_account_id === null
        ? (row.destination_address ?? '')
        : payeeOf({
            id: fiat_account_id,
            fiat_account_owner: row.fiat_account_owner!,
            fiat_network_instructions: row.fiat_network_instructions!,
          }),
    memo,
    approval: approvalOf(row),
  }
}

const approvalOf = (row: AcceptedRow): RequiredApproval | undefined =>
  row.approval_id === null
    ? undefined
    : {
        id: row.approval_id,
        required: row.required!,
        role: row.role!,
        rule_id: row.rule_id,
        policy_version: Number(row.policy_version),
        initiator: { type: row.initiator_type!, id: row.initiator_id! },
        deadline: row.deadline!,
      }

/** Reads these withdrawals of the customer as they are to be paid, with their MACs. */
export async function readAccepted(
  db: Queryable,
  customerId: string,
  ids: readonly string[],
): Promise<(AcceptedWithdrawal & { mac: string | null })[]> {
  const { rows } = await db.query<AcceptedRow>(
    `${selectAccepted()} where t.customer_id = $1 and t.id = any ($2::uuid[]) order by t.id`,
    [customerId, ids],
  )
  return rows.map((row) => ({ ...acceptedOf(row), mac: row.mac }))
}

/**
 * Throws unavailable for a withdrawal that is not what was accepted. Nothing is given back for it: whoever has the service's
 * role can insert such a withdrawal.
 */
export async function requireAccepted(
  tx: Queryable,
  macs: RowMacs,
  customerId: string,
  ids: readonly string[],
): Promise<void> {
  for (const { mac, ...accepted } of await readAccepted(tx, customerId, ids)) {
    const objection = objectionToWithdrawal(macs, accepted, mac)
    if (objection !== undefined)
      throw problem.unavailable(
        `withdrawal ${accepted.id} is ${NOT_ACCEPTED}: ${objection}; nothing is given back for it before bursar withdrawal seal`,
      )
  }
}

/** Begins the waiting detail and the log line of such a withdrawal. */
export const NOT_ACCEPTED = 'not what was accepted'

/** PostgreSQL's `numeric` may have trailing zeros that the decimal string did not have. */
const withoutZeros = (amount: string) => (amount.includes('.') ? amount.replace(/\.?0+$/, '') : amount)

/** Returns the objection to each of the withdrawals, as they are to be signed. */
export async function objectionsTo(
  tx: Queryable,
  macs: RowMacs,
  withdrawals: readonly Withdrawal[],
): Promise<(string | undefined)[]> {
  const rows = new Map<string, AcceptedRow & { ended: string | null }>()
  for (const customerId of new Set(withdrawals.map(({ customer_id }) => customer_id))) {
    const ids = withdrawals.flatMap((order) => (order.customer_id === customerId ? order.transfer_id : []))
    const found = await tx.query<AcceptedRow & { ended: string | null }>(
      `${selectAccepted(ENDED)} where t.customer_id = $1 and t.id = any ($2::uuid[])`,
      [customerId, ids],
    )
    for (const row of found.rows) rows.set(`${customerId} ${row.id}`, row)
  }
  return withdrawals.map((withdrawal) => {
    const row = rows.get(`${withdrawal.customer_id} ${withdrawal.transfer_id}`)
    if (row === undefined) return 'the withdrawal does not exist'
    const changed = isAsInRow(withdrawal, row) ? undefined : 'it was changed while it was being signed'
    return objectionToWithdrawal(macs, acceptedOf(row), row.mac) ?? row.ended ?? changed
  })
}

/** What a withdrawal pays, in its row, with the fiat account of a wire. */
type PaidRow = Pick<
  AcceptedRow,
  'profile_id' | 'network' | 'asset' | 'amount' | 'memo' | 'fiat_account_id' | 'destination_address'
> & { fiat_network_instructions: { wire: { account_number?: string } } | null }

/** Whether a withdrawal that is to be signed is what its row says now: it was read earlier, and may have changed since. */
export function isAsInRow(withdrawal: Withdrawal, row: PaidRow): boolean {
  const destination =
    (row.network === 'WIRE' ? row.fiat_network_instructions?.wire.account_number : row.destination_address) ??
    ''
  return (
    withdrawal.profile_id === row.profile_id &&
    withdrawal.network === row.network &&
    withdrawal.asset === row.asset &&
    withdrawal.amount === row.amount &&
    withdrawal.memo === row.memo &&
    withdrawal.fiat_account_id === row.fiat_account_id &&
    (withdrawal.destination_address === destination ||
      (row.network !== 'WIRE' &&
        withdrawal.destination_address ===
          canonicalAddress(row.network, destination, { testNetworks: true })))
  )
}

const WITHDRAWALS_PAGE = 10_000

/**
 * Gives a withdrawal a new MAC, for an operator who has confirmed that it is correct as it is now. Throws unless the
 * withdrawal exists, is PENDING and is not signed.
 */
export async function sealWithdrawal(
  tx: Transaction,
  macs: RowMacs,
  id: string,
): Promise<AcceptedWithdrawal> {
  const ids = [await findOwner(tx, id), id]
  await tx.query('select 1 from transfers where customer_id = $1 and id = $2 for update', ids)
  // A statement of its own after the lock, so that it sees what was committed before.
  const { rows } = await tx.query<AcceptedRow & { open: boolean }>(
    `${selectAccepted(IS_OPEN)}
     where t.customer_id = $1 and t.id = $2 and t.type in ${PAYOUT_TYPES}`,
    ids,
  )
  const [row] = rows
  if (row === undefined) throw new Error(`there is no withdrawal ${id}`)
  if (!row.open) throw new Error(`withdrawal ${id} is already signed or has ended`)
  const accepted = acceptedOf(row)
  await tx.query('update transfers set mac = $3 where customer_id = $1 and id = $2', [
    row.customer_id,
    id,
    macOfWithdrawal(macs, accepted),
  ])
  return accepted
}

/** The customer's withdrawals that are not what was accepted, with what is wrong. */
export async function notAccepted(
  db: Queryable,
  customerId: string,
  macs: RowMacs,
): Promise<{ id: string; objection: string }[]> {
  const found: { id: string; objection: string }[] = []
  let page: AcceptedRow[] = []
  do {
    const { rows } = await db.query<AcceptedRow>(
      `${selectAccepted()}
       where t.customer_id = $1 and t.id > $2 and t.type in ${PAYOUT_TYPES}
       order by t.id
       limit ${WITHDRAWALS_PAGE}`,
      [customerId, page.at(-1)?.id ?? NIL_UUID],
    )
    page = rows
    for (const row of page) {
      const objection = objectionToWithdrawal(macs, acceptedOf(row), row.mac)
      if (objection !== undefined) found.push({ id: row.id, objection })
    }
  } while (page.length === WITHDRAWALS_PAGE)
  return found
}
