import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { Refusal } from '../../contract/refusal.ts'
import { violatedConstraint, type Database } from '../../db/database.ts'
import { inParts } from '../../db/each-alone.ts'
import { creditedAs, CREDITED_ONCE } from '../../money/movements/credited-deposits.ts'
import { deposit } from '../../money/movements/deposit.ts'
import { SeenOtherwise } from '../../money/movements/seen-deposits.ts'
import { selectOrchestratedPayments } from '../../money/records/orchestration.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { pricesIn, type RailsContext } from '../context.ts'
import type { Screening } from '../screening/screening.ts'
import { isReorganised } from './deposit-reorganisations.ts'
import {
  keepWaiting,
  markCredited,
  selectDue,
  type DepositWaitingReason,
  type IncomingTransfer,
  type Sifted,
  type Waiting,
} from './incoming-transfers.ts'
import { deepEnough } from './confirmations-needed.ts'
import { creditTo, type AddressOwner, type Paid } from './owners.ts'
import { scanDeposits } from './scan-deposits.ts'
import { screened, withOwners, type OwnedDeposit } from './screen-deposits.ts'
import { failSeen } from './see-deposits.ts'
import { aboveMinimum, wakeSmallDeposits } from './small-deposits.ts'
import { verified, withoutTokens } from './verify-deposits.ts'

/**
 * The line of deposits on a network: scan and record, then verify, screen and credit. Each step is a file, takes deposits,
 * and says which of them pass and why the others wait.
 */

/** With `screening`, only deposits are credited that it allows. */
export type Crediting = Pick<RailsContext, 'db' | 'ledger' | 'settings'> & {
  screening?: Screening | undefined
  /** Who credits them; by default the loop of deposits. */
  origin?: Origin
}

export interface DepositRound {
  credited: number
  isBehind: boolean
  /** How many deposits began to wait in this round, by reason. Small deposits are not counted. */
  waiting: ReadonlyMap<DepositWaitingReason, number>
  /** The deactivated profiles that the round credited: their owners may not look at them any more. */
  deactivated: ReadonlySet<string>
}

/** A round of credits on a network, with what it has found. */
interface Line extends Crediting {
  network: CryptoNetwork
  adapter: NetworkAdapter
  waiting: Map<DepositWaitingReason, number>
  deactivated: Set<string>
}

/** The networks whose deposits can be read. */
export const readable = (networks: RailsContext['networks']): [CryptoNetwork, NetworkAdapter][] =>
  [...networks].flatMap(([network, adapter]): [CryptoNetwork, NetworkAdapter][] =>
    network === 'WIRE' || adapter.scanDeposits === undefined ? [] : [[network, adapter]],
  )

/**
 * Scans one network from its cursor, and credits the deposits that it found and those that waited. New deposits are
 * recorded in the transaction that moves the cursor. A deposit that cannot be credited waits, and delays neither the others
 * nor the cursor. The database guarantees that an output or log is credited once. Throws when the node does not answer.
 */
export async function creditDepositsOn(
  context: Crediting,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
): Promise<DepositRound> {
  const line: Line = { ...context, network, adapter, waiting: new Map(), deactivated: new Set() }
  const { waiting, deactivated } = line
  if (await isReorganised(context.db, network)) return { credited: 0, isBehind: false, waiting, deactivated }
  const failures: unknown[] = []
  const failed = (error: unknown) => void failures.push(error)
  const isBehind = await scanDeposits(context, network, adapter).catch(failed)
  const credited = await creditWaiting(line).catch(failed)
  if (failures.length > 0) throw failures[0]
  return { credited: credited ?? 0, isBehind: isBehind ?? false, waiting, deactivated }
}

/**
 * Credits a recorded deposit for which one node's word is not enough, by an operator's. Everything else is checked as ever.
 * Throws a Refusal where it waits for another reason.
 */
export async function creditVouched(
  context: Crediting & { origin: Origin },
  network: CryptoNetwork,
  adapter: NetworkAdapter,
  incoming: IncomingTransfer,
): Promise<void> {
  const believing = { ...adapter, oneNodeMax: undefined, minimumDeposit: undefined }
  const line = { ...context, network, adapter: believing, waiting: new Map(), deactivated: new Set<string>() }
  if ((await creditDue(line, [incoming])) === 0)
    throw new Refusal(`${incoming.crypto_tx_hash} is not credited: 'bursar deposits list' says why`)
}

