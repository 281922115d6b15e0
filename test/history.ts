import { originOfLoop } from '../src/contract/actor.ts'
import { formatAmount } from '../src/contract/assets/amount.ts'
import { decimalsOf } from '../src/contract/assets/catalogue.ts'
import { transaction, type Database, type Transaction } from '../src/db/database.ts'
import { idsAt, type Moment } from '../src/db/ids.ts'
import { onPlatform, onProfile } from '../src/money/ledger/entries.ts'
import { LedgerTransaction } from '../src/money/ledger/ledger-transaction.ts'

/** A movement of money through the ledger: to a profile, from one, or between two. */
export interface Moved {
  from?: string | undefined
  to?: string | undefined
  asset?: string
  /** In minor units. */
  minor: bigint
}

/** Posts the movement at a moment in the past, as the demo's history does. Returns the posting time. */
export async function moveAt(
  tx: Transaction,
  customer_id: string,
  at: Moment | undefined,
  moved: Moved,
): Promise<Moment> {
  const post = await openMovement(tx, customer_id, at, moved)
  return post()
}

/** Posts the movement of `moveAt` in a separate transaction. */
export const move = (db: Database, customerId: string, at: Moment | undefined, moved: Moved) =>
  transaction(db, (tx) => moveAt(tx, customerId, at, moved))

/** Locks the balances and reads the clock. Returns a function that posts the movement. */
export async function openMovement(
  tx: Transaction,
  customer_id: string,
  at: Moment | undefined,
  { from, to, asset = 'USDG', minor }: Moved,
): Promise<() => Promise<Moment>> {
  const keys = [from, to].flatMap((profile_id) => (profile_id === undefined ? [] : { profile_id, asset }))
  const ledger = await LedgerTransaction.open(tx, customer_id, keys, { at })
  const newId = idsAt(ledger.now)
  const internal = from !== undefined && to !== undefined
  const group_id = internal ? newId() : undefined
  const amount = formatAmount(minor, decimalsOf(asset))
  const side = (direction: 'DEBIT' | 'CREDIT', profile_id: string) => {
    const [kind, sign] = direction === 'DEBIT' ? (['WITHDRAWAL', -1n] as const) : (['DEPOSIT', 1n] as const)
    const id = newId()
    const account = internal ? 'internal' : 'bank'
    const entries = [onProfile(profile_id, asset, sign * minor), onPlatform(account, asset, -sign * minor)]
    ledger.post({ transfer_id: id, event: 'CREATED', entries, origin: originOfLoop('test') })
    return {
      transfer: {
        id,
        customer_id,
        profile_id,
        type: internal ? (`INTERNAL_TRANSFER_${direction}` as const) : (`BANK_${kind}` as const),
        direction,
        status: 'COMPLETED' as const,
        asset,
        balance_asset: asset,
        amount,
        fee: '0',
        total: amount,
        group_id,
        created_at: ledger.now.text,
        updated_at: ledger.now.text,
      },
    }
  }
  return async () => {
    await ledger.write([
      ...(from === undefined ? [] : [side('DEBIT', from)]),
      ...(to === undefined ? [] : [side('CREDIT', to)]),
    ])
    return ledger.now
  }
}
