import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { Refusal } from '../../contract/refusal.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { freeze, isFrozenFor, unfreeze } from '../../money/records/freezes.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { DepositScan } from '../../networks/found-deposits.ts'
import {
  foundDepositOf,
  forget,
  markReorganised,
  selectCredited,
  selectNewest,
  type InBlock,
} from './incoming-transfers.ts'
import { type Origin, originOfLoop } from '../../contract/actor.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { readCursor, resetCursor } from '../../networks/network-cursors.ts'

const LOOP = originOfLoop('deposits')

/**
 * Handles a chain that takes back blocks deeper than `confirmations`: payouts over the network stop, credited deposits
 * that are gone are listed and their profiles frozen, and reading stops until an operator runs `bursar deposits resume`.
 */

const CREDITED_PAGE = 200
/** Most such pages. Reading is stopped meanwhile, and an operator must look at older deposits. */
const PAGES_MAX = 500

export const isReorganised = (db: Queryable, network: CryptoNetwork): Promise<boolean> =>
  isFrozenFor(db, { kind: 'NETWORK', network }, 'REORGANISATION')

/**
 * Stops a network whose chain took back blocks that were read, and finds the deposits in them. The network is frozen
 * first, so that nothing is paid during the search. After a crash in between, reading stays stopped, and
 * `resumeAfterReorganisation` repeats the search.
 */
export async function stopForReorganisation(
  db: Database,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  detail: string,
): Promise<void> {
  await freeze(db, LOOP, { kind: 'NETWORK', network }, 'REORGANISATION', detail)
  await lookForGone(db, network, adapter)
}

/**
 * Compares the recorded deposits with the chain, newest first, down to a block that is still there: all older blocks are, too.
 * A deposit that is gone is marked; its profile is frozen unless the transaction is confirmed in another block.
 */
async function lookForGone(db: Database, network: CryptoNetwork, adapter: NetworkAdapter): Promise<void> {
  let last: InBlock | undefined
  for (let page = 1; page <= PAGES_MAX && adapter.checkCredited !== undefined; page++) {
    const some: InBlock[] = await selectNewest(db, network, last, CREDITED_PAGE)
    const standings = await adapter.checkCredited(some.map(foundDepositOf))
    for (const [index, incoming] of some.entries()) {
      const standing = standings[index]!
      if (standing === 'THERE') continue
      if (incoming.state === 'WAITING') await forget(db, incoming)
      else await take(db, incoming, standing === 'GONE')
    }
    if (standings.includes('THERE') || some.length < CREDITED_PAGE) return
    last = some.at(-1)
  }
}

/** Stops a network that itself reports credited deposits as removed, and marks those deposits as gone. */
export async function takeBack(
  db: Database,
  network: CryptoNetwork,
  removed: NonNullable<DepositScan['removed']>,
): Promise<void> {
  const keys = new Set(removed.map((one) => `${one.crypto_tx_hash} ${one.crypto_tx_index}`))
  const credited = await selectCredited(
    db,
    network,
    removed.map(({ crypto_tx_hash }) => crypto_tx_hash),
  )
  const gone = credited.filter((one) => keys.has(`${one.crypto_tx_hash} ${one.crypto_tx_index}`))
  if (gone.length === 0) return
  const detail = `${network} has taken back ${gone.length} credited deposits, the first of them ${gone[0]!.crypto_tx_hash}`
  await freeze(db, LOOP, { kind: 'NETWORK', network }, 'REORGANISATION', detail)
  for (const incoming of gone) await take(db, incoming, true)
}

async function take(db: Database, incoming: InBlock, isGone: boolean): Promise<void> {
  const { network, customer_id, asset, amount, crypto_tx_hash, transfer_id } = incoming
  const detail = isGone
    ? `its transaction is not in the chain any more`
    : `its transaction is in another block, and is read there again`
  await transaction(db, async (tx) => {
    await markReorganised(tx, incoming, detail)
    if (!isGone) return
    const { rows } = await tx.query<{ profile_id: string }>(
      'select profile_id from transfers where customer_id = $1 and id = $2',
      [customer_id, transfer_id],
    )
    const target = { kind: 'PROFILE', customer_id, profile_id: rows[0]!.profile_id } as const
    const what = `the deposit of ${amount} ${asset} over ${network} by ${crypto_tx_hash} was credited and is gone`
    await freeze(tx, LOOP, target, 'REORGANISATION', what)
  })
}

/**
 * Resumes a network after a reorganisation: reading continues after the newest block that was read and is still in the chain,
 * or at `fromBlock`, and payouts continue unless another freeze stops them. The deposits that are gone stay listed, and
 * their profiles frozen. Returns the cursor to read from, null where the network finds it itself. Throws a Refusal when the
 * network is not stopped, or none of the kept cursors is in the chain.
 */
export async function resumeAfterReorganisation(
  db: Database,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  { macs, origin, fromBlock }: { macs: RowMacs; origin: Origin; fromBlock?: bigint | undefined },
): Promise<string | null> {
  if (!(await isReorganised(db, network)))
    throw new Refusal(`${network} is not stopped for a reorganisation: there is nothing to resume`)
  // In case the worker died during the search.
  await lookForGone(db, network, adapter)
  const cursor = await cursorToResume(db, network, adapter, fromBlock)
  await transaction(db, async (tx) => {
    if (cursor !== null) await resetCursor(tx, network, cursor)
    await unfreeze(tx, macs, origin, { kind: 'NETWORK', network }, 'REORGANISATION')
    await recordNow(tx, PLATFORM_ID, audited(origin, 'network.resume', network))
    await readBalancesAgain(tx, network)
  })
  return cursor
}

/** Sweeps may have been taken back, too: balances of addresses that were swept lately are read again, and swept again. */
async function readBalancesAgain(tx: Transaction, network: CryptoNetwork): Promise<void> {
  await tx.query(
    `
    update address_holdings h set stale_at = (select clock_timestamp())
    where h.network = $1 and exists (
      select 1 from sweeps s
      where s.customer_id = h.customer_id and s.network = h.network and s.address = h.address
        and s.ended_at > (select clock_timestamp()) - make_interval(hours => $2))`,
    [network, SWEPT_LATELY_HOURS],
  )
}

/** Longer than an operator takes to decide about a reorganisation. */
const SWEPT_LATELY_HOURS = 168

async function cursorToResume(
  db: Database,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  fromBlock: bigint | undefined,
): Promise<string | null> {
  if (adapter.newestInChain === undefined || adapter.cursorAt === undefined) {
    if (fromBlock !== undefined)
      throw new Refusal(`${network} finds by itself where to go on: leave out --from-block`)
    return null
  }
  if (fromBlock !== undefined) return adapter.cursorAt(fromBlock - 1n)
  const { cursor = '', earlier } = await readCursor(db, network)
  const newest = await adapter.newestInChain([cursor, ...earlier].filter((one) => one !== ''))
  if (newest === undefined)
    throw new Refusal(
      `none of the blocks that were read last is in the chain of ${network}: say with --from-block where to go on`,
    )
  return newest
}