/** Most deposits that are checked together: a transaction that pays many is asked for once. */
const DEPOSITS_PAGE = 1_000
const PAGES_MAX = 10
const CREDITED_TOGETHER = 200

/** The networks whose small deposits were compared with the minimum since this process began. */
const compared = new WeakSet<NetworkAdapter>()

async function creditWaiting(line: Line): Promise<number> {
  const { db, network, adapter } = line
  if (adapter.minimumDeposit !== undefined && !compared.has(adapter)) {
    await wakeSmallDeposits(db, network, adapter.minimumDeposit.bind(adapter))
    compared.add(adapter)
  }
  let credited = 0
  for (let page = 1; page <= PAGES_MAX; page++) {
    const due = await selectDue(db, network, DEPOSITS_PAGE)
    if (due.length === 0) break
    const failed: Waiting[] = []
    await inParts(
      due,
      async (deposits) => {
        credited += await creditDue(line, deposits)
        return []
      },
      (incoming, error): undefined => void failed.push(failedWith(incoming, error)),
      (error) => error instanceof NodeFailure,
    )
    await passing(line, { pass: [], wait: failed })
  }
  return credited
}

const failedWith = (incoming: IncomingTransfer, error: unknown): Waiting => ({
  incoming,
  reason: 'FAILED',
  detail: (error as Error).message,
})

async function creditDue(line: Line, due: IncomingTransfer[]): Promise<number> {
  const { db, ledger, network, adapter, screening } = line
  // Outputs that are never spent count for no minimum.
  const spendable = await passing(line, await withoutTokens(db, adapter, due))
  // Small deposits are left out before a second node is asked: anybody can send any amount of dust.
  const minimumOf = adapter.minimumDeposit?.bind(adapter)
  const cleared = await passing(line, await aboveMinimum(db, network, spendable, minimumOf))
  const deep = await passing(line, await deepEnough(adapter, cleared, () => pricesIn(line)))
  const agreed = await passing(line, await verified(line, network, adapter, deep))
  let credited = 0
  for (let start = 0; start < agreed.length; start += CREDITED_TOGETHER) {
    const deposits = agreed.slice(start, start + CREDITED_TOGETHER)
    const owned = await passing(line, await withOwners({ db, ledger }, network, deposits))
    const allowed = await passing(line, await screened(db, screening, owned))
    credited += await creditAll(line, allowed)
  }
  return credited
}

/** Records why deposits wait, and counts those that begin to. Returns the others. */
async function passing<Passing extends IncomingTransfer>(
  { db, waiting }: Line,
  { pass, wait }: Sifted<Passing>,
): Promise<Passing[]> {
  await keepWaiting(db, wait)
  for (const { incoming, reason } of wait) {
    // A deposit always waits for its screening and its confirmations first, which is not counted.
    if (reason !== 'SCREENING' && reason !== 'CONFIRMATIONS' && incoming.attempts === 0)
      waiting.set(reason, (waiting.get(reason) ?? 0) + 1)
  }
  return pass
}

/** Credits deposits that have passed all steps. Returns how many are credited now. */
async function creditAll(line: Line, deposits: OwnedDeposit[]): Promise<number> {
  const { db, network, deactivated } = line
  const prices = await pricesIn(line)
  const hops = await hopsOf(db, network, deposits)
  const done: { incoming: OwnedDeposit; transfer_id: string; isNew: boolean }[] = []
  const wait: Waiting[] = []
  // All at once, so that the ledger posts the deposits of a customer in one transaction.
  await Promise.all(
    deposits.map(async (incoming) => {
      try {
        const terms = { prices, hops: hops.get(incoming) ?? 0 }
        done.push({ incoming, ...(await creditOnce(line, onlyOwner(incoming), incoming, terms)) })
      } catch (error) {
        wait.push(failedWith(incoming, error))
      }
    }),
  )
  await markCredited(db, done)
  const credited = done.filter(({ isNew }) => isNew)
  for (const profile of await deactivatedAmong(
    db,
    credited.flatMap(({ incoming }) => incoming.owners),
  ))
    deactivated.add(profile)
  await passing(line, { pass: [], wait })
  return credited.length
}

