import { readHash } from '../payouts/read-hash.ts'
import type { Origin } from '../../contract/actor.ts'
import { parseAmount } from '../../contract/assets/amount.ts'
import { findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { Refusal } from '../../contract/refusal.ts'
import { transaction, type Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { creditedAs } from '../../money/movements/credited-deposits.ts'
import { readTransfer, type Transfer } from '../../money/ledger/transfer.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { pricesIn } from '../context.ts'
import { paymentOfDeposit } from '../screening/screened-payments.ts'
import { takingFromUnattributed } from '../treasury/audit-sweeps.ts'
import { creditDepositsOn, creditOnce, creditVouched, type Crediting } from './credit-deposits.ts'
import { selectWaitingDeposit } from './incoming-transfers.ts'
import { FORGED_ADDRESS, genuineAmong, selectOwners } from './owners.ts'
import { recordCredited, recordIncoming } from './record-deposits.ts'

/** Commands for deposits that were missed. */

const BLOCKS = 100n

/** How many deposits a rescan found that were not recorded before, and how many were credited then. */
export interface Rescan {
  network: CryptoNetwork
  found: number
  credited: number
}

/**
 * Reads blocks again, and credits the deposits that were missed in them. A recorded deposit is not credited again. Throws a
 * Refusal when the network cannot be read, or the last of the blocks is not confirmed.
 */
export async function rescanDeposits(
  context: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  { from, to }: { from: bigint; to: bigint },
  origin: Origin,
): Promise<Rescan> {
  if (adapter.scanBlocks === undefined)
    throw new Refusal(`${network} is no real network that can be read here`)
  const scanBlocks = adapter.scanBlocks.bind(adapter)
  if (from > to) throw new Refusal('--from must not be after --to')
  return takingFromUnattributed(context.db, network, async () => {
    let found = 0
    for (let first = from; first <= to; first += BLOCKS) {
      const last = first + BLOCKS - 1n < to ? first + BLOCKS - 1n : to
      const deposits = await scanBlocks(first, last)
      found += await transaction(context.db, (tx) => recordIncoming(tx, context.ledger, network, deposits))
    }
    await transaction(context.db, (tx) =>
      recordNow(
        tx,
        PLATFORM_ID,
        audited(origin, 'network.rescan', network, { after: { from: String(from), to: String(to), found } }),
      ),
    )
    const { credited } = await creditDepositsOn(context, network, { ...adapter, scanDeposits: undefined })
    return { network, found, credited }
  })
}

/** A deposit that an operator has looked up, because no scan can find it. */
export interface SaidDeposit {
  crypto_tx_hash: string
  address: string
  asset: string
  /** A decimal string of the asset. */
  amount: string
}

/**
 * Credits a deposit that a contract made while it ran, as many smart wallets and exchanges pay: such an internal transfer is
 * the value of no transaction and in no log. The node must confirm that the address received the amount in the transaction's
 * block. The deposit is recorded as CRYPTO_DEPOSIT under an index of its own, so that a repeated command credits it once.
 * Throws a Refusal with the reason otherwise.
 *
 * A deposit that a scan has found, and that one node's word does not credit (ONE_NODE), is credited by the operator's.
 */
export async function creditSaidDeposit(
  { db, ledger, settings, screening }: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  said: SaidDeposit,
  origin: Origin,
): Promise<Transfer> {
  const { asset, amount } = said
  const crypto_tx_hash = readHash(network, adapter, said.crypto_tx_hash)
  const known = findAsset(asset)
  const minor = known && parseAmount(amount, known.decimals)
  if (known === undefined) throw new Refusal(`${asset} is no asset of the catalogue`)
  if (minor === undefined || minor === 0n)
    throw new Refusal(`--amount must be above 0, with at most ${known.decimals} decimals`)
  const address = canonicalAddress(network, said.address, { testNetworks: true })
  if (address === undefined) throw new Refusal(`${said.address} is no address of ${network}`)
  const owner = await onlyOwner({ db, ledger }, network, address)
  const place: SaidPlace = [owner.customer_id, network, crypto_tx_hash, address, asset]
  const context = { db, ledger, settings, screening, origin }
  const vouched = await creditOfOneNode(context, network, adapter, [...place, amount])
  if (vouched !== undefined) return vouched
  if (adapter.requireReceived === undefined)
    throw new Refusal(`${network} has no deposits that a scan cannot find: use bursar deposits rescan`)
  const crypto_tx_index = `internal-${asset}-${address}`
  await requireNotFound(db, [...place, crypto_tx_index])
  const { customer_id } = owner
  const found = { crypto_tx_hash, crypto_tx_index, address, asset, amount }
  await adapter.requireReceived(customer_id, found)
  await screening?.requireAllowed(paymentOfDeposit({ customer_id, network, ...found }, owner))
  const prices = await pricesIn({ db, settings })
  const { transfer_id, isNew } = await creditOnce(
    { ...context, adapter },
    owner,
    { network, ...found },
    { prices },
  )
  // An earlier call may have died between the credit and its record.
  await takingFromUnattributed(db, network, () =>
    recordCredited(db, { customer_id, network }, found, transfer_id),
  )
  if (!isNew) throw new Refusal(`${crypto_tx_hash} was credited to ${address} in ${asset} before`)
  return readTransfer(db, customer_id, transfer_id)
}

type SaidPlace = [customerId: string, network: string, hash: string, address: string, asset: string]

async function onlyOwner(
  { db, ledger }: Pick<Crediting, 'db' | 'ledger'>,
  network: CryptoNetwork,
  address: string,
) {
  const found = (await selectOwners(db, network, [{ address }])).get(address)
  if (found === undefined) throw new Refusal(`${address} is no deposit address that was given out`)
  const owners = genuineAmong(ledger, found)
  const [owner] = owners
  if (owner === undefined) throw new Refusal(`${address}: ${FORGED_ADDRESS}`)
  if (owners.length > 1) throw new Refusal(`${address} is the deposit address of more than one record`)
  return owner
}

/**
 * Credits a deposit for which one node's word is not enough, by the operator's; of several in one transaction, the first.
 * Undefined where none waits so.
 */
async function creditOfOneNode(
  context: Crediting & { origin: Origin },
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  key: [...SaidPlace, amount: string],
): Promise<Transfer | undefined> {
  const { db } = context
  const { rows } = await db.query<{ crypto_tx_index: string }>(
    `select crypto_tx_index from incoming_transfers
     where customer_id = $1 and network = $2 and crypto_tx_hash = $3 and address = $4 and asset = $5 and amount = $6
       and state = 'WAITING' and reason = 'ONE_NODE'
     order by crypto_tx_index
     limit 1`,
    key,
  )
  const [customerId, , hash] = key
  const waiting =
    rows[0] && (await selectWaitingDeposit(db, [customerId, network, hash, rows[0].crypto_tx_index]))
  if (waiting === undefined) return undefined
  await creditVouched(context, network, adapter, waiting)
  return readTransfer(db, customerId, (await creditedAs(db, customerId, waiting))!)
}

async function requireNotFound(db: Queryable, key: [...SaidPlace, index: string]): Promise<void> {
  const { rowCount } = await db.query(
    `select 1 from incoming_transfers
     where customer_id = $1 and network = $2 and crypto_tx_hash = $3 and address = $4 and asset = $5
       and crypto_tx_index <> $6 and state <> 'UNATTRIBUTED'`,
    key,
  )
  if (rowCount! > 0) throw new Refusal(`${key[2]} was found by a scan: it is credited by itself`)
}