async function deactivatedAmong(db: Database, owners: readonly AddressOwner[]): Promise<string[]> {
  if (owners.length === 0) return []
  const { rows } = await db.query<{ id: string }>(
    'select id from profiles where customer_id = any ($1) and id = any ($2) and deactivated_at is not null',
    [[...new Set(owners.map(({ customer_id }) => customer_id))], owners.map(({ profile_id }) => profile_id)],
  )
  return rows.map(({ id }) => id)
}

function onlyOwner({ owners }: OwnedDeposit): AddressOwner {
  const [owner, ...others] = owners
  if (owner === undefined) throw new Error('its deposit address is not there any more')
  if (others.some(({ profile_id }) => profile_id !== owner.profile_id))
    throw new Error('its deposit address belongs to more than one profile')
  return owner
}

/** For the deposits that an orchestration of this platform has paid, how many orchestrations their money has come through. */
async function hopsOf(
  db: Database,
  network: CryptoNetwork,
  deposits: readonly IncomingTransfer[],
): Promise<ReadonlyMap<IncomingTransfer, number>> {
  const hashes = deposits.map(({ crypto_tx_hash }) => crypto_tx_hash)
  const payments = hashes.length === 0 ? [] : await selectOrchestratedPayments(db, network, hashes)
  const canonical = (address: string) => canonicalAddress(network, address, { testNetworks: true })
  const hops = new Map<IncomingTransfer, number>()
  for (const incoming of deposits) {
    const own = payments.filter(
      ({ crypto_tx_hash, crypto_tx_index, destination_address }) =>
        crypto_tx_hash === incoming.crypto_tx_hash &&
        (crypto_tx_index === null || crypto_tx_index === incoming.crypto_tx_index) &&
        canonical(destination_address) === canonical(incoming.address),
    )
    if (own.length > 0) hops.set(incoming, Math.max(...own.map((payment) => payment.hops)))
  }
  return hops
}

/** How often a credit is decided again because the PENDING transfer of its deposit has changed. */
const CREDIT_ATTEMPTS_MAX = 3

/** Credits a deposit to an owner of its address. Returns its transfer, also where it was credited before. */
export async function creditOnce(
  {
    db,
    ledger,
    adapter,
    origin = originOfLoop('deposits'),
  }: Omit<Crediting, 'settings'> & Pick<Line, 'adapter'>,
  owner: AddressOwner,
  incoming: Paid,
  { prices, hops }: { prices: UsdPrices; hops?: number },
): Promise<{ transfer_id: string; isNew: boolean }> {
  const { network, asset, crypto_tx_hash, crypto_tx_index } = incoming
  if (findAsset(asset) === undefined) throw new Error(`${asset} is not in the catalogue any more`)
  const seenAs = { network, crypto_tx_hash, crypto_tx_index }
  const arrivedAt = adapter.isSimulated ? (`simulated:${network}` as const) : (`custody:${network}` as const)
  const arrived = { ...creditTo(owner, incoming, prices), arrivedAt, hops, seenAs }
  for (let attempt = 1; attempt <= CREDIT_ATTEMPTS_MAX; attempt++) {
    try {
      const { transfer } = await ledger.submit(owner.customer_id, deposit(owner.customer_id, arrived, origin))
      return { transfer_id: transfer.id, isNew: true }
    } catch (error) {
      if (error instanceof SeenOtherwise) await failSeen(db, owner.customer_id, error.transfer_id)
      else if (![CREDITED_ONCE, 'transfers_arrival'].includes(violatedConstraint(error) ?? '')) throw error
    }
    const transfer_id = await creditedAs(db, owner.customer_id, seenAs)
    if (transfer_id !== undefined) return { transfer_id, isNew: false }
    // Its PENDING transfer was created meanwhile, or has failed now.
  }
  throw new Error('its pending transfer changes too often')
}
